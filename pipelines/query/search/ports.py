"""What retrieving needs of an index and of an embedder, and what they give: adapters implement these."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pipelines.runtime.embedder import Embedder
from pipelines.runtime.errors import Retryable
from schemas.ingest import SparseVector, UnitKind, Vector32
from schemas.labels import NO_LABELS, have_labels
from schemas.page import FieldName, PageStamp
from schemas.query import Source

ChunkKey = tuple[str, FieldName, int]  # page key, field, ord


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A chunk that was found, by its place alone: most of what is found is never read."""

    page_key: str
    field: FieldName
    ord: int
    index: str = ""  # that it was found in: what stands around it is read from the same one
    cosine: float | None = None  # -1..1; None: the vectors did not find it
    # >= 0; None: the keywords did not find it. Where sparse vectors take the place of BM25, their product.
    bm25: float | None = None
    score: float = 0.0  # 0..1 after `fuse`; comparable within one list only
    untranslated: bool = False  # the page was found in another language of the site than the question's, and not in it

    @property
    def place(self) -> tuple[str, FieldName, int]:
        return self.page_key, self.field, self.ord


@dataclass(frozen=True, kw_only=True)
class HitUnit:
    """A sentence, list item or table row of a content chunk (text.units.Unit) with its vector.

    Its text may end in the next chunk, its heading and its table's header stand in one before.
    """

    start: int  # in the page's content, or in the text at its place in an attachment
    text: str  # Markdown, as on the page
    kind: UnitKind
    headings: tuple[str, ...] = ()  # above it, the outermost first; plain text
    intro: str = ""  # Markdown: the sentence that introduces its list or table
    header: str = ""  # Markdown: of a row, its table's header row; of a definition, its term
    block: int = 0  # start of the list or table that it is part of; its own start where it is part of none
    vector: Vector32 = dataclasses.field(compare=False, repr=False)  # of length 1; its sense, as a passage


@dataclass(frozen=True, kw_only=True)
class Hit(Candidate):
    """A chunk that was found and read, or read as a neighbour of one. `text` is its core."""

    page_id: str
    lang: str
    title: str
    url: str
    text: str
    revision: int
    stamp: PageStamp = dataclasses.field(default_factory=PageStamp)
    units: tuple[HitUnit, ...] = dataclasses.field(default=(), compare=False, repr=False)  # that start in it, in order
    labels: tuple[str, ...] = dataclasses.field(default=(), compare=False)  # of the page, as the index has them

    @property
    def shown(self) -> tuple[str, str]:
        """What all chunks have in common that may stand in one source."""
        return self.title, self.url

    @property
    def figures(self) -> dict[str, Any]:
        """What a source and a line of results say of it."""
        same = ("page_id", "lang", "title", "url", "field", "ord", "score", "cosine", "revision")
        return {name: getattr(self, name) for name in same} | dict(self.stamp)

    def source(self, n: int, text: str, heading: str = "") -> Source:
        return Source(n=n, heading=heading, text=text, **self.figures)


@dataclass(frozen=True)
class Floors:
    """Least cosine of a hit; they belong to the embedder."""

    short: float
    content: float


@dataclass(frozen=True)
class Candidates:
    """What both kinds of search found, best first, and how well the index knows the words."""

    dense: list[Candidate]
    keyword: list[Candidate]
    terms: list[tuple[str, int]]  # the question's terms and the number of chunks that have them
    total: int  # chunks
    by_language: bool = False  # whether the terms are stems of their language (text.words)
    # Words of the question that no chunk has -> similar words that chunks have, the most similar one first.
    similar: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)


class QueryModelOutdated(Retryable):
    """The vector is of another model than the index that is live by now: ask again with the right one."""

    code = "index-moved"


@dataclass(frozen=True)
class Thresholds:
    """Of the figures. The defaults are those of a system we re-create, tuned for an embedder it does not name."""

    near: float = 0.65  # D1: mean cosine distance up to which all is well
    far: float = 0.75  # D2: ... past which nothing is
    spread: float = 0.55  # E1: entropy of several pages
    scattered: float = 0.8  # E2: ... of no page in particular
    subject: float = 0.4  # SQmin: least share of words that say something


@dataclass(frozen=True)
class Calibration:
    """A logistic regression: score = 1 / (1 + exp(-(bias + sum of weight x signal)))."""

    bias: float
    weights: Mapping[str, float]

    def score(self, signals: Mapping[str, float]) -> float:
        """Chance that the question can be answered, 0..1."""
        logit = self.bias + sum(weight * signals[name] for name, weight in self.weights.items())
        return 1 / (1 + math.exp(-max(min(logit, 50.0), -50.0)))


@dataclass(frozen=True)
class Scores:
    """The two steps of the decision."""

    quick: Calibration  # from what the search says
    no: float  # quick score below which nothing can be answered
    yes: float  # quick score from which it can; in between the sentences are looked at
    full: Calibration  # with the sentences
    threshold: float  # least full score of an answerable question


@dataclass(frozen=True)
class GateProfile:
    """What a model's cosines mean for the gate. Uncalibrated, only "nothing found" is known."""

    thresholds: Thresholds | None = None
    native: Scores | None = None  # None: the figures decide, by their thresholds
    foreign: Scores | None = None


