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
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from schemas.ingest import Chunk, Chunker
from schemas.page import FIELDS, FieldName


class Border(IntEnum):
    """How strong a break in the text is; weaker ones are given up first."""

    CHARACTER = 0
    WORD = 1
    UNDER_HEADING = 2  # weaker than a sentence: a heading alone answers nothing
    SENTENCE = 3
    LINE = 4  # list item, table row, line of code
    PARAGRAPH = 5
    HEADING = 6  # of level 6; 11 is of level 1


_NEIGHBOURHOOD = 32  # characters on each side that a border's hash reads

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


def chunk_page(fields: Mapping[FieldName, str], chunker: Chunker) -> tuple[Chunk, ...]:
    """Cut each field on its own, in the order of `FIELDS`; a field without text has no chunks."""
    return tuple(
        Chunk(field=field, ord=ord, text=core)
        for field in FIELDS
        if fields.get(field, "").strip()
        for ord, core in enumerate(chunk_field(fields[field], chunker))
    )


def chunk_field(text: str, chunker: Chunker) -> list[str]:
    """The cores of a text: laid end to end they are the text.

    Args:
        text: Any Unicode; cut as it is, nothing is trimmed.
        chunker: `fixed` cuts after every `size` characters; `content` at the text's own borders.

    Returns:
        Cores of 1 to `size` characters (Unicode code points), none for an empty text. In `content` mode a
        core holds more than white space, unless `size` characters of white space stand in a row.
    """
    match chunker.mode:
        case "fixed":
            cuts = list(range(chunker.size, len(text), chunker.size))
        case "content":
            cuts = _cuts(text, chunker.size)
        case _:
            assert_never(chunker.mode)
    edges = [0, *cuts, len(text)]
    return [text[a:b] for a, b in zip(edges, edges[1:], strict=False) if a < b]


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
    hashes = _hashes(text)
    borders = _borders(text, size, hashes)
    at = np.fromiter(borders, np.int64, len(borders))
    strength = np.fromiter(borders.values(), np.int64, len(borders))
    order = np.argsort(at)
    at, strength = at[order], strength[order]
    return _drop_needless(at, np.lexsort((at, hashes[at], strength)), len(text), size)


def _drop_needless(at: NDArray[np.int64], ranking: NDArray[np.int64], length: int, size: int) -> list[int]:
    """Of the sorted borders `at` keep those whose two neighbours, weakest first, do not fit into one core."""
    edges = [0, *at.tolist(), length]
    left = list(range(-1, len(edges) - 1))  # index of the next edge still there, on either side
    right = list(range(1, len(edges) + 1))
    for border in (ranking + 1).tolist():
        before, after = left[border], right[border]
        if edges[after] - edges[before] <= size:
            right[before], left[after] = after, before
    cuts = []
    border = right[0]
    while border < len(edges) - 1:
        cuts.append(edges[border])
        border = right[border]
    return cuts


def _borders(text: str, size: int, hashes: NDArray[np.uint64]) -> dict[int, int]:
    """Position -> strength, enough of them that no two neighbours are more than `size` apart.

    Words and characters are borders only inside sentences longer than `size`.
    """
    first = len(text) - len(text.lstrip())
    last = len(text.rstrip()) or len(text)  # no core of white space only at either end
    borders = {p: s for p, s in _block_borders(text) if first < p < last}
    for match in _SENTENCE_END.finditer(text):
        if first < match.end() < last:
            borders.setdefault(match.end(), Border.SENTENCE)
    for start, end in _gaps(borders, len(text), size):
        for match in _WORD_END.finditer(text, start + 1, end):
            if first < match.end() < last and not _inside_cluster(text, match.end()):
                borders.setdefault(match.end(), Border.WORD)
    for start, end in _gaps(borders, len(text), size):
        for position in _hard_borders(text, start, end, size, hashes):
            borders[position] = Border.CHARACTER
    return borders


def _block_borders(text: str) -> Iterator[tuple[int, int]]:
    under_heading = _HEADING.match(text) is not None
    for match in _LINE_END.finditer(text):
        blank = match.group().count("\n") > 1
        heading = _HEADING.match(text, match.end()) if blank else None
        if heading:
            yield match.end(), Border.HEADING + 6 - len(heading[1])
        elif under_heading:
            yield match.end(), Border.UNDER_HEADING
        else:
            yield match.end(), Border.PARAGRAPH if blank else Border.LINE
        under_heading = heading is not None


def _gaps(borders: Mapping[int, int], length: int, size: int) -> list[tuple[int, int]]:
    """Stretches without a border that are longer than a core may be."""
    edges = sorted([0, *borders, length])
    return [(a, b) for a, b in zip(edges, edges[1:], strict=False) if b - a > size]


def _hard_borders(text: str, start: int, end: int, size: int, hashes: NDArray[np.uint64]) -> Iterator[int]:
    """Borders inside a word longer than a core: where the hash says so, else after `size` characters."""
    every = max(2, size // 16)  # characters, on average
    candidates = np.flatnonzero(hashes[start + 1 : end] < np.uint64(2**64 // every)) + start + 1
    previous = start
    for candidate in [*candidates.tolist(), end]:
        while candidate - previous > size:
            previous = _whole_clusters(text, previous, previous + size)
            yield previous
        # A run of equal characters is all candidates or none; thinned, it stays cheap.
        if candidate < end and candidate - previous >= every // 2 and not _inside_cluster(text, candidate):
            previous = candidate
            yield candidate


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


def _hashes(text: str) -> NDArray[np.uint64]:
    """For each position a hash of the characters around it, the same wherever in a page they stand.

    A polynomial over code points (Rabin-Karp), for all positions at once: shape (len(text) + 1,).
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
    base = np.uint64(0x9E3779B97F4A7C15)
    inverse = np.uint64(pow(0x9E3779B97F4A7C15, -1, 2**64))
    padded = np.zeros(len(codes) + 2 * _NEIGHBOURHOOD, np.uint64)
    padded[_NEIGHBOURHOOD : _NEIGHBOURHOOD + len(codes)] = _mix(codes + np.uint64(1))
    powers = np.cumprod(np.full(len(padded), base), dtype=np.uint64)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(padded * powers, dtype=np.uint64)])
    windows = sums[2 * _NEIGHBOURHOOD :] - sums[: len(codes) + 1]
    back = np.cumprod(np.full(len(codes) + 1, inverse), dtype=np.uint64)
    return _mix(windows * back)


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread every bit over all 64 (the finaliser of splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
