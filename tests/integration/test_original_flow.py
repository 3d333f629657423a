"""`flow: original` on the wire: each sentence that docs/howto/flows.md says of it, held against what is sent.

A real Elasticsearch, whose requests are recorded, and a scripted model over HTTP.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.elastic.bundle import Elastic
from adapters.llm.registry import ChatRegistry
from pipelines.query.answer.answering import Answering
from pipelines.query.answer.strategies.base import StrategyContext
from pipelines.query.answer.strategies.registry import strategies
from pipelines.query.examples import Examples
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.publish import Publication
from pipelines.query.rephrase.handler import rephrase_handler
from pipelines.query.rephrase.rewrite import Rewriter
from pipelines.query.retrieve.handler import retrieve_handler
from pipelines.query.search.ports import EmbedderProfile
from pipelines.query.search.search import Searcher
from pipelines.query.token_budget import TokenBudget
from pipelines.runtime.record import Record
from schemas.answer import Answered, AnswerEvent, Token
from schemas.base import Message
from schemas.example import WorkedExample
from schemas.ingest import Vector32
from schemas.page import FIELDS
from schemas.query import Retrieved
from tests.asking import question
from tests.engine_fixture import Servers
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.pages import FakeSender
from tests.integration.test_search import DIMS, QUESTION, Bench
from tests.scripted_llm import Reply, ScriptedLLM
from tests.site_indexes import forget
from wiring.settings import Settings, SiteSettings

pytestmark = pytest.mark.engine

PAGE = Path(__file__).parents[2] / "docs/howto/flows.md"
EXPANDED = "When is the indoor pool open, opening hours, swimming times?"
ANSWER = "It costs 99 euros [1]. It is open daily [2]."  # no page says the first
CHUNKS = 14


class Model(FakeEmbedder):
    """One whose own floors are others than the flow's; every text is `QUESTION`."""

    def __init__(self) -> None:
        super().__init__(dims=DIMS)
        self.fingerprint = "fake"
        self.profile = EmbedderProfile(short_floor=0.95, content_floor=0.95)

    async def for_site(self, site: str) -> Model:
        return self

    async def query(self, text: str) -> Vector32:
        self.asked.append(text)
        return QUESTION


class NoExamples:
    async def of_site(self, site: str) -> list[WorkedExample]:
        return []


@dataclass
class Wire:
    """What one question has sent."""

    embedded: list[str] = field(default_factory=list)
    searches: list[dict[str, Any]] = field(default_factory=list)  # bodies of searches for candidates
    prompts: list[str] = field(default_factory=list)
    sources: Sequence[tuple[int, str, int, str]] = ()  # n, field, ord, text
    cosines: list[float | None] = field(default_factory=list)
    grade: int = 0
    tokens: list[str] = field(default_factory=list)
    answer: Answered | None = None

    @property
    def clauses(self) -> list[dict[str, Any]]:
        [body] = self.searches
        return list(body["knn"])