@dataclass(frozen=True)
class Background:
    """How near to a question units are that have nothing to do with it.

    How far the best unit is ahead of others says much on a site of many pages and nothing on one that has just begun:
    there these stand in for the pages that it does not have. Measured on such sites: docs/reference/quality.md.
    """

    units: int  # where fewer are found, they are filled up to so many
    cosine: float  # mean of each, as in the signals
    score: float  # mean
    spread: float  # standard deviation of the scores
    rival: float  # score of the best on another page


@dataclass(frozen=True)
class SurenessProfile:
    """What makes the best unit of a search sure (pipelines.query.extractive.ranking), and what is sure enough.

    Fitted by `python -m bench sureness` on the tuned part of the everyday questions.
    """

    unit: Calibration  # chance that the best unit answers
    page: Calibration  # ... that its page does
    least_unit: float  # to show the unit
    least_page: float  # to show what fits best on the page
    background: Background | None = None  # None: not measured
    foreign: Calibration | None = None  # as `page`, for a question in another language than it; None: `page` is


@dataclass(frozen=True)
class EmbedderProfile:
    """What cosines mean; it differs from model to model.

    Floors are measured by `python -m bench floors`: fewer than 0.5 % of the right hits fall below. The gate's weights
    are fitted by `python -m bench gate --fit`.
    """

    short_floor: float  # name, title, description, keywords: the one best hit
    content_floor: float  # content
    example_floor: float = 0.5  # two questions about the like; measured for the bundled model alone
    gate: GateProfile = dataclasses.field(default_factory=GateProfile)  # uncalibrated: knows only "nothing found"
    sureness: SurenessProfile | None = None  # None: not calibrated
    # The direction that all vectors of the model have in common, as schemas.compact has it; empty: not measured.
    # Printed by `python -m bench floors`.
    common: bytes = dataclasses.field(default=b"", repr=False)


class Reranker(Protocol):
    """Reads question and passages together (adapters.reranker)."""

    async def scores(self, question: str, passages: Sequence[str]) -> Sequence[float]:
        """Chance that each passage answers the question, 0..1."""


class SearchEmbedder(Embedder, Protocol):
    """An embedder that knows what its cosines mean."""

    @property
    def profile(self) -> EmbedderProfile: ...


class SearchEmbedders(Protocol):
    """Which embedder a site's live index was built with (adapters.embedders.registry)."""

    async def for_site(self, site: str) -> SearchEmbedder: ...


class SearchIndex(Protocol):
    """The live index of each site, as it is searched (adapters.elastic.search.SiteSearch)."""

    async def candidates(
        self,
        site: str,
        text: str,
        vector: Vector32 | None,
        *,
        model: str = "",
        floors: Floors,
        content_hits: int,
        keyword_hits: int,
        sparse: SparseVector | None = None,
        short_hits: int = 1,
        groups: Iterable[str] = (),
        labels: Mapping[str, Iterable[str]] = NO_LABELS,
    ) -> Candidates:
        """Search all five fields by vector (unless None) and by keywords (unless `keyword_hits` is 0).

        Args:
            sparse: takes the place of BM25, in an index that has sparse vectors.
            labels: of each key the pages must have one of the values.

        Raises: QueryModelOutdated: the live index is of another model than `model`. Retryable.
        """

    async def page(self, site: str, page_id: str, *, groups: Iterable[str] = ()) -> list[Hit]:
        """The chunks of a page in all its languages that are for everybody or for one of the groups: language by
        language, in order. Raises: Retryable."""

    async def chunks(self, index: str, addresses: Sequence[ChunkKey]) -> list[Hit]:
        """Chunks by their place. Raises: Retryable."""

    async def field(self, index: str, page_key: str, field: FieldName) -> list[Hit]: ...


# An index of a site, by its name, that is not live, for trials (wiring.index_search). Raises: Retryable; NoTrialIndex:
# the site has none of this name, or its model is not there.
OtherIndexes = Callable[[str, str], Awaitable[tuple[SearchIndex, SearchEmbedders]]]


class LabelledIndex(SearchIndex):
    """A page is in it if it has, of each key, one of the values."""

    def __init__(self, index: SearchIndex, labels: Mapping[str, Iterable[str]]) -> None:
        self._index = index
        self._labels = labels

    async def candidates(self, site: str, text: str, vector: Vector32 | None, **how: Any) -> Candidates:
        return await self._index.candidates(site, text, vector, **how, labels=self._labels)

    async def page(self, site: str, page_id: str, *, groups: Iterable[str] = ()) -> list[Hit]:
        return self._own(await self._index.page(site, page_id, groups=groups))

    async def chunks(self, index: str, addresses: Sequence[ChunkKey]) -> list[Hit]:
        return self._own(await self._index.chunks(index, addresses))

    async def field(self, index: str, page_key: str, field: FieldName) -> list[Hit]:
        return self._own(await self._index.field(index, page_key, field))

    def _own(self, hits: Iterable[Hit]) -> list[Hit]:
        return [hit for hit in hits if have_labels(hit.labels, self._labels)]
