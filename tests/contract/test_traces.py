"""An answer's trace, whole: from the visitor's request through each stage, Elasticsearch and the model to the answer.

All in this process, but nothing is handed from one part to the next that would not be between processes: a message is
what the real sender gave the producer, headers included, and each stage works on it in a context of its own.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from contextvars import Context
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import numpy as np
import orjson
import pytest
from elastic_transport import ApiResponseMeta, BaseAsyncNode, HttpHeaders
from elastic_transport._node import NodeApiResponse

from adapters.elastic.client import TracedElasticsearch
from adapters.embedders.local import LocalEmbedder
from adapters.embedders.model_threads import ModelThreads
from adapters.kafka import sender as sender_module
from adapters.kafka.sender import KafkaSender
from adapters.llm.registry import ChatRegistry
from gateway.app import create_app
from pipelines.conversations.ask import Asker
from pipelines.query.answer.answering import Answering
from pipelines.query.answer.handler import answer_handler
from pipelines.query.answer.stops import Stops
from pipelines.query.answer.strategies.base import StrategyContext
from pipelines.query.answer.strategies.registry import strategies
from pipelines.query.examples import Examples
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.outcomes import Outcomes
from pipelines.query.rephrase.handler import rephrase_handler
from pipelines.query.rephrase.rewrite import Rewriter
from pipelines.query.token_budget import TokenBudget
from pipelines.runtime.record import Record
from pipelines.runtime.retry import RetryPolicy
from pipelines.runtime.stage import Handler, Sender, Stage
from schemas.example import WorkedExample
from schemas.query import Rephrased, Retrieved, Source
from schemas.topics import ANSWERS, OUTCOMES, REPHRASED, REQUESTS, RETRIEVED, Topic
from tests.asking import source
from tests.edge import ADMIN, bearer, edge_settings
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.ports import FakePorts
from tests.scripted_llm import Reply, ScriptedLLM
from tests.tracing import Seen, traced
from wiring.settings import Settings, SiteSettings
from worker.guard import Guard
from worker.in_flight import RecordInFlight

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = "00f067aa0ba902b7"
QUESTION = "When does the zebra pool open on Sundays?"
POOL = source(1, "The zebra pool opens daily at 9.")
PROMPTS = SitePrompts()


class Kafka:
    """Keeps what a producer is given, and hands it to whoever works on the topic, each in a context of its own."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.offsets: Counter[str] = Counter()
        self.workers: dict[str, Callable[[Record], Any]] = {}
        self.deliver: Callable[[Record], None] = lambda record: None
        self.at_work: set[asyncio.Task[None]] = set()

    # -- the producer, as KafkaSender asks for it --

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def send(
        self, name: str, value: bytes, *, key: bytes, partition: int | None, headers: list[tuple[str, bytes]]
    ) -> asyncio.Future[Any]:
        record = Record(name, 0, self.offsets[name], key, value, tuple(headers), fresh=True)
        self.offsets[name] += 1
        self.records.append(record)
        if name == ANSWERS.name:
            self.deliver(record)
        if name in self.workers:
            task = asyncio.create_task(self.workers[name](record), context=Context())
            self.at_work.add(task)
        confirmed: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        confirmed.set_result(SimpleNamespace(partition=0, offset=record.offset))
        return confirmed

    # -- the log of answers, and its tail --

    async def read(self, partition: int, start: int, end: int | None = None) -> list[Record]:
        return [each for each in self.records if each.topic == ANSWERS.name and each.offset >= start]

    async def of_key(self, key: str, since_ms: int, *, begins: tuple[int, int] | None = None) -> list[Record]:
        return []

    def tail(self, deliver: Callable[[Record], None]) -> Tail:
        return Tail(self, deliver)


class Tail:
    def __init__(self, kafka: Kafka, deliver: Callable[[Record], None]) -> None:
        self._kafka, self._deliver = kafka, deliver

    async def start(self) -> None:
        self._kafka.deliver = self._deliver

    async def aclose(self) -> None: ...

    def partition_of(self, key: str) -> int:
        return 0

    def position(self, partition: int) -> int:
        return self._kafka.offsets[ANSWERS.name]

    async def catch_up(self, key: str, seconds: float) -> None: ...

    own: frozenset[int] = frozenset()

    @asynccontextmanager
    async def following(self, partitions: Iterable[int]) -> AsyncIterator[None]:
        yield


class Stopped(Tail):
    """Of stops; none come."""

    async def start(self) -> None: ...


