"""Cuts a page's fields into cores: small enough to embed and cite, and stable when an editor changes a line.

    PageDocument ─convert─▶ {field: text} ─chunk─▶ cores ─embed─▶ vectors

Where a core ends must depend on the text near it only: else one inserted sentence moves every later border,
and the rest of the page is embedded again. So borders are not found by walking along the page. Every possible
border gets a rank that is its own (how strong a break it is, then a hash of the characters around it), all
start as cuts, and the cuts are taken away from the weakest rank upwards wherever the two neighbours fit into
one core. No cut is decided by how far it is from the page's start, so an edit disturbs its own core, now and
then the next one, and dies out: each further step needs a stronger border than the last.

What follows from it: a core is at most `size`; two neighbouring cores never fit into one; a heading goes with
the text under it; paragraphs are kept whole when they fit.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby, pairwise
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from schemas.ingest import Chunk, Chunker
from schemas.page import FIELDS, AttachmentPlace, FieldName


class Border(IntEnum):
    """How strong a break in the text is; weaker ones are given up first."""

    CHARACTER = 0
    WORD = 1
    UNDER_HEADING = 2  # weaker than a sentence: a heading alone answers nothing
    SENTENCE = 3
    LINE = 4  # list item, table row, line of code
    PARAGRAPH = 5
    HEADING = 6  # of level 6; 11 is of level 1


Positions = NDArray[np.int64]
CodePoints = NDArray[np.uint64]

_NEIGHBOURHOOD = 16  # characters on each side that a border's hash reads

# Borders of its own, not those of text.markdown and text.sentences: every vector in every index is of a text between
# them, so they never change, and they must be found in any text in linear time.

# One or more line ends with blank lines between: ends where the next line with text starts.
_LINE_END = re.compile(r"\n(?:[^\S\n]*\n)*")
# As `convert` writes them: alone between blank lines. A comment in a code block rarely is.
_HEADING = re.compile(r"(#{1,6})[^\S\n]+\S[^\n]*\n[^\S\n]*(?:\n|\Z)")
_SENTENCE_END = re.compile(
    r"""(?<=[.!?…؟۔।॥])
        (?<!\b\w\.)(?<!\b\w\w\.)         # z. B., Dr., 12. March
        ["'”’»)\]]{0,3}[^\S\n]+(?=[^\sa-z])
      | (?<=[。！？])["'”’»）」』]{0,3}(?=\S)""",
    re.VERBOSE,
)
_WORD_END = re.compile(r"(?<=\s)(?=\S)|(?<=[，、；：])(?=\S)")


@dataclass(frozen=True)
class AttachmentPiece:
    """Text of an attachment that stands at one place, for example on one page of it."""

    place: AttachmentPlace
    text: str


def chunk_page(
    fields: Mapping[FieldName, str], chunker: Chunker, attached: Sequence[AttachmentPiece] = ()
) -> tuple[Chunk, ...]:
    """Cut each field on its own, in the order of `FIELDS`; a field without text has no chunks.

    What is attached goes on behind the page's own content, each piece cut on its own: no core spans two places.
    """
    own = [
        Chunk(field=field, ord=ord, text=core)
        for field in FIELDS
        if fields.get(field, "").strip()
        for ord, core in enumerate(chunk_field(fields[field], chunker))
    ]
    cores = [
        (piece.place, core) for piece in attached if piece.text.strip() for core in chunk_field(piece.text, chunker)
    ]
    behind = sum(chunk.field == "content" for chunk in own)
    return (*own, *(Chunk(field="content", ord=behind + n, text=c, place=p) for n, (p, c) in enumerate(cores)))


def pieces_of(chunks: Iterable[Chunk]) -> list[AttachmentPiece]:
    """What was attached, from its chunks: undoes `chunk_page`."""
    attached = [(chunk.place, chunk.text) for chunk in chunks if chunk.place]
    return [
        AttachmentPiece(place, "".join(text for _, text in group))
        for place, group in groupby(attached, key=lambda each: each[0])
    ]


def chunk_field(text: str, chunker: Chunker) -> list[str]:
    """The cores of a text: laid end to end they are the text.

    Args:
        text: Any Unicode; cut as it is, nothing is trimmed.
        chunker: `fixed` cuts after every `size` characters; `content` at the text's own borders.

    Returns:
        Cores of 1 to `size` characters (Unicode code points), none for an empty text. In `content` mode a
        core holds more than white space, unless half of `size` or more is white space in a row.
    """
    match chunker.mode:
        case "fixed":
            cuts = list(range(chunker.size, len(text), chunker.size))
        case "content":
            cuts = _cuts(text, chunker.size)
        case _:
            assert_never(chunker.mode)
    edges = [0, *cuts, len(text)]
    return [text[a:b] for a, b in pairwise(edges) if a < b]


def embedded_text(cores: Sequence[str], i: int, overlap: float) -> str:
    """What is embedded for core `i`: the end of the core before it, itself, the start of the core after it.

    Args:
        cores: All cores of one field, in order.
        i: Which core.
        overlap: Share of each neighbouring core, rounded to whole characters (a half to the even number).
    """
    before, after = "", ""
    if i > 0:
        before = cores[i - 1][len(cores[i - 1]) - round(len(cores[i - 1]) * overlap) :]
    if i + 1 < len(cores):
        after = cores[i + 1][: round(len(cores[i + 1]) * overlap)]
    return before + cores[i] + after


def _cuts(text: str, size: int) -> list[int]:
    """Where to cut, in `content` mode."""
    if len(text) <= size:
        return []
    codes = _code_points(text)
    at, strength = _borders(text, size, codes)
    weakest_first: Positions = np.lexsort((at, _hashes(codes, at), strength))
    return _drop_needless(at, weakest_first, len(text), size)


def _drop_needless(at: Positions, weakest_first: Positions, length: int, size: int) -> list[int]:
    """The sorted borders `at` without those whose two neighbours fit into one core when their turn comes."""
    edges = [0, *at.tolist(), length]
    left = list(range(-1, len(edges) - 1))  # index of the next edge still there, on either side
    right = list(range(1, len(edges) + 1))
    for border in (weakest_first + 1).tolist():
        before, after = left[border], right[border]
        if edges[after] - edges[before] <= size:
            right[before], left[after] = after, before
    cuts = []
    border = right[0]
    while border < len(edges) - 1:
        cuts.append(edges[border])
        border = right[border]
    return cuts


def _borders(text: str, size: int, codes: CodePoints) -> tuple[Positions, Positions]:
    """Sorted positions and their strengths, so many that no two neighbours are more than `size` apart.

    Words are borders only inside sentences longer than that, characters only inside such words.
    """
    first, last = len(text) - len(text.lstrip()), len(text.rstrip()) or len(text)

    def between_text(positions: Iterable[int]) -> Positions:
        found = np.fromiter(positions, np.int64)
        return found[(first < found) & (found < last)]

    borders: tuple[Positions, Positions] = (np.empty(0, np.int64), np.empty(0, np.int64))
    for kind, positions in _line_ends(text).items():
        borders = _add(borders, between_text(positions), kind)
    sentences = (match.end() for match in _SENTENCE_END.finditer(text))
    borders = _add(borders, between_text(sentences), Border.SENTENCE)
    words = (
        match.end()
        for start, end in _gaps(borders[0], len(text), size)
        for match in _WORD_END.finditer(text, start + 1, end)
        if not _inside_cluster(text, match.end())
    )
    borders = _add(borders, between_text(words), Border.WORD)
    characters = [
        position
        for start, end in _gaps(borders[0], len(text), size)
        for position in _hard_ends(text, start, end, size, codes)
    ]
    return _add(borders, np.array(characters, np.int64), Border.CHARACTER)


def _add(borders: tuple[Positions, Positions], more: Positions, kind: int) -> tuple[Positions, Positions]:
    """Add borders of one kind; where there is one already, the stronger stays."""
    at = np.concatenate([borders[0], more])
    strength = np.concatenate([borders[1], np.full(len(more), kind)])
    order = np.lexsort((-strength, at))
    at, strength = at[order], strength[order]
    new = np.diff(at, prepend=-1) > 0
    return at[new], strength[new]


def _gaps(at: Positions, length: int, size: int) -> Iterator[tuple[int, int]]:
    """Stretches without a border that are longer than a core may be."""
    starts, ends = np.append(0, at), np.append(at, length)
    long = ends - starts > size
    return zip(starts[long].tolist(), ends[long].tolist(), strict=True)


def _line_ends(text: str) -> dict[int, list[int]]:
    """Borders between lines: strength -> positions."""
    found: dict[int, list[int]] = {}
    under_heading = _HEADING.match(text) is not None
    for match in _LINE_END.finditer(text):
        blank = match.group().count("\n") > 1
        heading = _HEADING.match(text, match.end()) if blank else None
        kind: int = Border.PARAGRAPH if blank else Border.LINE
        if heading:
            kind = Border.HEADING + 6 - len(heading[1])
        elif under_heading:
            kind = Border.UNDER_HEADING
        found.setdefault(kind, []).append(match.end())
        under_heading = heading is not None
    return found


def _hard_ends(text: str, start: int, end: int, size: int, codes: CodePoints) -> Iterator[int]:
    """Borders inside a word longer than a core: where the hash says so, else after `size` characters."""
    every = max(16, size // 16)  # characters, on average
    # White space before and after the word stays with it.
    first = end - len(text[start:end].lstrip())
    last = start + len(text[start:end].rstrip()) - 1
    inside = np.arange(first + 1, last + 1)
    chosen = inside[_hashes(codes, inside) < np.uint64(2**64 // every)]
    previous = start
    for candidate in [*chosen.tolist(), end]:
        while candidate - previous > size:
            furthest = last if previous < last < previous + size else previous + size
            previous = _whole_clusters(text, previous, furthest)
            yield previous
        # In a run of equal characters all are chosen or none; thinned out they stay cheap.
        if candidate < end and candidate - previous >= every // 2:
            previous = _whole_clusters(text, previous, candidate)
            yield previous


def _whole_clusters(text: str, start: int, position: int) -> int:
    """The nearest border between two visible characters at or before `position`, or `position` itself."""
    for candidate in range(position, max(start, position - 32), -1):
        if not _inside_cluster(text, candidate):
            return candidate
    return position


def _inside_cluster(text: str, position: int) -> bool:
    """Whether a cut here would part what is read as one character (after UAX #29, without Hangul jamo)."""
    before, after = text[position - 1], text[position]
    if after < "\u0300":
        return before == "\r" and after == "\n"
    if after == "\u200d" or before == "\u200d" or unicodedata.category(after) in ("Mn", "Me", "Mc"):
        return True
    if "\U0001f3fb" <= after <= "\U0001f3ff" or "\U000e0020" <= after <= "\U000e007f":  # skin tones, tags
        return True
    if _is_flag_letter(after):  # flags are pairs of letters
        run = 0
        while run < min(position, 64) and _is_flag_letter(text[position - 1 - run]):
            run += 1
        return run % 2 == 1
    return False


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _code_points(text: str) -> CodePoints:
    """One number per character, with a neighbourhood of nothing at either end."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
    return np.pad(codes + np.uint64(1), _NEIGHBOURHOOD)


def _hashes(codes: CodePoints, at: Positions) -> NDArray[np.uint64]:
    """A hash of the characters around each position, the same wherever in a page they stand."""
    state = np.zeros(len(at), np.uint64)
    for offset in range(2 * _NEIGHBOURHOOD):
        state = (state ^ codes[at + offset]) * np.uint64(0x9E3779B97F4A7C15)
        state ^= state >> np.uint64(32)
    return state