class Asking:
    """The three stages, one after the other, on a site with pages."""

    def __init__(self, bench: Bench, llm: ScriptedLLM) -> None:
        self._bench, self._llm = bench, llm
        sites = {bench.site: SiteSettings(flow="original")}
        self._settings = Settings(sites=sites, llm_model="scripted", openai_base_url=llm.url)

    async def ask(self, text: str) -> Wire:
        wire, prompts, model, sender = Wire(), SitePrompts(), Model(), FakeSender()
        chat = ChatRegistry(self._settings, self._settings, TokenBudget(self._settings))
        request = question(text).model_copy(
            update={"site": self._bench.site, "deadline": datetime.now(UTC) + timedelta(seconds=60)}
        )
        es = self._bench.elastic.es
        msearch = es.msearch

        async def recorded(*, searches: Sequence[dict[str, Any]]) -> Any:
            wire.searches += [body for body in searches[1::2] if "aggs" not in body]
            return await msearch(searches=searches)

        es.msearch = recorded  # type: ignore[method-assign]
        try:
            examples = Examples(prompts, NoExamples().of_site, model)
            await rephrase_handler(self._settings, prompts, Rewriter(chat, examples))(_record(request), sender)
            searcher = Searcher(self._bench.search, model, self._settings)
            retrieve = retrieve_handler(self._settings, searcher, self._bench.search, writes=True, site_prompts=prompts)
            await retrieve(_record(sender.sent[-1].message), sender)
            retrieved = sender.sent[-1].message
            assert isinstance(retrieved, Retrieved)
            context = StrategyContext(chat, prompts, finder=None)  # type: ignore[arg-type]
            answering = Answering(self._settings, prompts, strategies(context))
            await answering.answer(retrieved, Publication(sender, retrieved.request, 1), asyncio.Event())
        finally:
            es.msearch = msearch  # type: ignore[method-assign]
            await chat.aclose()
        wire.embedded, wire.grade = model.asked, retrieved.grade
        wire.sources = [(each.n, each.field, each.ord, each.text) for each in retrieved.sources]
        wire.cosines = [each.cosine for each in retrieved.sources]
        wire.prompts = ["\n".join(m["content"] for m in body["messages"]) for body in self._llm.requests]
        self._llm.requests.clear()
        events = [sent.message.event for sent in sender.sent if isinstance(sent.message, AnswerEvent)]
        wire.tokens = [event.text for event in events if isinstance(event, Token)]
        [wire.answer] = [event for event in events if isinstance(event, Answered)]
        return wire


def _record(message: Message) -> Record:
    return Record("any", 0, 9, b"conversation-1", message.encode(), fresh=True)


@pytest.fixture
async def asking(engine: Servers) -> AsyncIterator[Asking]:
    def says(body: dict[str, Any]) -> Reply:
        if "You prepare questions" in body["messages"][0]["content"]:
            return Reply([EXPANDED])
        return Reply(re.split(r"(?<= )", ANSWER), delay=0.1)

    async with Elastic(engine.elasticsearch, Settings()) as elastic, ScriptedLLM(says) as llm:
        bench = Bench(elastic)
        await bench.save(
            "pool",
            {
                "name": [("pool", 0.6)],
                "title": [("Indoor pool", 0.7), ("second best", 0.65)],
                "description": [("Swim", 0.55)],
                "keywords": [("water, swimming", 0.4)],  # below the floor
                "content": [
                    *((f"Core {n}. ", 0.9 - n / 100) for n in range(CHUNKS - 1)),
                    ("# Far\n\n*Nothing* here. ", 0.1),
                ],
            },
        )
        await bench.save("opening", {"content": [("# Opening\n\nThe *lido* opens. ", 0.25), ("It closes.", 0.05)]})
        yield Asking(bench, llm)
        await forget(elastic, bench.site)


def is_expanded(long: Wire, short: Wire, greeting: Wire) -> None:
    rewriting, answering = long.prompts
    assert "expand it by what a page that answers it would say" in rewriting
    assert "When is the pool open?" in rewriting
    assert long.embedded == [EXPANDED]
    assert EXPANDED in answering
    assert long.answer is not None
    assert next((step.asked, step.said) for step in long.answer.trace) == ("expand", EXPANDED)


def is_searched_in_five_fields(long: Wire, short: Wire, greeting: Wire) -> None:
    assert {each["filter"][0]["term"]["field"] for each in long.clauses} == set(FIELDS)
    assert all(list(each["query_vector"]) == pytest.approx(list(QUESTION)) for each in long.clauses)
    assert "query" not in long.searches[0]


def has_its_floors(long: Wire, short: Wire, greeting: Wire) -> None:
    floors = {each["filter"][0]["term"]["field"]: each["similarity"] for each in long.clauses}
    assert floors == {name: 0.2 if name == "content" else 0.5 for name in FIELDS}
    assert not {"keywords"} & {name for _, name, _, _ in long.sources}


def keeps_the_best(long: Wire, short: Wire, greeting: Wire) -> None:
    assert {each["filter"][0]["term"]["field"]: each["k"] for each in long.clauses} == {
        name: 10 if name == "content" else 1 for name in FIELDS
    }
    found = [(name, ord_) for _, name, ord_, _ in long.sources]
    assert sorted(found) == sorted(
        [("name", 0), ("title", 0), ("description", 0), *(("content", n) for n in range(10))]
    )