class Node(BaseAsyncNode):
    """Elasticsearch, which finds nothing and takes everything; `asked` are the headers it got."""

    asked: list[HttpHeaders]

    async def perform_request(  # type: ignore[override]
        self, method: str, target: str, body: bytes | None = None, headers: HttpHeaders | None = None, **_: Any
    ) -> NodeApiResponse:
        self.asked.append(headers or HttpHeaders())
        said = HttpHeaders({"x-elastic-product": "Elasticsearch", "content-type": "application/json"})
        meta = ApiResponseMeta(200, "1.1", said, 0.01, self.config)
        return NodeApiResponse(meta, orjson.dumps({"hits": {"hits": []}, "result": "created"}))

    async def close(self) -> None: ...


class NoExamples:
    async def of_site(self, site: str) -> list[WorkedExample]:
        return []


class NoPages:
    async def find(self, retrieved: Retrieved, query: str) -> tuple[Source, ...]:
        return ()

    page = find


class Letters(LocalEmbedder):
    """A model in this process: a text's vector is the mean of its letters'."""

    spec, fingerprint, profile = "fake", "fake-26", FakeEmbedder.profile

    def _load(self) -> Any:
        rows = np.eye(26, dtype=np.float32)
        embed = lambda windows: np.stack([rows[window].mean(axis=0) for window in windows])  # noqa: E731
        return SimpleNamespace(read=lambda text: [[ord(each) % 26 for each in text]], embed=embed, call_tokens=0)


class Models:
    """One embedder for all sites."""

    def __init__(self) -> None:
        self.embedder = Letters(ModelThreads("embedder-fake"))

    async def for_site(self, site: str) -> Letters:
        return self.embedder


def searching(es: TracedElasticsearch, models: Models) -> Handler:
    """Retrieve, in short: the question is embedded and searched for."""

    async def handle(record: Record, sender: Sender) -> None:
        asked = Rephrased.decode(record.value)
        embedder = await models.for_site(asked.request.site)
        await embedder.query(asked.question)
        await es.search(index="pagewire-town", query={"match": {"text": asked.question}})
        found = Retrieved(
            request=asked.request, question=asked.question, mode=asked.mode, grade=0, sources=(POOL,), timings_ms={}
        )
        await sender.send(RETRIEVED, asked.request.conversation_id, found)

    return handle


def keeping(es: TracedElasticsearch) -> Handler:
    """The question log, in short."""

    async def handle(record: Record, sender: Sender) -> None:
        await es.index(index="pagewire.outcomes", document=orjson.loads(record.value or b"{}"))

    return handle


class System:
    """The gateway and a worker for each stage."""

    def __init__(self, tmp_path: Path, llm: ScriptedLLM) -> None:
        self.kafka = Kafka()
        sites = {"town": SiteSettings(title="Town")}
        self.settings = Settings(
            sites=sites, kafka="k1:9092", llm_model="large", openai_base_url=llm.url, openai_api_key="hush-model"
        )
        self.edge = edge_settings(tmp_path)
        Node.asked = []
        self.es = TracedElasticsearch("http://e1:9200", node_class=Node)
        self.models = Models()
        token_budget = TokenBudget(self.settings)
        self.chat = ChatRegistry(self.settings, self.settings, token_budget)
        self.bus = KafkaSender(self.settings)
        examples = Examples(PROMPTS, NoExamples().of_site, self.models)  # type: ignore[arg-type]
        log = cast(Any, self.kafka)
        answering = Answering(self.settings, PROMPTS, strategies(StrategyContext(self.chat, PROMPTS, NoPages())))
        stops = Stops(log, lambda deliver: Stopped(self.kafka, deliver))
        outcomes = Outcomes(self.settings)
        self._work("rephrase", REQUESTS, rephrase_handler(self.settings, PROMPTS, Rewriter(self.chat, examples)))
        self._work("retrieve", REPHRASED, searching(self.es, self.models))
        self._work("answer", RETRIEVED, answer_handler(answering, log, stops, outcomes))
        self._work("log", OUTCOMES, keeping(self.es))

    def _work(self, name: str, topic: Topic, handler: Handler) -> None:
        stage = Stage(name, {topic: handler}, patient=False)
        guard = Guard(stage, topic, handler, self.bus, RetryPolicy(1, 0.0), 10.0)
        self.kafka.workers[topic.name] = lambda record: guard(RecordInFlight(record, b""))

    async def ask(self, **headers: str) -> httpx.Response:
        """What the visitor gets, when all is done that it has set off."""
        asker = Asker(cast(Any, self.bus), cast(Any, self.kafka), cast(Any, self.kafka.tail))
        await asker.start()
        app = create_app(self.edge, replace(FakePorts().ports, answers=asker))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway.test") as client:
            given = bearer(ADMIN) | headers
            answer = await client.post("/v1/sites/town/chat", json={"question": QUESTION}, headers=given)
        while left := [task for task in self.kafka.at_work if not task.done()]:
            await asyncio.gather(*left)
        await asker.aclose()
        return answer


