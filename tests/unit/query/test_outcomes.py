"""Outcomes: said once an answer has ended, of every question, and with no words that its site does not want kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import numpy as np
import pytest
from prometheus_client import REGISTRY

from adapters.elastic.client import ElasticsearchDown
from pipelines.query.answer.answering import Answering
from pipelines.query.answer.handler import answer_handler
from pipelines.query.answer.stops import Stops
from pipelines.query.answer.strategies.base import shortened
from pipelines.query.giving_up import apology, with_deadline
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.model_calls import AnswerRecord, Call, bounded
from pipelines.query.outcomes import Outcomes, StageInput, became, outcome
from pipelines.query.publish import Published
from pipelines.runtime.dead_letters import DeadLetter
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import Record
from pipelines.runtime.settings import QuestionLogging
from prompts.loader import ChatMessage
from schemas.answer import Answered, AnswerEvent, Done, Failed, PendingCall, Step, Token, Usage
from schemas.base import Message
from schemas.outcome import DoubtedSentence, Outcome, OutcomeEvent, ToolRun
from schemas.query import (
    Became,
    Evidence,
    Gate,
    Part,
    Question,
    QuestionVector,
    Rephrased,
    Retrieved,
    Source,
    Sure,
    Trial,
)
from schemas.topics import ANSWERS, OUTCOMES, Topic
from tests.asking import NOON, question, retrieved, source
from tests.fakes.pages import FakeSender
from wiring.settings import Settings, SiteSettings

BECAME = get_args(Became)
LOGGED = question().model_copy(update={"logged_as": "hash"})
CONTACT = {"en": "The town hall: 030 23125-100 or hall@town.example."}


def settings(log_questions: QuestionLogging = "on", **more: Any) -> Settings:
    site = SiteSettings(title="Town", timezone="Europe/Berlin", contact=CONTACT, log_questions=log_questions, **more)
    return Settings(sites={"town": site})


def passages(**changes: Any) -> Retrieved:
    asked = question("When does the pool open?", lang="de").model_copy(
        update={"logged_as": "hash", "deadline": datetime.now(UTC) + timedelta(minutes=1)}
    )
    gate = Gate(distance=0.2, entropy=0, subject=0.5, by_figures=0, score=0.9, threshold=0.4, signals={"top": 0.8})
    known = retrieved(source(1, "The pool opens at 9."), source(2, "A sauna."))
    return known.model_copy(update={"request": asked, "gate": gate, "timings_ms": {"retrieve": 5.0}} | changes)


def answered(*sources: Source, **changes: Any) -> Answered:
    return Answered(text="At 9.", citations=(), sources=sources, extractive=True, strategy="quote").model_copy(
        update=changes
    )


def cited(n: int = 1) -> Source:
    return source(n, "The pool opens at 9.").model_copy(update={"cited": True})


def evidence(n: int = 1) -> Evidence:
    return Evidence(n=n, start=0, text="The pool opens at 9.", kind="prose", block=0, score=1.0)


def logged(sender: FakeSender) -> list[OutcomeEvent]:
    return [sent.message for sent in sender.sent if isinstance(sent.message, OutcomeEvent)]


async def said(known: StageInput, told: Published, wanted: QuestionLogging = "on") -> OutcomeEvent | None:
    sender = FakeSender()
    await Outcomes(settings(wanted)).send(known, told, sender)
    assert {(sent.topic, sent.key) for sent in sender.sent} <= {(OUTCOMES, "hash")}
    return next(iter(logged(sender)), None)


def counted() -> dict[str, float]:
    """What Prometheus is told of this site's answers."""
    got = {one: REGISTRY.get_sample_value("pagewire_answers_total", {"site": "town", "became": one}) for one in BECAME}
    took = {
        f"{one} took": REGISTRY.get_sample_value("pagewire_answer_seconds_count", {"became": one}) for one in BECAME
    }
    words = {"words": REGISTRY.get_sample_value("pagewire_first_word_seconds_count")}
    return {name: value or 0 for name, value in (got | took | words).items()}


