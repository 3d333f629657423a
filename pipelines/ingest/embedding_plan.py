"""What a page costs to embed, without embedding it: texts, hashes that say what is known already, messages.

PageChunks ─plan─▶ (chunk, text, hash)… ─model or known vector─▶ EmbeddedChunk… ─parts─▶ PageEmbeddings…
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby

from pipelines.ingest.chunk import embedded_text
from schemas.ingest import Chunk, EmbeddedChunk, PageChunks, PageEmbeddings
from schemas.page import FieldName

# Half of what a message may be (schemas.topics): a part is read, held and indexed as a whole.
PART_BYTES = 4 * 1024 * 1024
_TITLE_BREAK = "\n\n"


@dataclass(frozen=True)
class PlannedChunk:
    """A chunk, what the model reads for it, and the name of the vector that comes out."""

    chunk: Chunk
    text: str
    embed_hash: str


def embed_hash(text: str, chunker: str, model: str) -> str:
    """Equal for equal text, chunker and model, given by their fingerprints: then the vector is the same."""
    digest = blake2b(digest_size=16)
    for part in (chunker, model, text):
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()


def plan(page: PageChunks, model: str) -> list[PlannedChunk]:
    """What to embed for a page, in the order of its chunks; `model` is the embedder's fingerprint."""
    chunker = page.chunker
    title = "".join(chunk.text for chunk in page.chunks if chunk.field == "title") if chunker.titled else ""
    planned = []
    for (field, _), group in groupby(page.chunks, key=_text_of):
        chunks = list(group)
        cores = [chunk.text for chunk in chunks]
        before = title + _TITLE_BREAK if title and field == "content" else ""
        for i, chunk in enumerate(chunks):
            text = before + embedded_text(cores, i, chunker.overlap)
            planned.append(PlannedChunk(chunk, text, embed_hash(text, chunker.fingerprint, model)))
    return planned


def _text_of(chunk: Chunk) -> tuple[FieldName, int | None]:
    """Which text the chunk was cut from: no overlap reaches from one attachment into the next."""
    return chunk.field, chunk.place.file if chunk.place else None


def parts(
    page: PageChunks,
    chunks: Sequence[EmbeddedChunk],
    *,
    embedder: str,
    model: str,
    dims: int,
    embedded: int,
    chunks_offset: int = 0,
    limit: int = PART_BYTES,
) -> list[PageEmbeddings]:
    """The messages that carry a page's embedded chunks; a delete and a page without chunks are one part, too.

    Args:
        page: Whose chunks they are.
        chunks: All of them, in order.
        embedder: What `settings.embedder` calls the model.
        model: The model's fingerprint.
        dims: Length of its vectors.
        embedded: How many of the chunks cost a model call.
        chunks_offset: Where the page stands in ingest.chunks.
        limit: Bytes that no part exceeds, unless one chunk alone does.
    """
    whole = PageEmbeddings(
        change=page.change,
        meta=page.meta,
        chunker=page.chunker.fingerprint,
        embedder=embedder,
        model=model,
        dims=dims,
        part=0,
        parts=1,
        counts=dict(Counter(chunk.field for chunk in chunks)),
        digest=page.digest,
        embedded=embedded,
        reused=len(chunks) - embedded,
        notes=page.notes,
        reading=page.reading,
        chunks_offset=chunks_offset,
    )
    room = limit - len(whole.encode()) - 16  # larger numbers of `part` and `parts`
    split = list(_split(chunks, room)) or [()]
    return [
        whole.model_copy(update={"part": part, "parts": len(split), "chunks": own}) for part, own in enumerate(split)
    ]


def _split(chunks: Sequence[EmbeddedChunk], room: int) -> Iterator[tuple[EmbeddedChunk, ...]]:
    own: list[EmbeddedChunk] = []
    used = 0
    for chunk in chunks:
        size = len(chunk.model_dump_json().encode()) + 1  # the comma
        if own and used + size > room:
            yield tuple(own)
            own, used = [], 0
        own.append(chunk)
        used += size
    if own:
        yield tuple(own)
