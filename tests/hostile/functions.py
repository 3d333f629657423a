"""Every function of ours that is given strangers' text, found by its parameters, and how it is called.

A parameter that is text is a stranger's, unless its name is in `OURS`. A new function is in the ring at once where what
else it wants is in `VALUES`; else its call is written down in `CALLS`, or in `LEFT_OUT` why there is none. `UNKNOWN` is
what is in neither.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from pydantic import SecretStr

from connectors.cms import documents
from connectors.cms.fetching import Fetched
from connectors.cms.sitemap.discover import NotASitemap
from connectors.cms.sitemap.feeds import hub_of
from connectors.cms.sitemap.page import read_page
from connectors.cms.sitemap.websub import Subscription
from connectors.cms.wordpress.client import document
from connectors.tools import openapi
from connectors.tools.site_tools import text_of
from gateway.agents.nlweb import answered, merged
from gateway.openai.completions import CompletionChunks
from gateway.site import results
from gateway.site.results import by_page
from pipelines.conversations.turns import newest
from pipelines.ingest.chunk import chunk_page
from pipelines.ingest.documents import convert, facts
from pipelines.ingest.documents.structured_data import structured_data_in
from pipelines.ingest.embedding_plan import plan_units, sense
from pipelines.query.answer.citation_filter import CitationFilter
from pipelines.query.answer.cite import CitationParser
from pipelines.query.answer.entities import CodeSpans, EntityReader
from pipelines.query.answer.grounding import Grounds
from pipelines.query.answer.links import LinkFilter
from pipelines.query.answer.marks import Unmarked
from pipelines.query.answer.prompt import chat
from pipelines.query.answer.strategies import turns
from pipelines.query.answer.tools.given import unsaid
from pipelines.query.answer.tools.registry import BadCall, Tool, ToolFailed
from pipelines.query.answer.tools.results import as_source
from pipelines.query.extractive import certainty, confidence, follow_ups, quotation, replies, wording
from pipelines.query.extractive.card import card
from pipelines.query.extractive.quote import by_words
from pipelines.query.extractive.ranking import weigh
from pipelines.query.extractive.wanted import lacks_price, priced
from pipelines.query.live.corrections import CorrectionSet, SiteCorrections, StoredCorrection
from pipelines.query.log.frequent import MOST_KEPT, AnsweredQuestion, beginning, following, frequent
from pipelines.query.masks import Masks
from pipelines.query.model_calls import Call as ModelCall
from pipelines.query.model_calls import bounded
from pipelines.query.ports import Completion
from pipelines.query.rephrase import rewrite
from pipelines.query.retrieve.alike import AskedQuestion, alike
from pipelines.query.retrieve.corrected import Corrector
from pipelines.query.search.ports import Candidates
from pipelines.query.search.search import Retrieval
from pipelines.query.search.snippet import LONGEST, snippet
from pipelines.query.search.typeahead import MAX_TYPED, Typed
from pipelines.query.search.widen import passages
from prompts.loader import ChatMessage, load
from schemas.answer import Usage
from schemas.correction import Correction
from schemas.http import SearchHit, Snippet, SnippetPart
from schemas.ingest import Chunk, Chunker, ChunkUnit, PageChunks
from schemas.nlweb import NlwebQuery
from schemas.page import PageDocument, PageEvent, PageMeta, PageMetadata, PageProduct, PageQuestion
from schemas.query import Evidence, Turn
from tests.asking import question, retrieved, source
from tests.hostile.found import HITS, NEAR, TERMS, VECTOR, hits_of
from tests.hostile.patterns import modules
from tests.making import change
from text.encodings import UnknownEncoding, decoded
from text.folding import normalized
from text.likeness import Likeness
from text.markdown import trimmed
from text.measures import measures
from text.scripts import lowered, raised, small
from text.spelling import respelled
from text.units import Unit
from wiring.settings import SiteSettings

ROOMS = ("text", "pipelines.query", "pipelines.ingest", "pipelines.conversations", "connectors.cms", "connectors.tools")
EDGE = ("gateway.agents.nlweb", "gateway.chat", "gateway.openai", "gateway.site", "gateway.edge.envelope")

Call = Callable[[str], object]

_TEXTS = frozenset(("str", "str | None", "Iterable[str]", "Sequence[str]", "list[str]"))
_OUR_NAMES = """
after before by charset chunker contact conversation_id default default_lang description embed_hash embedder
etag facts fence fields form groups hashes id index kept kind lang langs language languages lead_in media_type
model modified name names new_name notes old_name page_id page_key page_keys page_langs pages position prefix
problem prompt question_langs reason regions replaces request_id requests robots_tag route site source stage
suffix timezone token type url user values