@pytest.fixture
async def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[System, ScriptedLLM]]:
    replies = [Reply(["When does the zebra pool open?"]), Reply(["The zebra pool opens ", "daily at 9 [1]."])]
    async with ScriptedLLM(replies) as llm:
        made = System(tmp_path, llm)
        monkeypatch.setattr(sender_module, "AIOKafkaProducer", lambda **settings: made.kafka)
        async with made.bus, asyncio.timeout(30):
            yield made, llm
        await made.chat.aclose()
        await made.models.embedder.aclose()
        await made.es.close()


@pytest.fixture
def seen() -> Iterator[Seen]:
    with traced() as seen:
        yield seen


ASKED = ["POST /v1/sites/{site}/chat", "send query.requests", "process query.requests"]
SEARCHED = [*ASKED, "send query.rephrased", "process query.rephrased"]
ANSWERED = [*SEARCHED, "send query.retrieved", "process query.retrieved"]
LOGGED = [*ANSWERED, "send query.outcomes", "process query.outcomes"]


def askers(seen: Seen, name: str) -> set[str]:
    """Names of the spans in which the spans of this name began."""
    names = {span.context.span_id: span.name for span in seen.spans if span.context}
    return {names[span.parent.span_id] for span in seen.spans if span.name == name and span.parent}


async def test_an_answer_is_one_trace_from_the_request_to_the_question_log(
    system: tuple[System, ScriptedLLM], seen: Seen
) -> None:
    town, llm = system
    answer = await town.ask(traceparent=f"00-{TRACE}-{CALLER}-01", tracestate="vendor=1")
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-trace-id"] == TRACE
    assert answer.json()["answer"] == "The zebra pool opens daily at 9."
    assert {f"{span.context.trace_id:032x}" for span in seen.spans if span.context} == {TRACE}
    for path in ([*SEARCHED, "search pagewire-town"], [*LOGGED, "index pagewire.outcomes"]):
        assert seen.path(path[-1]) == path
    first = seen.one(ASKED[0])
    assert first.parent is not None
    assert f"{first.parent.span_id:016x}" == CALLER
    # Models are asked by the stages that need them, and their server knows of the trace each time.
    assert askers(seen, "chat large") == {"process query.requests", "process query.retrieved"}
    assert "process query.rephrased" in askers(seen, "embeddings fake")
    calls = {f"{span.context.span_id:016x}": span for span in seen.spans if span.name == "chat large" and span.context}
    told = [headers["traceparent"].split("-") for headers in llm.headers]
    assert [(trace, span in calls) for _, trace, span, _ in told] == [(TRACE, True), (TRACE, True)]
    assert all(dict(span.attributes or {})["gen_ai.usage.input_tokens"] == 11 for span in calls.values())
    # So does Elasticsearch.
    search = seen.one("search pagewire-town").context
    assert search
    assert Node.asked[0]["traceparent"].split("-")[1:3] == [TRACE, f"{search.span_id:016x}"]
    # Nothing else began, and no event of the answer is a span.
    calls_of_servers = ["chat large", "chat large", "search pagewire-town", "index pagewire.outcomes"]
    assert sorted(name for name in seen.names if name != "embeddings fake") == sorted([*LOGGED, *calls_of_servers])


async def test_no_span_holds_what_was_asked_or_answered_nor_an_id_or_a_key(
    system: tuple[System, ScriptedLLM], seen: Seen
) -> None:
    town, _ = system
    answer = (await town.ask()).json()
    told = "\n".join(span.to_json() for span in seen.spans)
    assert "query.outcomes" in told
    for secret in ("zebra", "daily", answer["request_id"], answer["conversation_id"], ADMIN, "hush-model"):
        assert secret not in told


async def test_log_lines_and_spans_have_the_same_id_without_a_callers(
    system: tuple[System, ScriptedLLM], seen: Seen
) -> None:
    town, _ = system
    answer = await town.ask(traceparent="nonsense")
    [trace] = {f"{span.context.trace_id:032x}" for span in seen.spans if span.context}
    assert answer.headers["x-trace-id"] == trace
    assert {record.trace_id for record in town.kafka.records} == {trace}


async def test_off_a_message_carries_what_it_always_did(system: tuple[System, ScriptedLLM]) -> None:
    town, llm = system
    answer = await town.ask(traceparent=f"00-{TRACE}-{CALLER}-01", tracestate="vendor=1")
    assert answer.status_code == 200
    assert {name for record in town.kafka.records for name, _ in record.headers} == {"pagewire-trace"}
    asked = [*llm.headers, *Node.asked]
    assert not [headers for headers in asked if "traceparent" in headers or "tracestate" in headers]