@pytest.mark.parametrize("wanted", ["on", "off"])
async def test_what_became_of_a_question_is_counted_logged_or_not(wanted: QuestionLogging) -> None:
    before = counted()
    known = passages()
    if wanted == "off":
        known = known.model_copy(update={"request": known.request.model_copy(update={"logged_as": None})})
    await said(known, Published(answered(cited()), NOON), wanted)
    await said(known, Published(answered(), None), wanted)
    assert {name: value - before[name] for name, value in counted().items() if value != before[name]} == {
        "answered": 1,
        "answered took": 1,
        "refused": 1,
        "refused took": 1,
        "words": 1,
    }


async def test_of_too_many_sites_to_tell_apart_answers_are_counted_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def together() -> float:
        labels = {"site": "", "became": "answered"}
        return REGISTRY.get_sample_value("pagewire_answers_total", labels) or 0

    before, apart = together(), counted()
    monkeypatch.setattr("pipelines.runtime.settings.LABELLED_SITES", 0)
    await Outcomes(settings()).send(passages(), Published(answered(cited()), NOON), FakeSender())
    assert together() == before + 1
    assert counted()["answered"] == apart["answered"]


async def test_a_trial_and_what_has_no_end_are_not_counted() -> None:
    before = counted()
    known = passages()
    trial = known.model_copy(update={"request": known.request.model_copy(update={"trial": Trial()})})
    await said(trial, Published(answered(cited()), NOON))
    await said(known, Published(None, None))
    assert counted() == before


async def test_an_answer_whose_outcome_is_said_again_is_counted_once() -> None:
    """By whoever ended it: that time has passed meanwhile says nothing of the answer."""
    before = counted()
    told = Published(answered(cited()), NOON)
    await Outcomes(settings()).send(passages(), told, (sender := FakeSender()), again=True)
    assert logged(sender)
    assert counted() == before


def test_an_outcome_says_how_the_question_was_answered() -> None:
    usage = Usage(model="m", prompt_tokens=100, completion_tokens=20)
    end = answered(
        cited(), source(2, "A sauna."), usage=usage, strategy="plain", extractive=False, timings_ms={"answer": 7.0}
    )
    got = outcome(passages(), end, NOON + timedelta(milliseconds=250))
    assert (got.became, got.asked_in, got.lang, got.grade) == ("answered", "en", "de", 0)
    assert (got.question, got.rephrased) == ("When does the pool open?", "Is the pool open on Sundays?")
    assert [(hit.page_id, hit.cited) for hit in got.hits] == [("p1", True), ("p2", False)]
    assert (got.model, got.prompt_tokens, got.completion_tokens, got.strategy) == ("m", 100, 20, "plain")
    assert got.gate is not None
    assert got.gate.signals == {"top": 0.8}
    assert (got.first_token_ms, got.timings_ms) == (250, {"answer": 7.0})
    assert "opens at 9" not in got.model_dump_json()  # passages live in the index


UNSURE = Sure(of="page", unit=0.1, page=0.8)
SURE = Sure(of="unit", unit=0.9, page=0.9)


@pytest.mark.parametrize(
    ("known", "end", "expected"),
    [
        (passages(), answered(cited()), "answered"),
        (passages(sure=SURE, evidence=(evidence(),)), answered(cited()), "answered"),
        (passages(sure=UNSURE, evidence=(evidence(),)), answered(cited(), certainty="place"), "page"),
        (passages(sure=UNSURE, evidence=(evidence(),)), answered(cited(), extractive=False), "answered"),
        (
            passages(
                sure=UNSURE, evidence=(evidence(),), parts=(Part(question="?", evidence=(evidence(),), sure=SURE),)
            ),
            answered(cited()),
            "answered",
        ),
        (passages(grade=5), answered(source(1, "")), "refused"),
        (passages(), answered(), "refused"),
        (passages(), answered(stopped=True), "answered"),
        (passages(courtesy="thanks"), answered(), "courtesy"),
        (passages(), Failed(code="timeout", message="Too slow."), "failed"),
        (None, Failed(code="timeout", message="Too slow."), "failed"),
    ],
)
def test_what_became_of_a_question(known: Retrieved | None, end: Answered | Failed, expected: str) -> None:
    assert became(known, end) == expected


VECTOR = QuestionVector.of("fake-4", np.array([0.6, 0.8], dtype=np.float32))


