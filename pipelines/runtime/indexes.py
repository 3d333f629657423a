"""A generation of a site's index: its name and its metadata."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from pipelines.runtime.errors import Kind, Retryable
from schemas.ingest import Chunker
from text.words import ANALYSIS

WRITE_SUFFIX = ".write"


class IndexUnfit(Retryable):
    """The site's index is not as expected, and guessing could lose pages: an operator has to look at it."""

    code = "index-unfit"
    kind = Kind.SITE


class IndexGone(IndexUnfit):
    """The site had pages, and its index is gone."""

    code = "index-gone"


@dataclass(frozen=True)
class IndexInfo:
    """The metadata of an index, from `_meta` of its mapping."""

    name: str
    site: str
    embedder: str  # as in settings.embedder
    model: str  # its fingerprint
    dims: int
    chunker: str  # fingerprint
    held_until: datetime | None = None  # a promotion runs: no receipt before this time
    created_at: datetime | None = None
    mapped: bool = True  # its mapping knows all that is written; that of an older version is completed with a write
    analysis: str = ""  # text.words.ANALYSIS of the software that made it; empty before there was one
    shared: str | None = None  # the index of many sites that it is a part of

    @property
    def generation(self) -> int:
        return int(self.name[-6:])

    @property
    def concrete(self) -> str:
        """The name of the index in Elasticsearch's answers."""
        return self.shared or self.name

    @property
    def mark(self) -> dict[str, str]:
        """The fields by which its documents differ from those of other sites in the same index."""
        return {"generation": self.name} if self.shared else {}

    @property
    def write_alias(self) -> str:
        return self.name + WRITE_SUFFIX

    @property
    def held(self) -> bool:
        return self.held_until is not None and datetime.now(UTC) < self.held_until

    @property
    def by_language(self) -> bool:
        """Whether its stems are those of the pages' languages; else they are the words' first letters."""
        return self.analysis == ANALYSIS

    @property
    def cut(self) -> Chunker:
        """The chunker of the index. Raises: IndexUnfit: this version does not know it."""
        try:
            return Chunker.of(self.chunker)
        except ValueError as err:
            raise IndexUnfit(f"index {self.name}: {err}") from err


def alias(site: str) -> str:
    return f"pagewire-{site}"


def index_name(site: str, generation: int) -> str:
    return f"pagewire-{site}-{generation:06d}"
