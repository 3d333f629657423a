"""What a page costs to embed, without embedding it: texts, hashes that say what is known already, messages.

PageChunks ─plan─▶ (chunk, text, hash)… ─model or known vector─▶ EmbeddedChunk… ─parts─▶ PageEmbeddings…
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from io import StringIO
from itertools import accumulate, groupby, islice

from pipelines.ingest.chunk import embedded_text
from schemas.ingest import Chunk, ChunkUnit, EmbeddedChunk, PageChunks, PageEmbeddings
from schemas.page import FieldName
from text.units import Unit, units

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


MOST = 10_000  # units a page: with the bundled model a matter of minutes, as for the chunks of the longest page
# Characters of a page in which units are looked for, a line counting so many more: nearly every page has `MOST` before,
# and a million lines of one letter would take half a minute.
READ, LINE = 1_000_000, 30
LONGEST = 2_000  # characters of a unit: what is longer, a text without full stops, is no quotation
LONGEST_HEADING = 200  # characters; also of the title
LONGEST_HEADER = 1_000  # characters of a table's header row, or of a definition's term
# Characters of units with what is above them, per character of the core, and for each core besides; a unit counts
# `EACH` more. Prose needs 3 per character, a list of short items 10.
ROOM, SPARE, EACH = 8, 4_000, 100


@dataclass(frozen=True)
class PlannedUnit:
    """A unit, and what the model reads for it."""

    unit: ChunkUnit
    sense: str


@dataclass(frozen=True)
class KnownUnits:
    """Units of one chunk of an index with their vectors (schemas.compact), joined."""

    title: str
    units: Sequence[ChunkUnit]
    vectors: bytes


def plan_units(page: PageChunks) -> list[tuple[PlannedUnit, ...]]:
    """For each chunk of the page the units that start in it; none outside the content."""
    found: list[tuple[PlannedUnit, ...]] = []
    left, room = MOST, READ
    for (field, place), group in groupby(page.chunks, key=lambda chunk: (chunk.field, chunk.place)):
        cores = [chunk.text for chunk in group]
        if field != "content":
            found += [()] * len(cores)
            continue
        title = place.title if place else page.meta.title if page.meta else ""
        text, room = _readable("".join(cores), room)
        for own in _by_core(text, cores, page.change.lang):
            planned = tuple(PlannedUnit(unit, sense(unit, title)) for unit in islice(own, left))
            left -= len(planned)
            found.append(planned)
    return found


def sense(unit: ChunkUnit, title: str) -> str:
    """What the model reads for a unit; `title` is that of its page, or of its place in an attachment."""
    return Unit(end=unit.start + len(unit.text), **dict(unit)).sense(title[:LONGEST_HEADING])


def known_vectors(found: Iterable[KnownUnits]) -> Mapping[str, bytes]:
    """Vectors by what was embedded."""
    vectors: dict[str, bytes] = {}
    for each in found:
        dims = len(each.vectors) // max(len(each.units), 1)
        for n, unit in enumerate(each.units):
            vectors[sense(unit, each.title)] = each.vectors[n * dims : (n + 1) * dims]
    return vectors


def _readable(text: str, room: int) -> tuple[str, int]:
    """The beginning of a text that there is room for, and the room that is left."""
    kept = []
    for line in StringIO(text):
        if room <= 0:
            break
        kept.append(line[:room])
        room -= len(line) + LINE
    return "".join(kept), room


def _by_core(text: str, cores: Sequence[str], lang: str) -> Iterator[Iterator[ChunkUnit]]:
    """The units of a text, or of its beginning, that was cut into these cores."""
    ends = list(accumulate(map(len, cores)))
    by_core: list[list[Unit]] = [[] for _ in cores]
    for unit in units(text, lang):
        by_core[bisect_right(ends, unit.start)].append(unit)
    for core, own in zip(cores, by_core, strict=True):
        yield _fitting(own, ROOM * len(core) + SPARE)


def _fitting(found: Iterable[Unit], room: int) -> Iterator[ChunkUnit]:
    """As many as there is room for, in order."""
    for whole in found:
        if len(whole.text) > LONGEST:
            continue
        unit = replace(
            whole,
            headings=tuple(heading[:LONGEST_HEADING] for heading in whole.headings),
            header=whole.header if len(whole.header) <= LONGEST_HEADER else "",
        )
        room -= EACH + len(unit.text) + sum(map(len, unit.headings)) + len(unit.intro) + len(unit.header)
        if room < 0:
            return
        yield ChunkUnit.model_validate(unit, from_attributes=True)