@pytest.mark.parametrize(
    ("rephrased", "wanted", "kept"),
    [
        ("Is the pool open?", "on", VECTOR),
        ("Is hall@town.example right?", "on", VECTOR),  # the town's own address, which stays
        ("I am anna@mail.example. Is the pool open?", "on", None),
        ("Is the pool open?", "without-text", None),
    ],
)
async def test_a_vector_is_kept_of_words_that_are_kept_whole(
    rephrased: str, wanted: QuestionLogging, kept: QuestionVector | None
) -> None:
    event = await said(passages(question=rephrased, vector=VECTOR), Published(answered(cited()), None), wanted)
    assert event is not None
    assert isinstance(event.event, Outcome)
    assert event.event.vector == kept


async def test_words_are_masked_but_for_what_the_site_publishes() -> None:
    text = "I am anna@mail.example, 0171 2345678. Is hall@town.example or 030 23125-100 right?"
    known = passages(question=text)
    event = await said(known, Published(answered(cited()), None))
    assert event is not None
    assert isinstance(event.event, Outcome)
    assert event.event.rephrased == "I am [e-mail], [phone]. Is hall@town.example or 030 23125-100 right?"


@pytest.mark.parametrize("groups", [(), ("staff",)])
async def test_the_answer_is_kept_with_the_numbers_of_its_pages_unless_not_everybody_may_read_it(
    groups: tuple[str, ...],
) -> None:
    page = cited().model_copy(update={"text": "Ring 030 5550123."})
    end = answered(page, source(2, "0171 2345678"), text="Ring 030 5550123, not 0171 2345678.")
    asked = passages().request.model_copy(update={"groups": groups})
    event = await said(passages(request=asked), Published(end, None))
    assert event is not None
    assert isinstance(event.event, Outcome)
    assert event.event.answer == (None if groups else "Ring 030 5550123, not [phone].")


@pytest.mark.parametrize(
    ("wanted", "groups", "kept"), [("on", (), True), ("without-text", (), False), ("on", ("staff",), False)]
)
async def test_what_tools_were_called_with_is_kept_masked_as_the_answer_is(
    wanted: QuestionLogging, groups: tuple[str, ...], kept: bool
) -> None:
    ran = Step(
        kind="tool", asked='fee({"mail": "anna@mail.example", "for": 2})', said="[2] 12 euros, 0171 2345678.", ms=3.0
    )
    half = Step(kind="tool", asked="fee({})", said=shortened(f"{'Pay here. ' * 48}Ring for it: 0171 2345678"))
    whole = Step(kind="tool", asked="fee({})", said="It costs 12 euros, or more …")
    end = answered(cited(), trace=(Step(kind="model", asked="tools", said="fee"), ran, half, whole))
    asked = passages().request.model_copy(update={"groups": groups})
    event = await said(passages(request=asked), Published(end, None), wanted)
    assert event is not None
    assert isinstance(event.event, Outcome)
    if not kept:
        assert "tool_runs" not in event.dumped()["event"]
        return
    first, second, third = event.event.tool_runs
    assert first == ToolRun(call='fee({"mail": "[e-mail]", "for": 2})', said="[2] 12 euros, [phone].", ms=3.0)
    assert (second.said.endswith("Pay here. …"), "0171" in second.said) == (True, False)
    assert third.said == whole.said


def call(step: str, said: str, reply: str) -> Call:
    made = Call(step, (ChatMessage("system", "Be brief."), ChatMessage("user", said)), model="small")
    made.add(reply)
    return made


