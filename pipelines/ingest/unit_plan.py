"""Which units of a page are embedded, and as what: the query stages find quotations by their vectors.

    PageChunks ─plan_units─▶ (unit, sense)… for each chunk ─model or known vector─▶ EmbeddedChunk.units, .unit_vectors

The cores of a text, end to end, are the text: so units are cut here, from the chunks as they came, and nothing of them
travels before. A unit belongs to the chunk in which it starts. What is repeated with each unit (headings, a table's
header) is bounded, else a small page could become a large message.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from itertools import accumulate, groupby, islice

from schemas.ingest import ChunkUnit, PageChunks
from text.units import Unit, units

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
        yield ChunkUnit(
            start=unit.start,
            text=unit.text,
            kind=unit.kind,
            headings=unit.headings,
            intro=unit.intro,
            header=unit.header,
            block=unit.block,
        )
