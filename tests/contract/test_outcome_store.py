"""What the question log relies on, the same for the real Elasticsearch and for its in-memory sibling."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, Protocol
from uuid import uuid4

import numpy as np
import pytest

from adapters.elastic.bundle import Elastic
from adapters.elastic.outcomes import ElasticOutcomes
from pipelines.query.log.frequent import AnsweredQuestion, AnsweredReader
from pipelines.query.log.ports import BadCursor, OutcomeStore, QuestionReader
from schemas.conversation import Feedback
from schemas.outcome import (
    DoubtedSentence,
    Forgotten,
    Outcome,
    OutcomeEvent,
    OutcomeSource,
    QuestionFilter,
    QuestionList,
    Rated,
    ToolRun,
    Verdict,
    VerdictEvent,
)
from schemas.query import Gate, ModelCall, PromptMessage, QuestionVector
from tests.asking import NOON
from tests.engine_fixture import Servers
from tests.fakes.outcomes import FakeOutcomes
from wiring.settings import Settings


class Store(OutcomeStore, QuestionReader, AnsweredReader, Protocol):
    """Both sides of it."""


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.engine)])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    if request.param == "fake":
        yield FakeOutcomes()
        return
    engine: Servers = request.getfixturevalue("engine")
    async with Elastic(engine.elasticsearch, Settings()) as elastic:
        yield ElasticOutcomes(elastic.es, elastic.indexes)


@pytest.fixture
def site() -> str:
    """Nobody else's on servers that are everybody's."""
    return f"t{uuid4().hex[:10]}"


def happened(site: str, n: int, event: Outcome | Rated | Forgotten, conversation: str = "c1") -> OutcomeEvent:
    return OutcomeEvent(site=site, request_id=f"request-{n:04}", conversation=conversation, event=event)


def outcome(minutes: int = 0, **changes: Any) -> Outcome:
    gate = Gate(distance=0.2, entropy=0, subject=0.5, by_figures=0, signals={"top": 0.8})
    return Outcome(
        asked_at=NOON + timedelta(minutes=minutes),
        asked_in="en",
        lang="en",
        question="When does the pool open?",
        rephrased="opening hours pool",
        became="answered",
        grade=0,
        gate=gate,
        hits=(
            OutcomeSource(page_id="pool", lang="en", field="content", ord=3, score=0.5, cosine=0.8, cited=True),
            OutcomeSource(page_id="sauna", lang="en", field="title", ord=0, score=0.4),
        ),
        timings_ms={"answer": 7.5},
    ).model_copy(update=changes)


def rated(rating: str = "down", comment: str | None = "The hours are wrong.") -> Rated:
    return Rated(feedback=Feedback.stored({"rating": rating, "comment": comment, "at": NOON}))


def judged(site: str, n: int, **changes: Any) -> VerdictEvent:
    verdict = Verdict(judged_at=NOON, judge="small", prompts="a1", faithfulness=0.5, context_relevancy=1.0)
    return VerdictEvent(
        site=site,
        request_id=f"request-{n:04}",
        conversation="c1",
        asked_at=NOON,
        verdict=verdict.model_copy(update=changes),
    )


async def listed(store: Store, site: str, count: int, limit: int = 50, **wanted: Any) -> QuestionList:
    """Once it has that many: an index refreshes without telling."""
    async with asyncio.timeout(20):
        while True:
            found = await store.find(site, QuestionFilter(**wanted), limit)
            if found.counts.asked == count:
                return found
            await asyncio.sleep(0.05)


async def test_an_outcome_is_read_as_it_was_said_and_twice_is_once(store: Store, site: str) -> None:
    for _ in range(2):
        await store.put(happened(site, 1, outcome()))
    kept = await store.get(site, "request-0001")
    assert kept is not None
    assert (kept.outcome, kept.conversation, kept.feedback, kept.erased) == (outcome(), "c1", None, False)
    assert (await listed(store, site, 1)).counts.answered == 1
    assert await store.get(f"{site}x", "request-0001") is None


@pytest.mark.parametrize("first", ["outcome", "feedback"])
async def test_feedback_joins_its_question_whichever_comes_first(store: Store, site: str, first: str) -> None:
    events = [happened(site, 1, outcome()), happened(site, 1, rated("up", None)), happened(site, 1, rated())]
    if first == "feedback":
        events = [*events[1:], events[0]]
    for event in events:
        await store.put(event)
    kept = await store.get(site, "request-0001")
    assert kept is not None
    assert kept.feedback == rated().feedback
    assert kept.outcome == outcome()


@pytest.mark.parametrize("first", ["outcome", "verdict"])
async def test_a_verdict_joins_its_question_whichever_comes_first(store: Store, site: str, first: str) -> None:
    if first == "outcome":
        await store.put(happened(site, 1, outcome()))
    await store.put_verdict(judged(site, 1, faithfulness=0.25))
    await store.put_verdict(judged(site, 1))
    await store.put(happened(site, 1, outcome()))
    await store.put(happened(site, 1, rated()))
    kept = await store.get(site, "request-0001")
    assert kept is not None
    assert (kept.outcome, kept.verdict) == (outcome(), judged(site, 1).verdict)
    assert kept.feedback == rated().feedback
    [row] = (await listed(store, site, 1)).questions
    assert (row.faithfulness, row.context_relevancy) == (0.5, 1.0)


async def test_a_verdict_brings_no_words_back(store: Store, site: str) -> None:
    assert not await store.forgotten(site, "request-0001")
    await store.put(happened(site, 1, Forgotten(at=NOON, requests=("request-0001",))))
    assert await store.forgotten(site, "request-0001")  # before its outcome is known
    await store.put(happened(site, 1, outcome()))
    await store.put_verdict(judged(site, 1, unjudged="judge-unreadable"))
    assert await store.forgotten(site, "request-0001")
    kept = await store.get(site, "request-0001")
    assert kept is not None
    assert (kept.erased, kept.outcome.question) == (True, None)
    assert kept.verdict is not None
    assert kept.verdict.unjudged == "judge-unreadable"


async def test_what_models_read_is_shown_with_its_question_and_forgotten_with_it(store: Store, site: str) -> None:
    call = ModelCall(step="answer", messages=(PromptMessage(role="user", text="When?"),), reply="At 8. At 9.")
    doubted = DoubtedSentence(sentence="At 8.", kind="figure", said="8", cited=(1,))
    run = ToolRun(call='hours({"day": "Monday"})', said="[2] At 9.", ms=2.0)
    whole = outcome(answer="At 9.", calls=(call,), doubted=(doubted,), tool_runs=(run,))
    await store.put(happened(site, 1, whole))
    # Said again by a worker that has not seen the models' calls.
    await store.put(happened(site, 1, outcome(answer="At 9.", tool_runs=(run,))))
    await store.put(happened(site, 2, whole, conversation="c2"))
    assert (await listed(store, site, 2)).questions[0].question == whole.question
    kept = await store.get(site, "request-0001")
    assert kept is not None
    assert kept.outcome == whole
    await store.put(happened(site, 1, Forgotten(at=NOON, requests=("request-0001",))))
    await store.put(happened(site, 1, whole))  # delivered again
    for n, (calls, doubts, runs) in enumerate([((), (), ()), ((call,), (doubted,), (run,))], 1):
        kept = await store.get(site, f"request-{n:04}")
        assert kept is not None
        assert (kept.outcome.calls, kept.outcome.doubted, kept.outcome.tool_runs) == (calls, doubts, runs)


async def test_feedback_alone_is_no_question(store: Store, site: str) -> None:
    await store.put(happened(site, 1, rated()))
    await store.put(happened(site, 2, outcome()))
    assert await store.get(site, "request-0001") is None
    assert [row.request_id for row in (await listed(store, site, 1)).questions] == ["request-0002"]


async def test_questions_are_found_by_all_that_is_known_of_them(store: Store, site: str) -> None:
    await store.put(happened(site, 1, outcome()))
    await store.put(happened(site, 1, rated()))
    await store.put(
        happened(site, 2, outcome(1, became="refused", asked_in="de", question="Sauna?", rephrased=None, hits=()))
    )
    await store.put(happened(site, 3, outcome(2, became="failed", question=None, rephrased=None, failed="timeout")))
    everything = await listed(store, site, 3)
    assert [row.request_id for row in everything.questions] == ["request-0003", "request-0002", "request-0001"]
    assert everything.next is None
    counts = everything.counts
    assert (counts.answered, counts.refused, counts.failed, counts.liked, counts.disliked) == (1, 1, 1, 0, 1)
    assert everything.questions[2].pages == ("pool",)
    assert everything.questions[2].comment == "The hours are wrong."
    for wanted, expected in (
        ({"became": "refused"}, [2]),
        ({"lang": "de"}, [2]),
        ({"lang": "en"}, [3, 2, 1]),
        ({"feedback": "down"}, [1]),
        ({"feedback": "any"}, [1]),
        ({"feedback": "up"}, []),
        ({"page": "pool"}, [3, 1]),
        ({"page": "sauna"}, []),
        ({"since": NOON + timedelta(minutes=1)}, [3, 2]),
        ({"until": NOON + timedelta(minutes=1)}, [1]),
        ({"text": "POOL op"}, [1]),
        ({"text": "hours wrong"}, [1]),
        ({"text": "sau"}, [2]),
        ({"text": "pool sauna"}, []),
    ):
        found = await store.find(site, QuestionFilter(**wanted), 50)
        assert [int(row.request_id[-4:]) for row in found.questions] == expected, wanted
        assert found.counts.asked == len(expected)


async def test_a_long_list_is_read_page_by_page(store: Store, site: str) -> None:
    for n in range(5):
        await store.put(happened(site, n, outcome(n // 2)))  # two at a time are of the same moment
    page = await listed(store, site, 5, limit=2)
    seen = [row.request_id for row in page.questions]
    while page.next is not None:
        assert page.counts.asked == 5
        page = await store.find(site, QuestionFilter(), 2, page.next)
        seen += [row.request_id for row in page.questions]
    assert seen == [f"request-{n:04}" for n in (4, 2, 3, 0, 1)]
    with pytest.raises(BadCursor):
        await store.find(site, QuestionFilter(), 2, "not-a-cursor")


async def test_a_site_that_nobody_has_asked_has_no_questions(store: Store, site: str) -> None:
    found = await store.find(site, QuestionFilter(), 50)
    assert (found.counts.asked, found.questions, found.next) == (0, (), None)


async def test_a_conversation_is_forgotten_also_what_is_still_on_its_way(store: Store, site: str) -> None:
    await store.put(happened(site, 1, outcome()))
    await store.put(happened(site, 1, rated()))
    await store.put(happened(site, 2, outcome(), conversation="c2"))
    await store.put(happened(site, 9, Forgotten(at=NOON, requests=("request-0009",))))
    await store.put(happened(site, 9, outcome()))  # its answer was under way
    await store.put(happened(site, 9, rated()))
    await listed(store, site, 3)
    for n in (1, 9):
        kept = await store.get(site, f"request-{n:04}")
        assert kept is not None
        assert kept.erased
        assert kept.outcome == outcome(question=None, rephrased=None)  # what was found is no word of the visitor's
        assert kept.feedback is not None
        assert (kept.feedback.rating, kept.feedback.comment) == ("down", None)
    other = await store.get(site, "request-0002")
    assert other is not None
    assert other.outcome == outcome()
    assert (await store.find(site, QuestionFilter(text="wrong"), 50)).counts.asked == 0


async def test_questions_are_read_with_vectors_until_they_are_forgotten(store: Store, site: str) -> None:
    vector = QuestionVector.of("fake-4", np.array([0.6, 0.8, 0, 0], dtype=np.float32))
    await store.put(happened(site, 1, outcome(vector=vector, answer="From 9.", left_out=2)))
    await store.put(happened(site, 1, rated()))
    await store.put(happened(site, 2, outcome(1, vector=vector, rephrased=None), conversation="c2"))
    await store.put(happened(site, 3, outcome(2, became="courtesy", vector=None)))
    await store.put(happened(site, 4, outcome(10, vector=vector)))
    await listed(store, site, 4)
    until = NOON + timedelta(minutes=5)
    second, first = await store.asked(site, NOON, until, 50)
    assert (first.request_id, second.request_id) == ("request-0001", "request-0002")
    assert (first.question, first.text) == ("When does the pool open?", "opening hours pool")
    assert second.text == "When does the pool open?"
    assert (first.rating, second.rating, first.left_out, first.grade, first.lang) == ("down", None, 2, 0, "en")
    assert first.vector == vector
    assert [(hit.page_id, hit.cosine, hit.cited) for hit in first.hits] == [("pool", 0.8, True), ("sauna", None, False)]
    assert [one.request_id for one in await store.asked(site, NOON, until, 1)] == ["request-0002"]
    assert await store.asked(f"{site}x", NOON, until, 50) == []
    kept = await store.get(site, "request-0001")
    assert kept is not None
    assert (kept.outcome.vector, kept.outcome.answer) == (None, "From 9.")
    await store.put(happened(site, 1, Forgotten(at=NOON, requests=("request-0001",))))
    await store.put(happened(site, 1, outcome(vector=vector, answer="From 9.")))  # delivered again
    async with asyncio.timeout(20):
        while True:
            forgotten = (await store.asked(site, NOON, until, 50))[1]
            if forgotten.text is None:
                break
            await asyncio.sleep(0.05)
    assert (forgotten.question, forgotten.vector) == (None, None)
    erased = await store.get(site, "request-0001")
    assert erased is not None
    assert (erased.erased, erased.outcome.answer) == (True, None)
    assert len(forgotten.hits) == 2


async def test_each_site_has_a_time_of_its_own(store: Store, site: str) -> None:
    later = f"{site}x"
    for each in (site, later):
        await store.put(happened(each, 1, outcome(-1)))
        await store.put(happened(each, 2, rated()))  # its outcome never came
    assert await store.expire({site: NOON - timedelta(days=2), later: NOON}) == {later: 1}
    assert await store.expire({site: NOON + timedelta(days=1), later: NOON}) == {site: 2}
    assert await store.expire({later: NOON + timedelta(days=1)}) == {later: 1}


async def test_what_is_too_old_goes_with_its_feedback(store: Store, site: str) -> None:
    await store.put(happened(site, 1, outcome(-1)))
    await store.put(happened(site, 1, rated()))  # later than the limit; its question counts
    await store.put(happened(site, 2, outcome()))
    await store.put(happened(site, 3, rated()))  # its outcome never came
    assert await store.expire({f"{site}x": NOON}) == await store.expire({}) == {}
    assert await store.expire({site: NOON, f"{site}x": NOON + timedelta(1)}) == {site: 1}
    assert await store.expire({site: NOON}) == {}
    assert await store.get(site, "request-0001") is None
    assert await store.get(site, "request-0002") is not None
    assert await store.expire({site: NOON + timedelta(seconds=1)}) == {site: 2}


async def test_what_corrections_have_answered_is_counted_for_each_site_alone(store: Store, site: str) -> None:
    assert await store.corrections_used(site) == {}
    used: list[tuple[str, ...]] = [("c1",), ("c1", "w1"), (), ("c1",)]
    for n, ids in enumerate(used):
        said = outcome(n, corrections=ids, corrected="answer" if ids else None)
        await store.put(happened(site, n, said))
        await store.put(happened(site, n, said))  # twice is once
    await store.put(happened(f"{site}x", 9, outcome(corrections=("c1",))))

    await listed(store, site, len(used))
    assert await store.corrections_used(site) == {"c1": 3, "w1": 1}
    since, until_then = NOON - timedelta(days=1), NOON + timedelta(days=1)
    assert [one.corrected for one in await store.asked(site, since, until_then, 9)] == [True, False, True, True]


async def test_answered_questions_are_read_without_what_became_of_others(store: Store, site: str) -> None:
    open_to_all = {"restricted": False, "asker": "a1"}
    await store.put(happened(site, 1, outcome(1, **open_to_all)))
    await store.put(happened(site, 2, outcome(2, **open_to_all, stopped=True)))
    await store.put(happened(site, 3, outcome(3)))
    await store.put(happened(site, 3, rated()))
    await store.put(happened(site, 4, outcome(4, became="refused")))
    await store.put(happened(site, 5, outcome(5, question=None)))
    await store.put(happened(site, 6, outcome(-60)))
    await store.put(happened(site, 7, outcome(7, **open_to_all), conversation="c2"))
    await store.put(happened(site, 7, Forgotten(at=NOON, requests=("request-0007",)), conversation="c2"))
    await listed(store, site, 7)
    pool = frozenset({("pool", "en")})

    def read(asker: str, restricted: bool | None, doubtful: bool) -> AnsweredQuestion:
        return AnsweredQuestion("When does the pool open?", "en", asker, pool, restricted, doubtful)

    found = await store.answered(site, NOON, 50)
    assert found == [read("", None, True), read("a1", False, True), read("a1", False, False)]
    assert await store.answered(site, NOON, 1) == found[:1]
    kept = await store.get(site, "request-0007")
    assert kept is not None
    assert kept.outcome.asker == ""
    assert await store.answered(f"{site}x", NOON, 50) == []


@pytest.mark.engine
async def test_an_erasure_after_its_index_was_deleted_is_kept(engine: Servers, site: str) -> None:
    async with Elastic(engine.elasticsearch, Settings()) as elastic:
        store = ElasticOutcomes(elastic.es, elastic.indexes)
        await store.put(happened(site, 1, outcome()))
        await elastic.es.indices.delete(index=store.index)
        await store.put(happened(site, 2, Forgotten(at=NOON, requests=("request-0002",))))
        assert await store.forgotten(site, "request-0002")
        mapping = (await elastic.es.indices.get_mapping(index=store.index))[store.index]["mappings"]
        assert mapping["dynamic"] != "true"