@pytest.mark.parametrize(
    ("site", "groups", "again", "kept"),
    [
        ({"log_prompts": True}, (), False, True),
        ({}, (), False, False),
        ({"log_prompts": True, "log_questions": "without-text"}, (), False, False),
        ({"log_prompts": True}, ("staff",), False, False),  # who may read the log may not read all pages
        ({"log_prompts": True}, (), True, False),  # the log has it from who said it first
    ],
)
async def test_what_models_read_is_kept_masked_where_the_site_wants_it(
    site: dict[str, Any], groups: tuple[str, ...], again: bool, kept: bool
) -> None:
    page = cited().model_copy(update={"text": "Ring 030 5550123."})
    first = bounded([call("rephrase", "I am anna@mail.example.", "Who is anna@mail.example?")])
    asked = passages().request.model_copy(update={"groups": groups})
    known = passages(request=asked, calls=first)
    doubted = DoubtedSentence(sentence="Ring 0171 2345678.", kind="figure", said="0171 2345678", cited=(1,))
    made = AnswerRecord((call("answer", "Ring 030 5550123 or 0171 2345678.", "Ring 030 5550123."),), (doubted,))
    sender = FakeSender()
    await Outcomes(settings(**site)).send(known, Published(answered(page), None), sender, again=again, made=made)
    [event] = logged(sender)
    assert isinstance(event.event, Outcome)
    if not kept:
        assert (event.event.calls, event.event.doubted) == ((), ())
        assert "calls" not in event.dumped()["event"]  # what is there already stays
        return
    read = [(one.step, one.messages[-1].text, one.reply) for one in event.event.calls]
    assert read == [
        ("rephrase", "I am [e-mail].", "Who is [e-mail]?"),
        ("answer", "Ring 030 5550123 or [phone].", "Ring 030 5550123."),  # the page's own number stays
    ]
    assert [(one.sentence, one.said) for one in event.event.doubted] == [("Ring [phone].", "[phone]")]


async def test_a_site_can_do_without_words_or_without_the_log() -> None:
    told = Published(answered(cited()), None)
    event = await said(passages(), told, "without-text")
    assert event is not None
    assert isinstance(event.event, Outcome)
    assert (event.event.question, event.event.rephrased, event.event.answer, event.event.grade) == (None, None, None, 0)
    assert "pool" not in event.event.model_copy(update={"hits": ()}).model_dump_json()
    assert await said(passages(), told, "off") is None


async def test_what_an_operator_tries_out_is_not_logged() -> None:
    """`pagewire ask` and `check` ask without a gateway, which says how a question is logged."""
    asked = passages().request.model_copy(update={"logged_as": None})
    assert await said(passages(request=asked), Published(answered(cited()), None)) is None


async def test_nobody_is_named() -> None:
    asked = passages().request.model_copy(update={"groups": ("staff",), "conversation_id": "conversation-1"})
    event = await said(passages(request=asked), Published(answered(cited()), None))
    assert event is not None
    assert event.conversation == "hash"
    assert "conversation-1" not in event.model_dump_json()
    assert "staff" not in event.model_dump_json()


class Log:
    """What was written of the answer already."""

    def __init__(self, *written: AnswerEvent) -> None:
        self._written = written

    async def of_key(self, key: str, since_ms: int, *, begins: tuple[int, int] | None = None) -> list[Record]:
        at = round(NOON.timestamp() * 1000) + 300
        return [Record("answer.events", 0, i, None, e.encode(), timestamp_ms=at) for i, e in enumerate(self._written)]


class Tail:
    async def start(self) -> None: ...

    async def aclose(self) -> None: ...


async def handled(known: Retrieved, log: Log, *, fresh: bool, sender: FakeSender | None = None) -> FakeSender:
    sender = sender or FakeSender()
    answering = Answering(settings(), SitePrompts(), {})
    handle = answer_handler(answering, log, Stops(log, lambda deliver: Tail()), Outcomes(settings()))
    await handle(Record("query.retrieved", 0, 9, b"c", known.encode(), fresh=fresh), sender)
    return sender


async def test_the_outcome_is_said_after_the_visitor_has_all_of_the_answer() -> None:
    sent = (await handled(passages(), Log(), fresh=True)).sent
    assert [one.topic for one in sent[-2:]] == [ANSWERS, OUTCOMES]
    assert isinstance(sent[-2].message, AnswerEvent)
    assert sent[-2].message.final
    assert isinstance(sent[-1].message, OutcomeEvent)
    assert isinstance(sent[-1].message.event, Outcome)
    assert sent[-1].message.event.first_token_ms


