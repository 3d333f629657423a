"""What ingesting needs of the indexes: one to write to, which is live, and what they know of pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from pipelines.ingest.embedding_plan import KnownUnits
from pipelines.runtime.errors import Kind, Retryable
from pipelines.runtime.indexes import IndexInfo
from schemas.head import Head
from schemas.ingest import ChunkVectors, PageEmbeddings, ReceiptEvent
from schemas.page import ChangeRef, FieldName

ChunkAddress = tuple[FieldName, int]


class IndexReplaced(Retryable):
    """Another index is live than the one written, or will be in a moment: the work is done again.

    `again`: what must be sent again all the same; the new index may know nothing of the loser.
    """

    code = "index-moved"
    kind = Kind.MOMENT

    def __init__(self, message: str, again: ChangeRef | None = None) -> None:
        super().__init__(message)
        self.again = again


class HeadConflict(Retryable):
    """The page's head is not the one its writer has seen."""

    code = "head-moved"
    kind = Kind.MOMENT


class PartGone(Retryable):
    """A part that was put aside is not there any more: another worker has written its page meanwhile."""

    code = "part-gone"


class PartPosition(NamedTuple):
    """Where a part stands in ingest.embeddings, and its change in cms.changes."""

    offset: int
    partition: int | None = None  # None: it was not written down
    change: tuple[int, int] | None = None  # partition, offset; None: it was not written down


class PageStore(Protocol):
    """One index, as the index stage needs it."""

    @property
    def model(self) -> str:
        """Fingerprint of the model its vectors are of."""
        ...

    @property
    def chunker(self) -> str:
        """Fingerprint of the chunker its pages were cut by."""
        ...

    async def heads(self, page_keys: Iterable[str]) -> Mapping[str, Head]: ...

    async def write(self, part: PageEmbeddings, head: Head | None) -> bool:
        """Write the part's chunks, then the head if given, in place of the one with its token, or of none.

        False when a newer chunk is there. Raises: HeadConflict: another head is; chunks may have been written.
        """
        ...

    async def remove(self, change: ChangeRef, chunks: Sequence[ChunkAddress]) -> None:
        """Delete chunks unless a newer revision wrote them."""
        ...

    async def keep(self, part: PageEmbeddings, place: PartPosition) -> None:
        """Put a part aside, where no search looks, until the others of its page are there.

        Args:
            place: Where it stands in ingest.embeddings; of two copies of a part the one of the higher offset is kept.
        """
        ...

    async def kept(self, part: PageEmbeddings) -> Mapping[int, PartPosition]:
        """The parts put aside that are of the same making of the same change: where each stands, by its number."""
        ...

    async def take(self, part: PageEmbeddings, number: int) -> PageEmbeddings:
        """One of the parts that `kept` lists. Raises: PartGone."""
        ...

    async def drop(self, part: PageEmbeddings, places: Mapping[int, PartPosition]) -> None:
        """Forget parts that `kept` has listed, but no copies that came since."""
        ...

    async def strays(self, change: ChangeRef) -> Sequence[ChunkAddress]:
        """Chunks of the page, not newer than this change, that can be found."""
        ...

    async def regroup(self, head: Head, change: ChangeRef | None, groups: Sequence[str] | None) -> bool:
        """Show the head's chunks to other groups; None: to everybody. Text and vectors stay.

        Args:
            change: Whose chunks they are from now on; None: they stay as they are, and no further group sees them.

        Returns:
            Whether all of them were there.
        """
        ...

    async def refresh(self) -> None:
        """Return when everything written so far can be found."""
        ...


Store = TypeVar("Store", bound=PageStore)


class Sites(Protocol[Store]):
    """Which index of a site is live."""

    async def live(self, site: str, *, embedder: str, model: str, dims: int, chunker: str) -> Store:
        """The live index, created for this model and chunker when the site never had one."""
        ...

    async def there(self, site: str) -> Store | None:
        """The live index, if there is one; none is created."""
        ...

    async def still_live(self, index: Store) -> bool:
        """Whether this is what visitors search, now, and will be for the next moment."""
        ...


class KnownPages(Protocol):
    """What the live indexes know of pages, and any index to write to (adapters.elastic.pages.ElasticPages). All raise
    Retryable.
    """

    def at(self, info: IndexInfo) -> PageStore: ...

    async def heads(self, site: str, page_keys: Iterable[str]) -> Mapping[str, Head]:
        """Heads of the pages that have one, by page key."""
        ...

    async def receipts(self, page_keys: Iterable[str]) -> Mapping[str, ReceiptEvent]:
        """The last events of the pages that have one, by page key."""
        ...

    async def vectors(self, site: str, hashes: Sequence[str]) -> Mapping[str, ChunkVectors]:
        """Vectors that are there already, by the hash of what was embedded."""
        ...

    async def units(self, site: str, page_key: str, model: str) -> Sequence[KnownUnits]:
        """What the page's chunks hold of units, as far as it can be found; `model` is that of their vectors."""
        ...
