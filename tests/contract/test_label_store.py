"""What labelling relies on, the same for the real Elasticsearch and for its in-memory sibling."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import uuid4

import pytest

from adapters.elastic.bundle import Elastic
from adapters.elastic.indexes import OUTCOMES
from adapters.elastic.labels import ElasticLabels
from adapters.elastic.outcomes import ElasticOutcomes, document_id
from adapters.fake_labels import FakeLabels
from adapters.fake_outcomes import FakeOutcomes
from pipelines.evaluate.labelling.labelled import LabelsStand, given, settled
from pipelines.evaluate.labelling.ports import Candidate, JudgedAnswer, LabelStore, UnknownQuestion
from pipelines.query.log.ports import OutcomeStore
from schemas.conversation import Feedback
from schemas.label import AnswerLabel, Mark
from schemas.outcome import Forgotten, Outcome, OutcomeEvent, Rated, Verdict, VerdictEvent
from tests.asking import NOON
from tests.engine_fixture import Servers
from wiring.settings import Settings


class Stores(NamedTuple):
    """One log by both its sides."""

    log: OutcomeStore
    labels: LabelStore
    raw: Callable[[str, str], Awaitable[str]]  # all that is kept of a question


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.engine)])
async def stores(request: pytest.FixtureRequest) -> AsyncIterator[Stores]:
    if request.param == "fake":
        log = FakeOutcomes()

        async def kept(site: str, request_id: str) -> str:
            return str(log.kept[site, request_id])

        yield Stores(log, FakeLabels(log), kept)
        return
    engine: Servers = request.getfixturevalue("engine")
    async with Elastic(engine.elasticsearch, Settings()) as elastic:

        async def document(site: str, request_id: str) -> str:
            return str((await elastic.es.get(index=OUTCOMES, id=document_id(site, request_id)))["_source"])

        of = (elastic.es, elastic.indexes)
        yield Stores(ElasticOutcomes(*of), ElasticLabels(*of), document)


@pytest.fixture
def site() -> str:
    """Nobody else's on servers that are everybody's."""
    return f"t{uuid4().hex[:10]}"


def asked(site: str, n: int, conversation: str = "c1", **changes: Any) -> OutcomeEvent:
    outcome = Outcome(
        asked_at=NOON + timedelta(minutes=n),
        asked_in="en",
        lang="en",
        question=f"When does pool {n} open?",
        became="answered",
        answer="At nine.",
    )
    event = outcome.model_copy(update=changes)
    return OutcomeEvent(site=site, request_id=f"request-{n:04}", conversation=conversation, event=event)


def label(rater: str, mark: Mark = "right", **more: Any) -> AnswerLabel:
    return AnswerLabel(rater=rater, at=NOON, mark=mark, **more)


async def candidates(labels: LabelStore, site: str, count: int) -> list[Candidate]:
    """Once there are so many: an index refreshes without telling."""
    async with asyncio.timeout(20):
        while True:
            found = await labels.candidates(site, NOON, 100)
            if len(found) == count:
                return list(found)
            await asyncio.sleep(0.05)


async def test_labels_stand_with_their_question(stores: Stores, site: str) -> None:
    await stores.log.put(asked(site, 1))
    await stores.labels.change(site, "request-0001", given(label("ada", "partly", why="No price.", pages=("pool",))))
    await stores.labels.change(site, "request-0001", given(label("ada", "wrong", better="At ten.")))
    await stores.log.put(asked(site, 1))  # twice, as by a worker that took over
    await stores.labels.change(site, "request-0001", given(label("user:bo@town.example")))
    await stores.labels.change(site, "request-0001", settled(label("ada", "partly")))
    for found in (await stores.labels.get(site, "request-0001"), *await stores.labels.of_site(site, 10)):
        assert found is not None
        assert found.labels == (label("ada", "wrong", better="At ten."), label("user:bo@town.example"))
        assert found.settled == label("ada", "partly")
        assert (found.question.outcome.question, found.question.outcome.answer) == (
            "When does pool 1 open?",
            "At nine.",
        )
    assert len(await stores.labels.of_site(site, 10)) == 1
    assert await stores.labels.of_site(f"{site}x", 10) == []


async def test_verdicts_are_read_with_their_questions_the_newest_first(stores: Stores, site: str) -> None:
    for n in (1, 2, 3):
        await stores.log.put(asked(site, n, asked_in="de" if n == 2 else "en"))
    for n, figures in ((1, {"faithfulness": 0.5, "context_relevancy": 1.0}), (2, {"faithfulness": 1.0})):
        verdict = Verdict(judged_at=NOON, judge="small", prompts="a1", **figures)
        id, at = f"request-{n:04}", NOON + timedelta(minutes=n)
        event = VerdictEvent(site=site, request_id=id, conversation="c1", asked_at=at, verdict=verdict)
        await stores.log.put_verdict(event)
    await candidates(stores.labels, site, 3)
    wanted = [
        JudgedAnswer("request-0002", "de", "small", "a1", {"faithfulness": 1.0}),
        JudgedAnswer("request-0001", "en", "small", "a1", {"faithfulness": 0.5, "context relevancy": 1.0}),
    ]
    async with asyncio.timeout(20):
        while list(await stores.labels.judged(site, NOON, 100)) != wanted:  # noqa: ASYNC110  # as above
            await asyncio.sleep(0.05)
    assert await stores.labels.judged(site, NOON + timedelta(minutes=2), 100) == wanted[:1]
    assert await stores.labels.judged(f"{site}x", NOON, 100) == []


async def test_a_rule_that_refuses_changes_nothing(stores: Stores, site: str) -> None:
    await stores.log.put(asked(site, 1))
    for rater in ("ada", "bo"):
        await stores.labels.change(site, "request-0001", given(label(rater)))
    with pytest.raises(LabelsStand):
        await stores.labels.change(site, "request-0001", given(label("eve", "wrong")))
    with pytest.raises(LabelsStand):
        await stores.labels.change(site, "request-0001", given(label("ada", "wrong")))
    found = await stores.labels.get(site, "request-0001")
    assert found is not None
    assert found.labels == (label("ada"), label("bo"))


async def test_raters_at_the_same_time_lose_nothing(stores: Stores, site: str) -> None:
    await stores.log.put(asked(site, 1))
    raters = [stores.labels.change(site, "request-0001", given(label(rater))) for rater in ("ada", "bo", "eve")]
    done = await asyncio.gather(*raters, return_exceptions=True)
    found = await stores.labels.get(site, "request-0001")
    assert found is not None
    assert len(found.labels) == 2
    assert [type(each) for each in done if isinstance(each, BaseException)] == [LabelsStand]


async def test_an_erased_conversation_takes_its_labels_along_and_takes_no_more(stores: Stores, site: str) -> None:
    await stores.log.put(asked(site, 1))
    await stores.log.put(asked(site, 2, "c2"))
    for n in (1, 2):
        await stores.labels.change(site, f"request-{n:04}", given(label("ada", why="It is Eve's pool.")))
    gone = Forgotten(at=NOON, requests=("request-0001",))
    await stores.log.put(OutcomeEvent(site=site, request_id="request-0001", conversation="c1", event=gone))
    await stores.log.put(asked(site, 1))
    with pytest.raises(UnknownQuestion):
        await stores.labels.change(site, "request-0001", given(label("bo")))
    found = await stores.labels.get(site, "request-0001")
    assert found is not None
    assert (found.labels, found.settled, found.question.erased) == ((), None, True)
    raw = await stores.raw(site, "request-0001")
    assert "Eve" not in raw
    assert "ada" not in raw
    assert "Eve" in await stores.raw(site, "request-0002")
    [left] = await candidates(stores.labels, site, 1)
    assert (left.request_id, left.raters) == ("request-0002", ("ada",))
    assert [each.question.request_id for each in await stores.labels.of_site(site, 10)] == ["request-0002"]


async def test_what_is_too_old_takes_its_labels_along(stores: Stores, site: str) -> None:
    await stores.log.put(asked(site, 1))
    await stores.labels.change(site, "request-0001", given(label("ada")))
    assert await stores.log.expire({site: NOON + timedelta(hours=1)}) == {site: 1}
    with pytest.raises(UnknownQuestion):
        await stores.labels.change(site, "request-0001", given(label("bo")))
    assert await stores.labels.get(site, "request-0001") is None
    assert await stores.labels.of_site(site, 10) == []


async def test_candidates_have_words_and_an_answer(stores: Stores, site: str) -> None:
    for event in (
        asked(site, 1),
        asked(site, 2, became="refused", asked_in="de"),
        asked(site, 3, became="courtesy"),
        asked(site, 4, became="failed"),
        asked(site, 5, question=None),
        asked(site, 6, answer=None),
        asked(site, -1),
    ):
        await stores.log.put(event)
    rated = Rated(feedback=Feedback(rating="down", at=NOON))
    await stores.log.put(OutcomeEvent(site=site, request_id="request-0002", conversation="c1", event=rated))
    await stores.labels.change(site, "request-0001", given(label("ada")))
    assert await candidates(stores.labels, site, 2) == [
        Candidate("request-0002", "de", "refused", disliked=True, raters=()),
        Candidate("request-0001", "en", "answered", disliked=False, raters=("ada",)),
    ]


async def test_what_was_asked_before_a_question(stores: Stores, site: str) -> None:
    for n, conversation in ((1, "c1"), (2, "c2"), (3, "c1"), (4, "c1"), (5, "c1")):
        await stores.log.put(asked(site, n, conversation))
    await candidates(stores.labels, site, 5)
    found = await stores.labels.get(site, "request-0004")
    assert found is not None
    assert await stores.labels.earlier(found.question) == ["When does pool 1 open?", "When does pool 3 open?"]