"""
OURS = frozenset(_OUR_NAMES.split())
CHUNKER = Chunker(mode="content", size=1_000, overlap=0.2)
NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
GLOSSARY = {f"term{n}": {"de": f"Name{n}", "en": [f"thing{n}", f"other thing{n}"]} for n in range(200)}
CORRECTIONS = CorrectionSet(
    tuple(
        StoredCorrection(
            f"w{n}", NOW, Correction(kind="synonym", lang="en", word=f"word{n}", means=f"thing{n}", both=n % 2 > 0)
        )
        for n in range(500)
    )
)
FREQUENT = frequent(
    [
        AnsweredQuestion(f"Question {n} of the pool?", "en", asker, frozenset((("pool", "en"),)), False, False)
        for n in range(MOST_KEPT)
        for asker in "ab"
    ],
    2,
)
SOURCES = [source(1, "The pool is open daily. A ticket is 4 euros.", lang="en")]
VALUES: Mapping[str, Any] = {
    "chunker": CHUNKER,
    "day": date(2026, 5, 4),
    "embedder": "fake",
    "empty": frozenset(("the",)),
    "found": (),
    "glossary": GLOSSARY,
    "history": (),
    "i": 0,
    "kept": ["https://town.example/", "12"],
    "known": frozenset(("pool",)),
    "lang": "de",
    "langs": ("de", "en"),
    "languages": ("de", "en"),
    "limit": 1_000,
    "media_type": "text/html",
    "model": "fake-4",
    "n": 1,
    "now": NOW,
    "overlap": 0.2,
    "page_langs": ("de",),
    "regions": ("DE",),
    "short_words": 3,
    "site": "town",
    "source": SOURCES[0],
    "today": date(2026, 5, 4),
    "token": "token",
    "url": "https://town.example/pool",
}


def _fees(path: str = "/fees/{service}", summary: str = "Fee") -> dict[str, Any]:
    slot = {"name": "service", "in": "path", "required": True, "schema": {"type": "string"}}
    operation = {"operationId": "getFee", "summary": summary, "description": summary, "parameters": [slot]}
    return {"openapi": "3.1.0", "paths": {path: {"get": operation}}}


async def _count(n: int) -> str:
    """Counts."""
    return str(n)


[FEE] = openapi.operations(_fees(), ["getFee"])
COUNT = Tool.of(_count)


def _operations(text: str) -> Iterator[object]:
    for made in (_fees(summary=text), _fees(path=f"/{text}"), _fees(path=text)):
        with suppress(ValueError):
            yield openapi.operations(made, ["getFee"])[0].name
    with suppress(ValueError):
        yield openapi.operations(_fees() | {"paths": {"/": {"get": {"operationId": text}}}}, [text])


def _replies(text: str) -> Iterator[str]:
    for kind in ("application/json", "text/plain"):
        with suppress(ToolFailed):
            yield text_of(Fetched("https://fees.example", 200, text.encode("utf-8", "replace"), {"content-type": kind}))


def _read_arguments(text: str) -> None:
    for arguments in (text, f'{{"n": {text}', f'{{"n": "{text}"}}'):
        with suppress(BadCall):
            COUNT.read(arguments)


def _evidence(text: str) -> list[Evidence]:
    """As many units as are handed on, each as long as a unit may be."""
    kinds: list[Any] = ["prose", "item", "row"]
    return [
        Evidence(n=1, start=n, text=f"{n} {text[:2_000]}", kind=kinds[n % 3], score=float(-n), block=n % 3, of=9)
        for n in range(24)
    ]


def _page(text: str) -> PageDocument:
    return PageDocument(id="a", lang="de", title=text[:20_000], keywords=(text[:2_000],), content=text)


def _chunks(text: str) -> PageChunks:
    cut = tuple(
        Chunk(field="content", ord=n, text=text[at : at + 1_000]) for n, at in enumerate(range(0, len(text), 1_000))
    )
    return PageChunks(change=change(), meta=PageMeta(title="Pool", url="/pool"), chunker=CHUNKER, chunks=cut)


def _facts(text: str) -> object:
    """Structured data of such texts on a page of the same."""
    scripts = (text, f'"{text}', json.dumps({"@type": "FAQPage", "mainEntity": [{"name": "a?", "text": text}]}))
    for script in scripts:
        structured_data_in(f'<script type="application/ld+json">{script}</script>')
    structured_data_in(f"<div itemscope itemtype=Product>{text}")
    asked = tuple(PageQuestion(question=f"{n} {text[:400]}?", answer=text[:5_000] or "a") for n in range(12))
    products = (PageProduct(name=text[:400], price=Decimal(1), currency="EUR"),)
    events = tuple(PageEvent(name=text[n:400], start="2026-06-11", place=text[:400]) for n in range(50))
    data = PageMetadata(faq=asked, products=products, events=events)
    return facts.facts_of(data, facts.VisiblePage(text, "de", title=text[:400]))


def _leaning(text: str) -> object:

    alone = Retrieval(HITS, Candidates(HITS, HITS, TERMS, 100), None, NEAR, VECTOR)
    return follow_ups.follow(text, text, alone, alone, NEAR, [NEAR[0].page_key])


def _gate(text: str) -> object:
    asked = confidence.GateInput(text, HITS, HITS, TERMS, 100, by_language=True)
    return (
        confidence.signals(asked),
        confidence.foreign(asked),
        confidence.sentences(asked),
        confidence.figures(asked, confidence.Thresholds()),
    )


def _doubted(text: str) -> object:
    return Grounds([*SOURCES, source(2, text)], text, "en").doubt(text, [1, 2])


def _sifted(text: str) -> object:
    filter = CitationFilter(SOURCES, Grounds(SOURCES, text, "en").doubt, "en")
    return [*(filter.feed(text[at : at + 20]) for at in range(0, len(text), 20)), filter.finish()]


def _unmarked(text: str) -> str:
    marks = Unmarked("01e6c55d3813b130")
    return "".join([*(marks.feed(text[at : at + 20]) for at in range(0, len(text), 20)), marks.finish()])


def _written(text: str) -> str:
    """What a model writes, as it comes."""
    links = LinkFilter(SOURCES)
    return "".join([*(links.feed(text[at : at + 20]) for at in range(0, len(text), 20)), links.finish()])


def _history(text: str) -> tuple[Turn, ...]:
    """Fifteen messages of a conversation, as long as they may be together."""
    return newest((Turn(question=text[:4_000], answer=text),) * 8, 15)


def _prompted(text: str) -> object:
    found = retrieved(*(source(n, text) for n in range(1, 9)), text=text)
    found = found.model_copy(update={"request": question(text[:4_000], history=_history(text))})
    return chat(
        load("answer"), found, site="Town", language="German", today=NOW.date(), budget=8_000, history_messages=15
    )


def _post(text: str) -> object:
    rendered = {"rendered": text}
    return document(
        {
            "id": 1,
            "type": "post",
            "slug": "a",
            "link": "/a",
            "modified_gmt": "2026-05-04T12:00:00",
            "title": rendered,
            "excerpt": rendered,
            "content": {**rendered, "protected": False},
            "yoast_head": f"<script application/ld+json{text}",
        },
        "de",
    )


def _decoded(text: str) -> object:
    """In an encoding that is told, and in one that the detectors are asked for."""
    with suppress(UnknownEncoding):
        decoded(text.encode("cp1252", "replace") + b"\xfc\xe4", page=True)
    return decoded(text.encode("utf-8", "replace"), page=True)


def _hub(text: str) -> object:
    """A hub in the header, in which nothing may break a line, and one in the feed."""
    with suppress(NotASitemap):
        hub_of(b"", f"<{' '.join(text.split())[:16_000]}>; rel=hub", VALUES["url"])
    return hub_of(f"<rss><channel>{escape(text)}</channel></rss>".encode("utf-8", "replace"), "", VALUES["url"])


def _recorded(text: str) -> object:
    call = ModelCall("answer", (ChatMessage("user", text), ChatMessage("user", text * 6)))
    call.add(text)
    return bounded([call])


def _search_hit(text: str) -> SearchHit:
    """As long as its parts may be."""
    shown = Snippet(parts=(SnippetPart(text=text[:LONGEST], match=True),), fragment=text[:1_000], heading=text)
    return SearchHit(
        page_id="a",
        lang="de",
        title=text,
        url=text,
        field="content",
        ord=0,
        text="",
        score=1.0,
        revision=1,
        snippet=shown,
    )


CALLS: Mapping[str, Call] = {
    "gateway.agents.nlweb.answered": lambda text: merged("q", answered("summarize", text, SOURCES, "town")),
    "gateway.agents.nlweb.merged": lambda text: NlwebQuery.model_validate({"query": "q", "prev": text}),
    "gateway.openai.completions.CompletionChunks.text": lambda text: CompletionChunks(
        "request-0001", "town", usage=False
    ).text(text),
    "gateway.site.results.by_page": lambda text: by_page([_search_hit(text)] * results.HITS, text),
    "connectors.cms.documents.lang_tag": lambda text: documents.lang_tag(Path("a.html"), f"<html {text}"),
    "connectors.cms.documents.html_of": lambda text: documents.html_of(Path("a.md"), text),
    "connectors.cms.documents.whole_page": lambda text: documents.whole_page(
        Path("a.html"), f"<body><nav></nav>{text}"
    ),
    "connectors.cms.documents.fields_of": lambda text: documents.fields_of(Path("a.html"), f"<body><nav></nav>{text}"),
    "connectors.cms.sitemap.page.read_page": lambda text: read_page(
        f"<html><body>{text}".encode("utf-8", "replace"), VALUES["url"]
    ),
    "connectors.cms.sitemap.feeds.hub_of": _hub,
    "connectors.cms.sitemap.websub.Subscription.is_signed": lambda text: Subscription(
        "town", "news", text, SecretStr("secret")
    ).is_signed(f"sha256={text}", text.encode("utf-8", "replace")),
    "connectors.cms.wordpress.client.document": _post,
    "connectors.tools.openapi.Operation.request": lambda text: FEE.request(VALUES["url"], {"service": f"-{text}"}),
    "connectors.tools.openapi.operations": lambda text: list(_operations(text)),
    "connectors.tools.site_tools.text_of": lambda text: list(_replies(text)),
    "pipelines.conversations.turns.newest": _history,
    "pipelines.ingest.chunk.chunk_page": lambda text: chunk_page({"content": text}, CHUNKER),
    "pipelines.ingest.documents.convert.convert": lambda text: convert.convert(_page(text)),
    "pipelines.ingest.documents.facts.facts_of": _facts,
    "pipelines.ingest.embedding_plan.plan_units": lambda text: plan_units(_chunks(text)),
    "pipelines.ingest.embedding_plan.sense": lambda text: sense(
        ChunkUnit(start=0, text=text, kind="row", headings=(text,), intro=text, header=text, block=0), text
    ),
    "pipelines.query.answer.cite.CitationParser.feed": lambda text: CitationParser(SOURCES).feed(text),
    "pipelines.query.answer.entities.CodeSpans.feed": lambda text: CodeSpans().feed(text),
    "pipelines.query.answer.entities.EntityReader.feed": lambda text: EntityReader().feed(text),
    "pipelines.query.answer.grounding.Grounds.doubt": _doubted,
    "pipelines.query.answer.links.LinkFilter.feed": _written,
    "pipelines.query.extractive.replies.narrower": lambda text: replies.narrower(
        retrieved(*(source(n, "", title=text) for n in range(1, 9)), text=text).model_copy(update={"grade": 1})
    ),
    "pipelines.query.answer.prompt.chat": _prompted,
    "pipelines.query.model_calls.Call.add": _recorded,
    "pipelines.query.extractive.quote.by_words": lambda text: by_words(text, [source(n, text) for n in range(1, 4)]),
    "pipelines.query.extractive.quotation.answering": lambda text: quotation.answering(_evidence(text), text),
    "pipelines.query.extractive.certainty.certain": lambda text: certainty.certain(
        text, "en", _evidence(text)[0], source(1, text), None
    ),
    "pipelines.query.extractive.certainty.covered": lambda text: certainty.covered([text], _evidence(text)[0], text),
    "pipelines.query.extractive.certainty.is_named": lambda text: certainty.is_named(
        _evidence(text)[0].model_copy(update={"kind": "row"}), text.split()[:64]
    ),
    "pipelines.query.extractive.wanted.priced": lambda text: priced(
        _evidence(text), [source(1, text)], f"What does {text} cost?", text, "en"
    ),
    "pipelines.query.extractive.wanted.lacks_price": lambda text: lacks_price(
        _evidence(text), [source(1, text)], f"What does {text} cost?", "en"
    ),
    "pipelines.query.extractive.certainty.holds": lambda text: certainty.holds("price", text[: certainty.READ], "de"),
    "pipelines.query.extractive.card.card": lambda text: card(
        _evidence(text), [source(1, "\n\n".join(each.text for each in _evidence(text)))], text
    ),
    "pipelines.query.extractive.quotation.for_follow_up": lambda text: quotation.for_follow_up(_evidence(text), text),
    "pipelines.query.extractive.quotation.on_day": lambda text: quotation.on_day(
        _evidence(text), VALUES["day"], "de", frozenset((1,))
    ),
    "pipelines.query.extractive.quotation.unread": lambda text: quotation.unread(_evidence(text), text),
    "pipelines.query.answer.citation_filter.CitationFilter.feed": _sifted,
    "pipelines.query.answer.marks.Unmarked.feed": _unmarked,
    "pipelines.query.answer.tools.given.unsaid": lambda text: unsaid(
        {"n": [1, text], text[:100]: 7},
        {"properties": {"n": {"items": {"enum": [text, 1]}}}},
        [text, text],
        ("en", "de"),
    ),
    "pipelines.query.answer.tools.registry.Tool.read": lambda text: _read_arguments(text),
    "pipelines.query.answer.tools.results.as_source": lambda text: as_source(
        COUNT, {"n": text, "m": [text], text: {text: text}}, text, "en"
    ),
    "pipelines.query.answer.strategies.turns.spoken": lambda text: turns.spoken(Completion(text, Usage()), ()),
    "pipelines.query.masks.Masks.kept": lambda text: Masks({"town": SiteSettings()}).kept("town", text, (text,)),
    "pipelines.query.rephrase.rewrite.values": lambda text: rewrite.values(
        question(text[:4_000], history=_history(text)), site="Town", language="German", history_messages=15
    ),
    "pipelines.query.extractive.ranking.weigh": lambda text: weigh(text, VECTOR, HITS, NEAR, TERMS, 100, topic=text),
    "pipelines.query.extractive.ranking.weigh: page": lambda text: weigh(
        "When is the public pool open?", VECTOR, hits_of(text), NEAR, [("pool", 3)], 100
    ),
    "pipelines.query.extractive.confidence.in_another_language": lambda text: confidence.in_another_language(
        text, "de", 0.0
    ),
    "pipelines.query.extractive.confidence.GateInput.share": _gate,
    "pipelines.query.extractive.follow_ups.follow": _leaning,
    "pipelines.query.extractive.follow_ups.stands_alone": lambda text: follow_ups.stands_alone(
        text, follow_ups.signs(text)
    ),
    "pipelines.query.extractive.follow_ups.names_another": lambda text: follow_ups.names_another(
        text, HITS, [*HITS, *NEAR], [NEAR[0].page_key]
    ),
    "pipelines.query.extractive.wording.spelled": lambda text: wording.spelled(
        text, ("de",), (), {word: [word[1:], f"{word}a"] for word in text.split()[:10]}
    ),
    "pipelines.query.extractive.wording.with_spelling": lambda text: wording.with_spelling(
        text, {word: word[1:] for word in text.lower().split()[:10]}
    ),
    "pipelines.query.live.corrections.CorrectionSet.understood": lambda text: CORRECTIONS.understood(text),
    "pipelines.query.retrieve.alike.alike": lambda text: alike(
        AskedQuestion(text, "de"), AskedQuestion("Was kostet ein Ausweis?", "de"), 0.9
    ),
    "pipelines.query.retrieve.corrected.Corrector.understood": lambda text: Corrector(SiteCorrections()).understood(
        "town", text
    ),
    "pipelines.query.log.frequent.beginning": lambda text: beginning(FREQUENT, text[:MAX_TYPED], "en", 5),
    "pipelines.query.log.frequent.following": lambda text: following(FREQUENT, text, ["pool"], "en", 3),
    "pipelines.query.search.snippet.snippet": lambda text: [snippet(hit, text, VECTOR) for hit in HITS[:10]],
    "pipelines.query.search.snippet.snippet: page": lambda text: snippet(hits_of(text)[0], "public pool"),
    "pipelines.query.search.typeahead.Typed.fits": lambda text: Typed.of(text[:MAX_TYPED]).fits(text),
    "pipelines.query.search.typeahead.Typed.rank": lambda text: Typed.of(text[:MAX_TYPED]).rank(text),
    "pipelines.query.search.widen.passages": lambda text: passages(hits_of(text), NEAR, 24_000),
    "text.encodings.decoded": _decoded,
    "text.folding.normalized": lambda text: normalized("NFKD", text),
    "text.likeness.Likeness.of": lambda text: Likeness([text, *text.split(), "pool"]).of(text),
    "text.spelling.respelled": lambda text: respelled(text, [text[1:], *text.split(), f"{text}a"]),
    "text.markdown.trimmed": lambda text: trimmed(text, 0, len(text)),
    "text.measures.Measures.unit": lambda text: measures("de").unit(text),
    "text.scripts.lowered": lambda text: lowered(text, text, text),
    "text.scripts.raised": lambda text: raised(text, text, text),
    "text.scripts.small": lambda text: small(text, text, text),
    "text.units.Unit.sense": lambda text: Unit(0, 1, "row", text, (text,), text, text).sense(text),
}

# What may take a quarter of a second. Numbers of all regions are looked for in a thread; of claims a question is read
# for once, when its answer begins, and a model's sentences one by one, as they come.
UNHURRIED = frozenset(
    (
        "pipelines.ingest.documents.facts.facts_of",
        "pipelines.query.answer.claims.passage",
        "pipelines.query.answer.grounding.Grounds.doubt",
        "pipelines.query.answer.citation_filter.CitationFilter.feed",
        "pipelines.query.masks.Masks.kept",
        "text.masking.published",
    )
)
LEFT_OUT: Mapping[str, str] = {
    "connectors.cms.addresses.AddressFilter.permit": "names of servers",
    "connectors.cms.package.pack": "a name of ours",
    "connectors.cms.push.sign": "made by ourselves",
    "connectors.cms.sitemap.others.is_cross_reference": "with read_page",
    "connectors.cms.sitemap.websub.Subscription.callback": "a topic of 2,000 characters at most",
    "connectors.cms.sitemap.websub.Subscription.request": "a topic of 2,000 characters at most",
    "connectors.cms.sitemap.others.may_be": "with read_page",
    "pipelines.query.extractive.day_words.DayWords.has": "with said_days",
    "pipelines.query.extractive.quote.OwnWords.on": "a day as we write it",
    "pipelines.query.extractive.quote.OwnWords.without": "a day as we write it",
    "pipelines.ingest.embedding_plan.embed_hash": "a hash",
    "connectors.tools.site_tools.python_tool": "names in an operator's settings",
    "gateway.openai.refusals.refused": "our own words",
    "gateway.chat.chat.new_question": "text.language reads the question there",
    "pipelines.query.model_calls.start_call": "our own name of a step",
    "pipelines.query.answer.amounts.before": "with Grounds.doubt",
    "pipelines.query.answer.amounts.is_rounded": "with Grounds.doubt",
    "pipelines.query.answer.amounts.nearly": "with Grounds.doubt",
    "pipelines.query.answer.amounts.unfigured": "with claims.passage",
    "pipelines.query.answer.claims.says_open": "with Grounds.doubt",
    "pipelines.query.answer.judging.Refuted.doubt": "as Grounds.doubt",
    "pipelines.query.search.ports.Hit.source": "with widen.passages",
    "pipelines.query.answer.strategies.base.step": "as shortened",
    "pipelines.query.extractive.follow_ups.sure_alone": "with evidence.weigh",
    "text.html_tree.content_tree": "with html.to_markdown",
    "text.html_tree.first_tags": "with html.to_markdown",
    "text.html_tree.ContentTree.handle_data": "with html.to_markdown",
    "text.html_tree.ContentTree.handle_endtag": "with html.to_markdown",
    "text.html_tree.shows_deleted": "with html.to_markdown",
    "text.html_elements.line": "with convert.convert",
    "text.html_elements.markdown": "with convert.convert",
    "text.shortcodes.is_shortcodes": "with html.to_markdown",
    "text.loss.measured": "with convert.convert",
    "pipelines.query.answer.tools.calendar.Calendar.day": "refuses what is none of ten words",
    "pipelines.query.retrieve.corrected.corrected": "ids of corrections",
    "pipelines.query.live.corrections.is_understood": "as CorrectionSet.understood",
    "pipelines.query.live.corrections.read_correction": "an editor's",
    "pipelines.query.live.glossary.read_glossary": "an operator's",
    "pipelines.query.live.site_privacy.read_rules": "an operator's",
    "pipelines.query.live.site_prompts.PromptSet.changed": "an operator's",
    "pipelines.query.token_budget.TokenBudget.open": "the name of a question",
    "pipelines.query.token_budget.TokenBudget.close": "the name of a question",
    "pipelines.query.live.tuning.read_settings": "an operator's",
}


def calls() -> dict[str, Call]:
    """By name, sorted."""
    found = {name: call for name, function in _functions() if (call := _called(function)) and name not in LEFT_OUT}
    return dict(sorted((found | CALLS).items()))


def unknown() -> list[str]:
    """What is given strangers' text, and nobody says how it is called."""
    return [name for name, function in _functions() if name not in CALLS | LEFT_OUT and _called(function) is None]


