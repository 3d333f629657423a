"""The judge stage: what it asks, what it says, and what it leaves alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from prometheus_client import REGISTRY

from pipelines.evaluate.judged.handler import MEASURES, InLine, Named, begin_counting, judge_handler
from pipelines.evaluate.judged.measure import fingerprint
from pipelines.evaluate.judged.sampling import SampleAllowance
from pipelines.query.log.handler import verdict_handler
from pipelines.query.ports import BadRequest, ContentFiltered, ModelDenied, ModelDown, RateLimited
from pipelines.runtime.dead_letters import kind_of
from pipelines.runtime.errors import WAYS, FailureAction, PagewireError
from pipelines.runtime.record import Record
from pipelines.runtime.settings import SamplingSettings, Site
from pipelines.runtime.try_limit import TryLimit
from prompts.loader import ChatMessage, load
from schemas.answer import Answered, AnswerEvent, Done, Failed, Restart, Token
from schemas.conversation import Feedback
from schemas.outcome import Forgotten, Outcome, OutcomeEvent, OutcomeSource, Rated, SecondVerdict, Verdict, VerdictEvent
from schemas.topics import VERDICTS
from tests import skipping_time
from tests.asking import NOON, source
from tests.fakes.outcomes import FakeOutcomes
from tests.fakes.pages import FakeSender
from tests.unit.evaluate.judged.judges import Script, Written, verdicts

MINUTE = timedelta(minutes=1)
GOOD: dict[str, Any] = {
    "claims": {"claims": ["It costs 18 euros.", "It lasts a year."]},
    "faithfulness": verdicts("entailed", "neither"),
    "relevancy": {"needed": [1]},
}


def asked(n: int = 1, at: datetime = NOON, site: str = "town", **changes: Any) -> OutcomeEvent:
    outcome = Outcome(
        asked_at=at,
        asked_in="en",
        lang="en",
        question="And for me, I am [e-mail]?",
        rephrased="What does a library card cost?",
        became="answered",
        grade=0,
        hits=(OutcomeSource(page_id="p1", lang="en", field="content", ord=0, score=0.5, cited=True),),
        answer="It costs 18 euros and lasts a year.",
    )
    said = outcome.model_copy(update=changes)
    return OutcomeEvent(site=site, request_id=f"request-{n:04}", conversation="c1", event=said)


def record(event: OutcomeEvent, written: datetime | None = None) -> Record:
    at = round(written.timestamp() * 1000) if written else 0
    return Record("query.outcomes", 0, 1, event.key.encode(), event.encode(), timestamp_ms=at)


CLAIMS = load("evaluate/claims").messages({"fence": "f", "question": "?", "text": "It is."}, "en")


class Answers:
    """`answer.events`, as they are kept of every request."""

    def __init__(self) -> None:
        cited = source(1, "A card costs 18 euros.").model_copy(update={"cited": True})
        others = tuple(source(n, f"Passage {n}.") for n in (2, 3, 4))
        whole = Answered(text="Unmasked.", citations=(), sources=(cited, *others), extractive=False)
        begun = whole.model_copy(update={"sources": (source(9, "Of an attempt that was given up."),)})
        self.events: Sequence[tuple[int, Any]] = (
            (1, Token(text="It")),
            (2, whole),
            (1, begun),
            (2, Restart(attempt=2)),
            (2, Done()),
        )
        self.read: list[tuple[str, int, int | None]] = []

    async def of_key(self, key: str, since_ms: int, until_ms: int | None = None) -> list[Record]:
        self.read.append((key, since_ms, until_ms))
        for _ in range(20):  # others go on meanwhile, and further than this answer
            await asyncio.sleep(0)
        said = [AnswerEvent(request_id=key, attempt=attempt, seq=0, event=event) for attempt, event in self.events]
        records = [Record("answer.events", 0, n, key.encode(), one.encode()) for n, one in enumerate(said)]
        return [*records, Record("answer.events", 0, len(said), key.encode(), b"nobody can read this")]


class Town:
    """A judge stage with all that it touches; `restart` leaves it nothing but what is durable."""

    def __init__(self, model: Script, share: float = 1.0, daily: int = 100, again: float = 0.0) -> None:
        sampling = SamplingSettings(share=share, daily=daily)
        self.again = again
        self.sites = {"town": Site(judging=sampling), "village": Site()}
        self.model, self.answers, self.log, self.sender = model, Answers(), FakeOutcomes(), FakeSender()
        self.now = NOON + MINUTE
        self.broken = 0  # messages among the verdicts that nobody can read
        self.restart()

    def restart(self) -> None:
        judge = Named("scripted", self.model)
        self.handle = judge_handler(
            self.sites,
            judge,
            self.answers,
            self.log.forgotten,
            SampleAllowance(self),
            lambda: self.now,
            pause=0.0,
            again=self.again,
        )

    async def since(self, since_ms: int) -> list[Record]:
        await asyncio.sleep(0)
        said = [each for each in self.sender.sent if each.topic is VERDICTS]
        values = [each.message.encode() for each in said] + [b"{"] * self.broken
        return [Record("query.verdicts", 0, n, b"c1", value) for n, value in enumerate(values)]

    async def judge(self, *events: OutcomeEvent) -> None:
        for event in events:
            await self.handle(record(event), self.sender)

    @property
    def said(self) -> list[VerdictEvent]:
        return [VerdictEvent.decode(each.message.encode()) for each in self.sender.sent]


async def test_an_answer_is_judged_and_its_verdict_stands_beside_it() -> None:
    town = Town(Script(**GOOD))
    event = asked()
    await town.log.put(event)
    await town.judge(event)
    [said] = town.said
    assert said == VerdictEvent(
        site="town",
        request_id="request-0001",
        conversation="c1",
        asked_at=NOON,
        verdict=Verdict(
            judged_at=town.now,
            judge="scripted",
            prompts=" ".join(fingerprint(each) for each in MEASURES),
            faithfulness=0.5,
            context_relevancy=0.25,  # one of four
        ),
    )
    [sent] = town.sender.sent
    assert (sent.topic, sent.key) == (VERDICTS, "c1")
    await verdict_handler(town.log)(Record("query.verdicts", 0, 0, b"c1", sent.message.encode()), town.sender)
    kept = await town.log.get("town", "request-0001")
    assert kept is not None
    assert (kept.verdict, kept.outcome) == (said.verdict, event.event)


async def test_the_judge_reads_what_the_log_keeps_and_the_texts_of_the_sources() -> None:
    town = Town(Script(**GOOD))
    await town.judge(asked())
    read = {name: messages[1].content for name, messages in town.model.asked}
    assert "And for me, I am [e-mail]?\nWhat does a library card cost?" in read["relevancy"]
    assert "It costs 18 euros and lasts a year." in read["claims"]
    assert "A card costs 18 euros." in read["faithfulness"]
    assert "given up" not in str(read)
    assert "Unmasked" not in str(read)


async def test_a_first_question_is_read_once() -> None:
    town = Town(Script(**GOOD))
    await town.judge(asked(question="What does a card cost?", rephrased="What does a card cost?"))
    read = dict(town.model.asked)["relevancy"][1].content
    assert read.count("What does a card cost?") == 1


async def test_the_events_are_looked_for_where_they_can_be() -> None:
    town = Town(Script(**GOOD))
    written = NOON + MINUTE
    await town.handle(record(asked(), written), town.sender)
    [(key, since, until)] = town.answers.read
    assert key == "request-0001"
    assert since < NOON.timestamp() * 1000
    assert until is not None
    assert until > written.timestamp() * 1000


async def test_of_an_outcome_that_was_put_back_later_the_events_are_looked_for_around_its_question() -> None:
    town = Town(Script(**GOOD))
    await town.handle(record(asked(), NOON + 600 * MINUTE), town.sender)
    [(_, _, until)] = town.answers.read
    assert until is not None
    assert until <= (NOON + 62 * MINUTE).timestamp() * 1000


@pytest.mark.parametrize(
    "event",
    [
        asked(site="village"),  # has none judged
        asked(site="nowhere"),
        asked(became="courtesy"),
        asked(answer=None),
        asked().model_copy(update={"event": Rated(feedback=Feedback(rating="up", at=NOON))}),
        asked().model_copy(update={"event": Forgotten(at=NOON, requests=("request-0001",))}),
    ],
)
async def test_what_is_not_to_be_judged_costs_nothing(event: OutcomeEvent) -> None:
    town = Town(Script())
    await town.judge(event)
    assert (town.said, town.answers.read) == ([], [])


async def test_without_a_judge_nothing_happens() -> None:
    town = Town(Script())
    sites = {"town": Site()}
    handle = judge_handler(sites, None, town.answers, town.log.forgotten, SampleAllowance(town))
    await handle(record(asked()), town.sender)
    assert town.said == []


async def test_a_deleted_conversation_is_not_shown_to_a_model() -> None:
    town = Town(Script())
    await town.log.put(asked().model_copy(update={"event": Forgotten(at=NOON, requests=("request-0001",))}))
    await town.judge(asked())
    assert town.said == []


@pytest.mark.parametrize("gone", ["too old", "no events", "no answer"])
async def test_an_answer_whose_sources_are_gone_is_left_out(gone: str) -> None:
    town = Town(Script(), daily=1)
    if gone == "too old":
        town.now = NOON + timedelta(hours=25)
    town.answers.events = [(1, Failed(code="timeout", message="Sorry."))] if gone == "no answer" else []
    await town.judge(asked())
    assert town.said == []
    town.answers, town.now, town.model = Answers(), NOON, Script(**GOOD)
    town.restart()
    await town.judge(asked(2))
    assert len(town.said) == 1  # it took nothing of the budget


async def test_a_message_that_comes_again_is_not_judged_again() -> None:
    town = Town(Script(**GOOD))
    await town.judge(asked(), asked())
    town.restart()
    await town.judge(asked())
    assert len(town.said) == 1
    assert len(town.model.asked) == 3


async def test_the_budget_of_a_day_survives_a_restart_and_is_that_of_the_questions_day() -> None:
    town = Town(Script(**GOOD), daily=3)
    before = counted("over-budget")
    await town.judge(asked(1), asked(2))
    town.restart()
    await town.judge(*(asked(n) for n in range(3, 8)))
    assert [said.request_id[-1] for said in town.said] == ["1", "2", "3"]
    assert counted("over-budget") - before == 4
    town.now += timedelta(days=1)
    await town.judge(asked(8, NOON + timedelta(days=1)), asked(9))
    assert [said.request_id[-1] for said in town.said] == ["1", "2", "3", "8"]


async def test_the_first_ones_of_a_replay_are_those_of_before() -> None:
    town = Town(Script(**GOOD), share=0.5, daily=4)
    events = [asked(n) for n in range(30)]
    await town.judge(*events)
    first = [said.request_id for said in town.said]
    town.restart()
    await town.judge(*events)
    assert [said.request_id for said in town.said] == first
    assert len(first) == 4


async def test_answers_that_are_judged_side_by_side_share_the_budget() -> None:
    town = Town(Script(**GOOD), daily=2)
    await asyncio.gather(*(town.handle(record(asked(n)), town.sender) for n in range(6)))
    assert len(town.said) == 2


async def test_an_answer_that_is_judged_while_the_verdicts_are_read_counts() -> None:
    reading, read = asyncio.Event(), asyncio.Event()
    read.set()

    class Empty:
        """As the topic was when it was read."""

        async def since(self, since_ms: int) -> list[Record]:
            reading.set()
            await read.wait()
            return []

    allowance = SampleAllowance(Empty())
    assert await allowance.admit(asked(1), NOON, 1) == "once"
    reading.clear()
    read.clear()
    second = asyncio.create_task(allowance.admit(asked(2), NOON, 1))
    await reading.wait()
    allowance.left(asked(1), NOON)
    read.set()
    assert await second == "over-budget"


class Changing(Script):
    """Finds all claims borne out the second time; or fails then."""

    def __init__(self, second: Any) -> None:
        super().__init__(**GOOD)
        self.second = second

    async def complete(self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None) -> Written:
        if len(self.asked) == 3:
            self.says = GOOD | self.second
        return await super().complete(messages, max_tokens=max_tokens)


async def test_a_share_is_judged_twice_and_the_first_verdict_counts() -> None:
    town = Town(Changing({"faithfulness": verdicts("entailed", "entailed")}), again=1.0)
    await town.judge(asked())
    [said] = town.said
    assert len(town.model.asked) == 6
    assert (said.verdict.faithfulness, said.verdict.context_relevancy) == (0.5, 0.25)
    assert said.verdict.again == SecondVerdict(faithfulness=1.0, context_relevancy=0.25)
    event = asked()
    await town.log.put(event)
    await verdict_handler(town.log)(Record("query.verdicts", 0, 0, b"c1", said.encode()), town.sender)
    kept = await town.log.get("town", "request-0001")
    assert kept is not None
    assert kept.verdict == said.verdict


async def test_a_second_look_that_fails_loses_nothing() -> None:
    town = Town(Changing({"claims": ModelDown("away")}), again=1.0)
    await town.judge(asked())
    [said] = town.said
    assert (said.verdict.faithfulness, said.verdict.again, said.verdict.unjudged) == (0.5, None, None)


async def test_what_is_judged_twice_counts_twice_and_never_goes_beyond_the_day() -> None:
    town = Town(Script(**GOOD), daily=5, again=1.0)
    await town.judge(asked(1), asked(2))
    town.restart()
    await town.judge(*(asked(n) for n in range(3, 6)))
    assert [(said.request_id[-1], said.verdict.again is not None) for said in town.said] == [
        ("1", True),
        ("2", True),
        ("3", False),
    ]
    beside = Town(Script(**GOOD), daily=3, again=1.0)
    await asyncio.gather(*(beside.handle(record(asked(n)), beside.sender) for n in range(6)))
    assert sorted(said.verdict.again is not None for said in beside.said) == [False, True]


async def test_a_verdict_that_nobody_can_read_does_not_stop_the_budget() -> None:
    town = Town(Script(**GOOD))
    town.broken = 2
    await town.judge(asked())
    assert len(town.said) == 1


@pytest.mark.parametrize(
    ("error", "way"),
    [
        (ModelDown("away"), FailureAction.PAUSE),
        (RateLimited("busy"), FailureAction.PAUSE),
        (ModelDenied("no credit"), FailureAction.PAUSE),
        (BadRequest("no such model"), FailureAction.PAUSE_THEN_BURY),
    ],
)
async def test_a_judge_that_is_away_pauses_the_stage(error: PagewireError, way: FailureAction) -> None:
    town = Town(Script(**GOOD | {"claims": error}), daily=1)
    with pytest.raises(type(error)) as raised:
        await town.judge(asked())
    assert WAYS[kind_of(raised.value)] is way
    assert town.said == []
    town.model.says = GOOD
    await town.judge(asked())  # its place in the budget was not lost
    assert [said.verdict.unjudged for said in town.said] == [None]


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({"claims": ContentFiltered("no")}, (None, 0.25, "content-filtered")),
        ({"claims": "I like it."}, (None, 0.25, "judge-unreadable")),
        ({"relevancy": {"needed": [7]}}, (0.5, None, "judge-unreadable")),
        ({"claims": {"claims": []}}, (None, 0.25, None)),  # claims nothing: there is no figure
        ({"relevancy": {"needed": [1, 2]}}, (0.5, 0.5, None)),
    ],
)
async def test_what_cannot_be_judged_says_so_and_keeps_the_rest(
    changed: dict[str, Any], verdict: tuple[float | None, float | None, str | None]
) -> None:
    town = Town(Script(**GOOD | changed))
    await town.judge(asked(), asked())
    [said] = town.said
    found = said.verdict
    assert (found.faithfulness, found.context_relevancy, found.unjudged) == verdict


class Slow(Script):
    """Knows how many calls there were at once."""

    def __init__(self) -> None:
        super().__init__(**GOOD)
        self.open, self.most = 0, 0

    async def complete(self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None) -> Written:
        self.open += 1
        self.most = max(self.most, self.open)
        await asyncio.sleep(10)
        self.open -= 1
        return await super().complete(messages, max_tokens=max_tokens)


def test_the_model_is_asked_one_thing_at_a_time_and_nobody_is_cut_off_while_the_line_moves() -> None:
    async def scenario() -> float:
        in_line = InLine(model)

        async def call() -> None:
            async with TryLimit(60.0):  # seconds; all calls together take 400
                await in_line.complete(CLAIMS)

        began = asyncio.get_running_loop().time()
        await asyncio.gather(*(call() for _ in range(40)))
        return asyncio.get_running_loop().time() - began

    model = Slow()
    assert skipping_time.run(scenario()) >= 400
    assert (model.most, len(model.asked)) == (1, 40)


def counted(outcome: str) -> float:
    return REGISTRY.get_sample_value("pagewire_judged_answers_total", {"site": "town", "outcome": outcome}) or 0.0


def figures(name: str, figure: str) -> float | None:
    return REGISTRY.get_sample_value(f"pagewire_judged_figure_{name}", {"site": "town", "figure": figure})


async def test_what_was_judged_is_counted_from_nothing_on() -> None:
    town = Town(Script(**GOOD))
    begin_counting(town.sites)
    judged, unjudged, total = counted("judged"), counted("unjudged"), figures("sum", "faithfulness")
    assert total is not None
    await town.judge(asked())
    town.model.says = GOOD | {"claims": "I like it."}
    await town.judge(asked(2))
    assert (counted("judged") - judged, counted("unjudged") - unjudged) == (1, 1)
    assert figures("sum", "faithfulness") == total + 0.5
    assert REGISTRY.get_sample_value("pagewire_judged_answers_total", {"site": "village", "outcome": "judged"}) is None
