"""Search: hits for a question, best first, from both kinds of search over all five fields.

question ─┬─▶ by vector ───┬─▶ fuse ─▶ the best, and what is near them, are read ─▶ hits
          └─▶ by keywords ─┘
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from cachetools import LRUCache

from pipelines.query.flow import Flow
from pipelines.query.ports import NoTrialIndex
from pipelines.query.search.fuse import fuse, known_share, standing
from pipelines.query.search.ports import (
    Candidate,
    Candidates,
    ChunkKey,
    Floors,
    Hit,
    LabelledIndex,
    OtherIndexes,
    QueryModelOutdated,
    SearchEmbedder,
    SearchEmbedders,
    SearchIndex,
)
from pipelines.query.search.snippet import snippet
from pipelines.query.search.widen import nearest
from pipelines.query.settings import QuerySettings
from pipelines.runtime.embedder import embedded_query, is_sparse
from schemas.http import SearchHit, SearchKind
from schemas.ingest import ChunkVectors, Vector32
from schemas.keys import PageAddress, parse_page_key
from schemas.labels import NO_LABELS, labels_of
from text.language import identified, language_of, spoken, tells_language

# Both lists are this deep before they are fused: a hit that is 20th in one may be the best of both together.
DEPTH = 30
# Read at once, in so many times the characters that an answer may read: some chunks are short, some are not there.
ROOM = 1.5
# A page in another language than the visitor's must fit that much better, in standard deviations of the fused score.
FOREIGN = 0.5
# ... unless the question is surely in the preferred language: then a page without a translation lacks the nearness and
# the words of the others, and is raised by so much.
UNTRANSLATED = 1.0
# A question too short to tell its language is taken for one in the language whose pages know its words, where the best
# of the visitor's own have less of its BM25 score: "guitar rental", typed on the German side of a website. Where that
# language is a guess, less is enough.
OWN_WORDS, GUESSED = 0.4, 0.8
EMBEDDED = 256  # texts whose vectors are kept: a question is embedded once for all that is looked up by it
MOST_LANGUAGES = 3  # of a site, for which the lists are made longer: each page may be there in each

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Retrieval:
    """The hits and all that the search knows about them."""

    hits: list[Hit]  # fused, best first
    candidates: Candidates
    model: SearchEmbedder | None  # None: searched by keywords alone
    near: list[Hit]  # the hits' neighbours that an answer will most likely read
    vector: Vector32 | None = None  # of the question; None: searched by keywords alone
    absent: frozenset[ChunkKey] = frozenset()  # the hits' neighbours that the index does not have

    @property
    def common(self) -> bytes:
        """What all vectors of its model have in common."""
        return self.model.profile.common if self.model else b""


def preferred(lang: str, languages: Sequence[str], text: str = "") -> str:
    """The site's language for a visitor's: that one or one like it, else that of the question, else the site's first.

    Translations of one page would be each other's rivals otherwise, and nothing would be sure.
    """
    if lang in languages:
        return lang
    like = (own for own in languages if own.partition("-")[0] == lang.partition("-")[0])
    said_in = language_of(text, languages)
    return next(like, said_in if said_in in languages else languages[0])


def in_language(
    candidates: Sequence[Candidate],
    lang: str,
    *,
    by_words: bool = False,
    inherits: bool = False,
    raises: bool = False,
) -> list[Candidate]:
    """Best first: without translations of pages that were found in this language, and what is in others behind.

    Args:
        by_words: whether a page counts as found by its words alone: those of "pool" may stand in its translation only.
        inherits: whether a page takes the place of the translation that it stands for: a question in that one's
            language is less like this one.
        raises: whether pages without a translation are raised: the question is surely in this language.
    """
    addresses = [parse_page_key(each.page_key) for each in candidates]
    own = {
        address.page_id
        for address, each in zip(addresses, candidates, strict=True)
        if address.lang == lang and not (by_words and each.bm25 is None)
    }
    best: dict[str, float] = {}  # of a page, in any language
    best_own: dict[str, float] = {}
    for address, each in zip(addresses, candidates, strict=True):
        for there in (best, best_own) if address.lang == lang else (best,):
            there[address.page_id] = max(there.get(address.page_id, -math.inf), standing(each.score))
    kept = []
    for address, each in zip(addresses, candidates, strict=True):
        if address.lang == lang:
            raised = best[address.page_id] - best_own[address.page_id] if inherits and address.page_id in own else 0.0
            kept.append(replace(each, score=_moved(each.score, raised)) if raised else each)
        elif address.page_id not in own:
            by = UNTRANSLATED if raises else -FOREIGN
            kept.append(replace(each, score=_moved(each.score, by), untranslated=raises))
    return sorted(kept, key=lambda each: (-each.score, each.place))


def language_by_words(text: str, lang: str, found: Iterable[Candidate], *, guessed: bool = False) -> str:
    """The language to prefer pages in: the visitor's, unless the question's words are another one's.

    Args:
        found: by keywords.
        guessed: the visitor's language is the site's first for want of a better one.
    """
    best: dict[str, float] = {}
    for each in found:
        own = parse_page_key(each.page_key).lang
        best[own] = max(best.get(own, 0.0), each.bm25 or 0.0)
    other = max(best, key=lambda each: best[each], default=lang)
    if best.get(lang, 0.0) >= (GUESSED if guessed else OWN_WORDS) * best.get(other, 0.0):
        return lang
    return lang if not guessed and (spoken(text) or identified(text)) else other


def _moved(score: float, by: float) -> float:
    """A fused score, moved by so many standard deviations."""
    return 1 / (1 + math.exp(-by - standing(score)))


def of_one_revision(hits: Sequence[Hit]) -> list[Hit]:
    """Without what is older than another hit of its page.

    Two writers may be at one page at once, a bulk import and a save: chunks of the one that loses stand in the index
    until it finds that it lost.
    """
    newest: dict[str, int] = {}
    for hit in hits:
        newest[hit.page_key] = max(newest.get(hit.page_key, hit.revision), hit.revision)
    return [hit for hit in hits if hit.revision == newest[hit.page_key]]


def scored(candidates: Iterable[Candidate], read: Mapping[ChunkKey, Hit]) -> list[Hit]:
    """The candidates that could be read, with their figures; one may be gone since it was found."""
    return [
        replace(read[each.place], cosine=each.cosine, bm25=each.bm25, score=each.score, untranslated=each.untranslated)
        for each in candidates
        if each.place in read
    ]


def looked_again(look: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Search once more where another index was promoted between two looks at the live one."""

    @wraps(look)
    async def twice(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await look(*args, **kwargs)
        except QueryModelOutdated:
            return await look(*args, **kwargs)

    return twice


class Searcher:
    """One per process. `others`: where a trial's index is looked for."""

    def __init__(
        self,
        index: SearchIndex,
        models: SearchEmbedders,
        settings: QuerySettings,
        others: OtherIndexes | None = None,
    ) -> None:
        self._index = index
        self._models = models
        self._settings = settings
        self._others = others
        self._embedded: LRUCache[tuple[str, str], ChunkVectors] = LRUCache(EMBEDDED)  # by model and text

    async def on(self, site: str, name: str) -> Searcher:
        """The same search on another index of the site, with that one's model. Raises: NoTrialIndex, Retryable."""
        if self._others is None:
            raise NoTrialIndex("no index but the live one can be searched here")
        index, models = await self._others(site, name)
        return Searcher(index, models, self._settings)

    def within(self, labels: Mapping[str, Iterable[str]]) -> Searcher:
        """The same search on the pages that have, of each key, one of the values; all pages without labels."""
        if not labels:
            return self
        own = Searcher(LabelledIndex(self._index, labels), self._models, self._settings, self._others)
        own._embedded = self._embedded
        return own

    @property
    def chunks(self) -> SearchIndex:
        return self._index

    async def embedded(self, site: str, text: str) -> tuple[SearchEmbedder, Vector32]:
        """The site's model, and a question's vector. Raises: Retryable. Permanent: of the embedder."""
        model = await self._models.for_site(site)
        return model, (await self._vectors(model, text)).vector

    async def _vectors(self, model: SearchEmbedder, text: str) -> ChunkVectors:
        key = (model.fingerprint, text)
        if (made := self._embedded.get(key)) is None:
            made = self._embedded[key] = await embedded_query(model, text)
        return made

    async def page(self, site: str, page_id: str, *, groups: Iterable[str] = ()) -> list[Hit]:
        """The chunks of a page in all its languages, as far as these groups may read them. Raises: Retryable."""
        return of_one_revision(await self._index.page(site, page_id, groups=groups))

    async def hits(self, site: str, text: str, *, kind: SearchKind, size: int, groups: Iterable[str] = ()) -> list[Hit]:
        """The best chunks, at most `size`. Raises: UnknownSite, Retryable."""
        return (await self.find(site, text, kind=kind, size=size, groups=groups)).hits

    async def pages(
        self,
        site: str,
        text: str,
        *,
        kind: SearchKind,
        size: int,
        groups: Iterable[str] = (),
        vector: Vector32 | None = None,
    ) -> list[PageAddress]:
        """The pages of the best chunks, at most `size`: those of `hits` in their order, each once. No chunk is read.

        Args:
            vector: of this text by the site's model, where it is known; else the text is embedded.

        Raises: UnknownSite, Retryable.
        """
        try:
            _, _, found = await self._candidates(site, text, kind, max(size, DEPTH), groups, vector)
        except QueryModelOutdated:  # the vector may be of the model before
            _, _, found = await self._candidates(site, text, kind, max(size, DEPTH), groups)
        best = fuse(found.dense, found.keyword, known_share(found.terms, found.total), size=size)
        return [parse_page_key(key) for key in dict.fromkeys(each.page_key for each in best)]

    @looked_again
    async def find(
        self,
        site: str,
        text: str,
        *,
        kind: SearchKind,
        size: int,
        groups: Iterable[str] = (),
        flow: Flow | None = None,
        lang: str | None = None,
        guessed: bool = False,
        by_words: bool = False,
    ) -> Retrieval:
        """The best chunks, at most `size`, and what they were chosen from.

        Args:
            flow: says what may be read with a hit, and how near it must be; default: nothing, and as the site has it.
            lang: the visitor's, which pages had better be in, if the site has any.
            guessed: whether neither the visitor nor the question's words say so.
            by_words: whether hits by vector alone count for less than those that have the words.

        Raises: UnknownSite, Retryable.
        """
        languages = self._settings.site(site).languages
        prefers = preferred(lang, languages, text) if lang and len(languages) > 1 else None
        depth = max(size, DEPTH) * (len(languages[:MOST_LANGUAGES]) if prefers else 1)
        model, vector, found = await self._candidates(site, text, kind, depth, groups, flow=flow, by_words=by_words)
        known = known_share(found.terms, found.total)
        best = fuse(found.dense, found.keyword, known, size=None if prefers else size)
        if prefers:
            prefers = language_by_words(text, prefers, found.keyword, guessed=guessed)
            said_in = language_of(text, (prefers, *languages))
            inherits = said_in != prefers and said_in in languages
            tells = said_in == prefers and tells_language(text, languages)
            best = in_language(
                best, prefers, by_words=by_words and bool(found.keyword), inherits=inherits, raises=tells
            )[:size]
        room = math.ceil(ROOM * flow.context_chars / self._settings.chunker.size) if flow else 0
        near = nearest(best, flow.neighbours, room) if flow else []
        places = [*(each.place for each in best), *near]
        read = {hit.place: hit for hit in (await self._index.chunks(best[0].index, places) if best else ())}
        hits = of_one_revision(scored(best, read))
        around = [read[place] for place in near if place in read]
        return Retrieval(hits, found, model, around, vector, frozenset(near).difference(read))

    @looked_again
    async def nearest(self, site: str, text: str, flow: Flow, *, groups: Iterable[str] = ()) -> Retrieval:
        """The best chunks of each field by vector, in the order of their cosines, and what is around them.

        Raises: UnknownSite, Retryable.
        """
        model, vector, found = await self._candidates(site, text, "vector", flow.hits, groups, flow=flow)
        best = found.dense
        known = {each.place for each in best}
        near = [
            (each.page_key, each.field, ord_)
            for each in best
            for ord_ in range(max(0, each.ord - flow.neighbours), each.ord + flow.neighbours + 1)
        ]
        places = [*known, *dict.fromkeys(place for place in near if place not in known)]
        read = {hit.place: hit for hit in (await self._index.chunks(best[0].index, places) if best else ())}
        hits = of_one_revision(scored(best, read))
        return Retrieval(hits, found, model, [hit for place, hit in read.items() if place not in known], vector)

    async def _candidates(
        self,
        site: str,
        text: str,
        kind: SearchKind,
        depth: int,
        groups: Iterable[str],
        vector: Vector32 | None = None,
        *,
        flow: Flow | None = None,
        by_words: bool = False,
    ) -> tuple[SearchEmbedder | None, Vector32 | None, Candidates]:
        self._settings.site(site)
        flow = flow or self._settings.flow_of(site)
        model, floors, fingerprint, sparse = None, Floors(0.0, 0.0), "", None
        if kind == "keyword":
            vector = None
        else:
            model = await self._models.for_site(site)
            # A question that is searched by its words as they stand stays with BM25: tokens are parts of words.
            by_tokens = kind == "hybrid" and not by_words and is_sparse(model.fingerprint)
            if vector is None or by_tokens:
                made = await self._vectors(model, text)
                vector, sparse = made.vector, made.sparse if by_tokens else None
            floors = Floors(
                model.profile.short_floor if flow.short_floor is None else flow.short_floor,
                model.profile.content_floor if flow.content_floor is None else flow.content_floor,
            )
            fingerprint = model.fingerprint
        found = await self._index.candidates(
            site,
            text,
            vector,
            model=fingerprint,
            floors=floors,
            content_hits=depth,
            keyword_hits=depth if kind != "vector" else 0,
            sparse=sparse,
            short_hits=flow.short_hits,
            groups=groups,
        )
        return model, vector, found

    async def search(
        self,
        site: str,
        query: str,
        *,
        kind: SearchKind,
        size: int,
        groups: Iterable[str] = (),
        lang: str | None = None,
        labels: Mapping[str, Iterable[str]] = NO_LABELS,
    ) -> Sequence[SearchHit]:
        """Hits as the outside sees them.

        Args:
            lang: the language that pages had better be in; None: any.

        Raises: UnknownSite, Retryable.
        """
        found = await self.within(labels).find(site, query, kind=kind, size=size, groups=groups, lang=lang)
        # The words of some thousand sentences are stemmed at most; a thread, so that no other visitor waits.
        snippets = await asyncio.to_thread(lambda: [snippet(hit, query, found.vector) for hit in found.hits])
        return [
            SearchHit(text=hit.text, labels=labels_of(hit.labels), snippet=shown, **hit.figures)
            for hit, shown in zip(found.hits, snippets, strict=True)
        ]