def _functions() -> Iterator[tuple[str, Callable[..., object]]]:
    """Those that are given strangers' text, methods too; what is awaited is made of them."""
    for name in modules():
        if name.startswith((*ROOMS, *EDGE)) and not name.endswith("fakes"):
            for public, found in _public(importlib.import_module(name)):
                if (
                    _strangers(found)
                    and not inspect.iscoroutinefunction(found)
                    and not inspect.isasyncgenfunction(found)
                ):
                    yield f"{name}.{public}", found


def _public(module: Any) -> Iterator[tuple[str, Callable[..., object]]]:
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", "") != module.__name__:
            continue
        if inspect.isfunction(value):
            yield name, value
        elif inspect.isclass(value) and not getattr(value, "_is_protocol", False):
            own = ((f"{name}.{each}", method) for each, method in vars(value).items() if not each.startswith("_"))
            yield from ((each, method) for each, method in own if inspect.isfunction(method))


def _strangers(function: Callable[..., object]) -> list[str]:
    """The parameters that are strangers' text."""
    parameters = inspect.signature(function).parameters.values()
    return [each.name for each in parameters if each.annotation in _TEXTS and each.name not in OURS]


def _called(function: Callable[..., object]) -> Call | None:
    """None where it wants what nobody has named."""
    texts, given = {}, {}
    for each in inspect.signature(function).parameters.values():
        if each.name in _strangers(function):
            texts[each.name] = each.annotation in ("str", "str | None")
        elif each.name in VALUES:
            given[each.name] = VALUES[each.name]
        elif each.default is each.empty:
            return None

    def call(text: str) -> object:
        made = function(**given, **{name: text if one else [text, text] for name, one in texts.items()})
        return deque(made, maxlen=0) if isinstance(made, Iterator) else made

    return call
