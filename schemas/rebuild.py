"""A rebuild: one generation of a site's index, from its first document to its deletion.

A rebuild's orders to workers, one per page, and their results: `rebuild.orders`, `rebuild.results`.

The result of a rebuild's quality gate, stored with the generation: figures, and the worst questions.
"""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field

from schemas.base import Message, SiteId, Wire, optional
from schemas.page import PageChange

State = Literal["not worse", "worse", "undecided"]


class Measure(Wire):
    """One figure for both indexes, and their difference."""

    name: str
    live: float
    candidate: float
    difference: float = Field(description="Candidate minus live.")
    low: float = Field(description="The true difference is not below, with a chance of .95.")
    high: float = Field(description="And not above.")
    state: State = Field(description="not worse: by the margin, which is shown; worse; undecided: too few questions.")
    needed: int = Field(description="Questions to tell; 0: they are enough.")


class Rank(Wire):
    """The rank of one question's right page, from 1; null: not among the first ten."""

    question: str
    page: str
    live: int | None
    candidate: int | None


class GateReport(Wire):
    """The gate's result."""

    questions: int
    margin: float = Field(description="Loss of a figure that is put up with.")
    needed: int = Field(description="Questions to tell whether the margin is kept; 0: they are enough.")
    measures: tuple[Measure, ...]
    worst: tuple[Rank, ...] = Field(description="Where the candidate is furthest behind.")
    passed: bool


class KeptGateReport(GateReport):
    """A report, with its time and the compared index."""

    against: str = Field(description="The index that was live then.")
    at: AwareDatetime


RebuildSource = Literal["changes", "chunks", "embeddings"]
# self: the command embeds and writes. workers: it sends the pages to workers with the stage `rebuild`.
RebuildBy = Literal["self", "workers"]
# building: not all of its topic is written. verified: an audit found no differences. live: visitors search it.
# previous: replaced, kept for a rollback.
RebuildState = Literal["building", "verified", "live", "previous"]


class RebuildFailure(Wire):
    """A page that could not be written into the index."""

    page_key: str
    reason: str


class Rebuild(Wire):
    """The note of a generation, as stored in Elasticsearch and shown to operators."""

    site: SiteId
    generation: int = Field(ge=1)
    index: str
    source: RebuildSource = Field(description="The topic it was filled from.")
    follows: RebuildSource = Field(description="The topic it is brought up to date from, and `offsets` are of.")
    embedder: str
    model: str
    dims: int
    chunker: str
    shared: bool = optional(
        False,  # so versions that do not know it read the others as before
        description="It is a part of an index that small sites share.",
    )
    state: RebuildState = "building"
    offsets: dict[int, int] = Field(default_factory=dict, description="By partition of that topic: where to go on.")
    done: int = Field(default=0, description="Records of the topic read, those of other sites included, ...")
    total: int = Field(default=0, description="... of so many.")
    pages: int = Field(default=0, description="Changes of pages written: of one that was saved twice, both.")
    chunks: int = 0
    embedded: int = Field(default=0, description="Chunks that cost a model call.")
    remade: int = Field(
        default=0, description="Pages whose record did not fit this index and was made from the change."
    )
    failures: int = 0
    failed: tuple[RebuildFailure, ...] = Field(default=(), description="The first of them.")
    seconds: float = Field(default=0.0, description="Spent on filling, over all runs.")
    created_at: AwareDatetime
    updated_at: AwareDatetime
    promoted_at: AwareDatetime | None = None
    gate: KeptGateReport | None = optional(  # so versions that do not know it read the others as before
        description="What the quality gate found, by `pagewire index rebuild --gate`; absent: it was not asked."
    )


class Generation(Rebuild):
    """A generation with the current size of its index."""

    documents: int = Field(description="Chunks and page records that can be found.")
    live_pages: int = Field(default=0, description="Pages in it that visitors would find; 0 while it is being built.")
    live_chunks: int = Field(default=0, description="Their chunks.")
    bytes: int = Field(description="On disk.")


class RebuildList(Wire):
    """The generations of a site."""

    generations: tuple[Generation, ...] = Field(description="The oldest first.")
    running: str | None = Field(description="The process at work on them, if any.")


class RebuildOrder(Wire):
    """The body of `POST .../rebuilds`."""

    source: RebuildSource = Field(alias="from")
    embedder: str | None = Field(default=None, description="As PAGEWIRE_EMBEDDER; default: as `index rebuild`.")
    chunk_size: int | None = Field(default=None, ge=32, le=20_000)
    chunk_mode: Literal["content", "fixed"] | None = None
    by: RebuildBy = Field(
        default="self",
        description="`workers`: the workers' stage `rebuild` embeds and writes, side by side; of `changes`.",
    )
    promote: bool = Field(default=False, description="Promote it when the audit finds it right.")
    fresh: bool = Field(default=False, description="Delete an unfinished one first.")


# built: it is in the index, or one that wins over it. failed: it never will be; it is a dead letter.
# refused: no page will be, by this worker's settings.
OrderOutcome = Literal["built", "failed", "refused"]


class PageOrder(Message):
    """One change of a page, to be put into one generation of its site's index by whichever worker gets it."""

    run: str = Field(description="The run of a rebuild that ordered it and receives the result.")
    index: str = Field(description="The index to write to. If it is gone, the order is dropped.")
    partition: int = Field(ge=0, description="Where the change stands in cms.changes, ...")
    offset: int = Field(ge=0, description="... as in the heads of the index.")
    change: PageChange


class PageBuilt(Message):
    """The result of an order."""

    run: str
    index: str
    page_key: str
    partition: int = Field(ge=0, description="Of the change, as in the order.")
    offset: int = Field(ge=0)
    outcome: OrderOutcome
    pages: int = Field(default=0, description="1, unless a change that wins over it was there.")
    chunks: int = Field(default=0, description="It has so many; ...")
    embedded: int = Field(default=0, description="... so many cost a model call.")
    reason: str = Field(default="", description="Of a page that was not built, for an operator to read.")