def is_widened(long: Wire, short: Wire, greeting: Wire) -> None:
    texts = {(name, ord_): text for _, name, ord_, text in long.sources}
    assert texts["content", 0] == "Core 0. Core 1. Core 2."
    assert texts["content", 9] == "Core 7. Core 8. Core 9. Core 10. Core 11."
    assert texts["title", 0] == "Indoor poolsecond best"


def is_a_source_each(long: Wire, short: Wire, greeting: Wire) -> None:
    assert [n for n, *_ in long.sources] == [*range(1, len(long.sources) + 1)]
    assert None not in long.cosines
    assert long.cosines == sorted(long.cosines, key=lambda cosine: -(cosine or 0))


def is_read_whole(long: Wire, short: Wire, greeting: Wire) -> None:
    _, answering = long.prompts
    shown = re.findall(r'<source-\w+ n="(\d+)">\n.*?\n\n(.*?)\n</source-', answering, re.DOTALL)
    assert [(int(n), text) for n, text in shown][-len(long.sources) :] == [(n, text) for n, *_, text in long.sources]


def is_streamed(long: Wire, short: Wire, greeting: Wire) -> None:
    assert long.answer is not None
    assert len(long.tokens) > 1
    assert "".join(long.tokens) == long.answer.text == "It costs 99 euros. It is open daily."
    assert (long.answer.left_out, long.answer.doubted) == (0, ())


def is_by_keywords(long: Wire, short: Wire, greeting: Wire) -> None:
    assert len(short.prompts) == 1  # the answer's alone
    assert "Opening" in short.prompts[0]
    assert short.embedded == []
    [body] = short.searches
    assert "knn" not in body
    assert {"match": {"text": {"query": "Opening", "boost": 0.5}}} in body["query"]["bool"]["should"]


def reads_whole_fields(long: Wire, short: Wire, greeting: Wire) -> None:
    assert [(name, text) for _, name, _, text in short.sources] == [
        ("content", "# Opening\n\nThe *lido* opens. It closes.")
    ]
    assert "# Opening\n\nThe *lido* opens. It closes." in short.prompts[0]


def is_no_courtesy(long: Wire, short: Wire, greeting: Wire) -> None:
    assert greeting.searches
    assert greeting.answer is not None
    assert greeting.answer.strategy == "plain"


def is_not_refused(long: Wire, short: Wire, greeting: Wire) -> None:
    assert (long.grade, short.grade, greeting.grade) == (0, 0, 0)


SAID: Mapping[str, Callable[[Wire, Wire, Wire], None]] = {
    "A model rewrites the question by the prompt `expand`, also the first one of a conversation.": is_expanded,
    "The vector of the rewritten question is searched by kNN in all five fields, in one request without keywords.": (
        is_searched_in_five_fields
    ),
    "A hit in a short field has a cosine of at least .5, one in the content of at least .2.": has_its_floors,
    "Of each short field the best hit is kept, of the content the best ten.": keeps_the_best,
    "Each hit is widened by the two chunks before it and the two after it, in its own field.": is_widened,
    "Each hit is one numbered source, and they stand in the order of their cosines.": is_a_source_each,
    "The prompt `answer` holds all of them.": is_read_whole,
    "The answer is streamed as the model writes it, a sentence at a time, and none is left out or marked.": is_streamed,
    "A question of one or two words is not rewritten, and searched by its keywords alone, as it is.": is_by_keywords,
    "Its sources are the whole text of the fields that were hit, with their Markdown.": reads_whole_fields,
    "A greeting is searched like a question.": is_no_courtesy,
    "No question is refused that finds anything.": is_not_refused,
}


async def test_each_sentence_of_the_page_is_what_happens_on_the_wire(asking: Asking) -> None:
    part = PAGE.read_text(encoding="utf-8").partition("## What `original` does")[2].partition("\n## ")[0]
    assert re.findall(r"^\d+\. (.*)$", part, re.MULTILINE) == list(SAID)
    long, short = await asking.ask("When is the pool open?"), await asking.ask("Opening")
    greeting = await asking.ask("Good morning to all of you!")
    for holds in SAID.values():
        holds(long, short, greeting)