async def test_an_outcome_that_was_not_said_is_said_by_whoever_comes_next() -> None:
    class Dies(FakeSender):
        async def send(self, topic: Topic, key: str, message: Message, **kwargs: Any) -> None:
            if topic is OUTCOMES:
                raise Retryable("the broker is away")
            await super().send(topic, key, message, **kwargs)

    first = Dies()
    with pytest.raises(Retryable):
        await handled(passages(), Log(), fresh=True, sender=first)
    written = [one.message for one in first.sent if isinstance(one.message, AnswerEvent)]
    [again] = logged(await handled(passages(), Log(*written), fresh=False))
    [once] = logged(await handled(passages(), Log(), fresh=True))
    volatile = {"first_token_ms": 0.0, "timings_ms": {}}
    assert isinstance(again.event, Outcome)
    assert isinstance(once.event, Outcome)
    assert again.event.first_token_ms == 300
    assert again.event.model_copy(update=volatile) == once.event.model_copy(update=volatile)
    assert again.request_id == once.request_id


async def away(record: Record, sender: Any) -> None:
    raise ElasticsearchDown("connection refused")


@pytest.mark.parametrize(
    ("message", "read"),
    [
        (LOGGED, Question),
        (Rephrased(request=LOGGED, question="?", mode="semantic"), Rephrased),
        (retrieved().model_copy(update={"request": LOGGED}), Retrieved),
    ],
    ids=["rephrase", "retrieve", "answer"],
)
async def test_a_question_that_was_given_up_has_an_outcome(
    message: Question | Rephrased | Retrieved, read: Any
) -> None:
    outcomes, sender = Outcomes(settings()), FakeSender()
    record = Record("any", 0, 1, b"c", message.encode())
    await with_deadline(away, read, SitePrompts(), Log(), outcomes)(record, sender)
    letter = DeadLetter("answer", "t", 0, 0, 0, "X", "no-such-code", "why", 6, NOON, NOON)
    await apology(read, SitePrompts(), Log(), outcomes)(record, letter, sender)
    failed = [(event.event.became, event.event.failed) for event in logged(sender) if isinstance(event.event, Outcome)]
    assert failed == [("failed", "elasticsearch-unavailable"), ("failed", "no-such-code")]


async def test_what_was_answered_is_not_logged_as_failed() -> None:
    written = [
        AnswerEvent(request_id=question().request_id, seq=seq, event=event)
        for seq, event in enumerate((Token(text="At 9."), answered(cited()), Done()))
    ]
    sender = FakeSender()
    # An earlier stage that sees the question again knows less: it says nothing.
    for message, read in (
        (retrieved().model_copy(update={"request": LOGGED}), Retrieved),
        (LOGGED, Question),
    ):
        handle = with_deadline(away, read, SitePrompts(), Log(*written), Outcomes(settings()))
        await handle(Record("any", 0, 1, b"c", message.encode()), sender)
    assert [event.event.became for event in logged(sender) if isinstance(event.event, Outcome)] == ["answered"]


@pytest.mark.parametrize("most", [2, 1])
def test_answers_that_have_not_been_given_yet_are_a_zero(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr("pipelines.runtime.settings.LABELLED_SITES", most)
    names = [f"quiet-{most}", f"still-{most}"]
    Outcomes(Settings(sites=dict.fromkeys(names, SiteSettings())))
    assert [site for site in names if has_figures(site)] == (names if most == 2 else [])
    assert has_figures("") or most == 2


def has_figures(site: str) -> bool:
    labels = [{"site": site, "became": got} for got in BECAME]
    return all(REGISTRY.get_sample_value("pagewire_answers_total", each) is not None for each in labels)


async def test_a_tool_is_named_and_its_result_masked_like_the_words_that_it_repeats() -> None:
    number = "0171 2345678"
    result = source(2, f"- phone: {number}\n\nKnown").model_copy(
        update={"kind": "tool", "page_id": "find", "cited": True}
    )
    event = await said(passages(), Published(answered(result, text=f"{number} is known."), None))
    assert event is not None
    assert isinstance(event.event, Outcome)
    assert (event.event.tools, event.event.hits, event.event.became) == (("find",), (), "answered")
    assert event.event.answer is not None
    assert event.event.answer == "[phone] is known."


def test_a_question_back_is_no_refusal() -> None:
    waiting = PendingCall(tool="find", arguments="{}", missing=("phone",))
    end = answered(text="Which number?", pending=waiting)
    assert outcome(passages(), end, None).became == "answered"
