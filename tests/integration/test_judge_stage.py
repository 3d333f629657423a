"""The judge stage and the log stage on the real Kafka and Elasticsearch, with a model server that is scripted."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from adapters.elastic.bundle import Elastic
from adapters.elastic.outcomes import ElasticOutcomes
from adapters.kafka import KafkaSender, ensure_topics, prefixed
from adapters.kafka.log import KafkaLogReader
from pipelines.runtime.record import Record
from pipelines.runtime.settings import SamplingSettings
from pipelines.runtime.stage import Stage
from schemas.answer import Answered, AnswerEvent, Done, Token
from schemas.outcome import Outcome, OutcomeEvent, OutcomeSource, VerdictEvent
from schemas.topics import ANSWERS, OUTCOMES, VERDICTS, Topic, all_topics
from tests.asking import source
from tests.engine_fixture import Servers
from tests.scripted_llm import Reply, ScriptedLLM
from wiring.evaluating import judge_stage
from wiring.query import log_stage
from wiring.settings import Settings, SiteSettings

pytestmark = pytest.mark.engine


@pytest.fixture
async def settings(engine: Servers) -> AsyncIterator[Settings]:
    """Topics and a site of its own, of which two answers a day are judged."""
    name = f"t{uuid4().hex[:10]}"
    site = SiteSettings(judging=SamplingSettings(share=1.0, daily=2))
    made = Settings(
        kafka=engine.kafka,
        elasticsearch=engine.elasticsearch,
        topic_prefix=f"{name}.",
        partitions=2,
        sites={name: site},
        judging_model="scripted",
    )
    await ensure_topics(engine.kafka, made)
    yield made
    admin = AIOKafkaAdminClient(bootstrap_servers=engine.kafka)
    await admin.start()
    try:
        await admin.delete_topics([prefixed(made, topic) for topic in all_topics()])
    finally:
        await admin.close()


def judges(body: dict[str, Any]) -> Reply:
    """One claim of two is borne out, and the only source was needed."""
    asked = body["messages"][0]["content"]
    if "needed" in asked:
        said: dict[str, Any] = {"needed": [1]}
    elif "bear it out" in asked:
        said = {"verdicts": [{"n": 1, "relation": "entailed"}, {"n": 2, "relation": "neither"}]}
    else:
        said = {"claims": ["It costs 18 euros.", "It lasts for ever."]}
    return Reply([json.dumps(said)])


async def answered(sender: KafkaSender, site: str, n: int, at: datetime) -> None:
    """An answer as a visitor got it, and what became of its question."""
    request = f"request-{n:04}"
    cited = source(1, "A card costs 18 euros.").model_copy(update={"cited": True})
    whole = Answered(text="It costs 18 euros, for ever.", citations=(), sources=(cited,), extractive=False)
    for seq, event in enumerate((Token(text="It costs"), whole, Done())):
        await sender.send(ANSWERS, request, AnswerEvent(request_id=request, site=site, seq=seq, event=event))
    outcome = Outcome(
        asked_at=at,
        asked_in="en",
        lang="en",
        question="What does a card cost?",
        became="answered",
        grade=0,
        hits=(OutcomeSource(page_id="p1", lang="en", field="content", ord=0, score=0.5, cited=True),),
        answer=whole.text,
    )
    said = OutcomeEvent(site=site, request_id=request, conversation="c1", event=outcome)
    await sender.send(OUTCOMES, said.key, said)


async def read(settings: Settings, topic: Topic) -> list[Record]:
    async with KafkaLogReader(settings, topic) as log:
        return await log.since(0)


async def work(stage: Stage, topic: Topic, sender: KafkaSender, settings: Settings) -> None:
    """All that stands in a topic, by a worker that has just been started."""
    assert stage.teardown
    if stage.setup is not None:
        await stage.setup()
    for record in await read(settings, topic):
        await stage.routes[topic](replace(record, attempt=1), sender)
    await stage.teardown()


async def test_a_sample_of_the_answers_is_judged_once_within_its_budget(engine: Servers, settings: Settings) -> None:
    [site] = settings.sites
    async with (
        ScriptedLLM(judges) as model,
        Elastic(engine.elasticsearch, settings) as elastic,
        KafkaSender(settings) as sender,
    ):
        own = settings.model_copy(update={"openai_base_url": model.url})
        at = datetime.now(UTC)  # the three of them are of one day
        for n in range(3):
            await answered(sender, site, n, at)
        for _ in range(2):  # the second one is started anew, and gets everything again
            await work(judge_stage(own, elastic, again=0.0), OUTCOMES, sender, settings)
        said = [VerdictEvent.decode(record.value) for record in await read(settings, VERDICTS)]
        assert [one.request_id for one in said] == ["request-0000", "request-0001"]
        assert len(model.requests) == 2 * 3
        for topic in (VERDICTS, OUTCOMES):  # whichever comes first
            await work(log_stage(own, elastic), topic, sender, settings)
        log = ElasticOutcomes(elastic.es, elastic.indexes)
        for one in said:
            kept = await log.get(site, one.request_id)
            assert kept is not None
            assert kept.verdict == one.verdict
            assert (one.verdict.faithfulness, one.verdict.context_relevancy) == (0.5, 1.0)
            assert (kept.outcome.question, one.verdict.unjudged) == ("What does a card cost?", None)
        left = await log.get(site, "request-0002")
        assert left is not None
        assert left.verdict is None
        await elastic.es.indices.refresh(index="pagewire.outcomes")
        assert await log.expire({site: at + timedelta(seconds=1)}) == {site: 3}  # nothing is left behind
