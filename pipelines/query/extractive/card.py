"""Card: shows the passage of a page that fits the question best, without claiming that it is the answer.

    units of the page, best first ─▶ the whole list, table or paragraph of each ─▶ as many as fit,
                                     (the lines around the unit if it is long)     in the page's order, … between them

A list, table or code block comes with the sentence that introduces it, and that sentence with its list. Omissions are
marked with …, and headings below the lead-in's are named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from pipelines.query.extractive.quotation import Quotation
from schemas.answer import Citation, Token, WholeTable
from schemas.query import Evidence, Source, SourceTable
from text.markdown import cells, plain, valid
from text.sentences import cut

ROOM = 900  # characters of the card, unless the best block alone is longer
BLOCK = 600  # characters of a block; of a longer one, some lines are shown
CUT = 180  # of a block that does not fit otherwise
MOST = 4  # blocks
NEAR = 4.0  # a unit may answer too if its score is at most so much below the best
SHORT_TABLE = 2  # lines: the only row below a header needs no mark

_BLOCK = re.compile(r"\S(?:.|\n(?![ \t]*(?:\n|\Z)))*")
_FENCE = re.compile(r"`{3,}|~{3,}")
_HEADING = re.compile(r"#{1,6}\s")
_SEPARATOR = re.compile(r"\|(?:\s*:?-+:?\s*\|)+\s*")
_MARKED_UP = re.compile(r"[*_`\[\]]")
GAP = "…"


@dataclass(frozen=True)
class _Piece:
    """A block of a page, or some lines of it.

    `start`, `end`: in the page's content. `quote`: its unit as plain text; empty for a sentence that only introduces
    the next piece.
    """

    n: int
    start: int
    end: int
    text: str
    quote: str
    headings: tuple[str, ...]
    block: int


def card(
    evidence: Sequence[Evidence],
    sources: Sequence[Source],
    lead_in: str,
    tables: Sequence[SourceTable] = (),
    meant: Callable[[Evidence], bool] = lambda _: True,
    path: Sequence[str] = (),
) -> Quotation:
    """The card of the best unit's page.

    Args:
        evidence: units, best first; at least one.
        lead_in: our words with the page's title.
        tables: the whole tables of rows in the evidence.
        meant: whether the question asks for this row, which is then shown in bold.
        path: the best unit's headings, which the lead-in names if the card begins with its block.
    """
    by_n = {each.n: each for each in sources}
    events: list[Token | Citation | WholeTable] = []
    taken: dict[tuple[int, int], _Piece] = {}
    for unit, room in product(evidence, (BLOCK, CUT)):
        if unit.score < evidence[0].score - NEAR or len(taken) >= MOST:
            break
        pieces = _pieces(unit, by_n, meant, room)
        more = taken | {place: piece for place, piece in pieces if place not in taken}
        if len(more) == len(taken) or by_n[unit.n].url != by_n[evidence[0].n].url:
            continue
        ordered = sorted(more.values(), key=lambda piece: piece.start)
        first = ordered[0].headings == evidence[0].headings
        said = " › ".join((lead_in, *path)) if first else lead_in
        written = list(_written(ordered, evidence[0].headings if first else (), said, tables))
        if not taken or sum(len(each.text) for each in written if isinstance(each, Token)) <= ROOM:
            taken, events = more, written
    return Quotation(tuple(events) or (Token(text=lead_in),), "place")


def _pieces(
    unit: Evidence, sources: dict[int, Source], meant: Callable[[Evidence], bool], room: int
) -> Iterator[tuple[tuple[int, int], _Piece]]:
    """The unit's block, the sentence that introduces it, and the block that it introduces."""
    source = sources.get(unit.n)
    at = source.text.find(unit.text) if source is not None else -1
    if source is None or at < 0:
        return
    blocks = _blocks(source.text)
    i = next(n for n, (_, end) in enumerate(blocks) if at < end)
    whole = source.text[slice(*blocks[i])]
    shown = _shown(whole, unit, room, source.lang, meant)
    intro = source.text[slice(*blocks[i - 1])] if i and unit.kind != "prose" else ""
    intro = "" if _HEADING.match(intro) or len(intro) + len(shown) > room else intro
    below = source.text[slice(*blocks[i + 1])] if whole.endswith(":") and i + 1 < len(blocks) else ""
    below = "" if _HEADING.match(below) or len(below) + len(shown) > room else below
    for n, text in ((i, shown), (i - 1, intro), (i + 1, below)):
        if not text:
            continue
        start, end = blocks[n]
        if n and _HEADING.match(source.text[slice(*blocks[n - 1])]):
            start = blocks[n - 1][0]  # it is named above the piece
        end = max(end, at + len(unit.text)) if n == i else end
        start, end = start + unit.start - at, end + unit.start - at
        quote = plain(unit.text) if n == i else ""
        yield (unit.n, n), _Piece(unit.n, start, end, text, quote, unit.headings, unit.block)


def _blocks(text: str) -> list[tuple[int, int]]:
    """(begin, end) of each block. Code is one block, even with empty lines in it."""
    blocks: list[tuple[int, int]] = []
    fence = ""
    for found in _BLOCK.finditer(text):
        said = found[0]
        if fence:
            blocks[-1] = (blocks[-1][0], found.end())
            fence = "" if f"\n{said}".endswith(f"\n{fence}") else fence
            continue
        blocks.append(found.span())
        if (begun := _FENCE.match(said)) and not said[begun.end() :].endswith(f"\n{begun[0]}"):
            fence = begun[0]
    return blocks


def _shown(block: str, unit: Evidence, room: int, lang: str, meant: Callable[[Evidence], bool]) -> str:
    """The block with its row marked; of a long list or table the lines around the unit; of long prose the unit."""
    if "\n\n" in unit.text and unit.kind != "code":  # with the question before it
        return unit.text if len(unit.text) <= room else f"{cut(unit.text, room, lang)} {GAP}"
    lines = block.split("\n")
    if unit.kind == "row":
        return _table(lines, unit, room, mark=meant(unit))
    if len(block) <= room:
        return block
    if len(lines) == 1 or unit.kind == "prose":
        said = unit.text if len(unit.text) <= room else f"{cut(unit.text, room, lang)} {GAP}"
        return (f"{GAP} " if not block.startswith(unit.text) else "") + said + (
            f" {GAP}" if not block.endswith(unit.text) and not said.endswith(GAP) else ""
        )  # fmt: skip
    fences = [lines[0], lines[-1]] if _FENCE.match(lines[0]) else []
    inner = lines[1:-1] if fences else lines
    first, last = _around(inner, unit.text.split("\n")[0], room)
    above, below = [GAP, ""] if first else [], ["", GAP] if last < len(inner) else []
    return "\n".join((*above, *fences[:1], *inner[first:last], *fences[1:], *below))


def _table(lines: list[str], unit: Evidence, room: int, *, mark: bool) -> str:
    """The table with its header, which may be in another passage, and with the unit's row in bold if it is meant."""
    # A blank row is the header of columns without names.
    rows = [line for line in lines if line.strip(" \t|") and not _SEPARATOR.fullmatch(line.strip())]
    header = unit.header or f"|{'  |' * len(cells(unit.text))}"
    rows = rows[1:] if rows and rows[0].strip() == unit.header.strip() else rows
    first, last = _around(rows, unit.text, room - len(header)) if sum(map(len, rows)) > room else (0, len(rows))
    more = f"|{f' {GAP} |' * len(cells(header))}"
    mark = mark and len(lines) > SHORT_TABLE + 1
    marked = [_bold(row) if mark and row.strip() == unit.text.strip() else row for row in rows]
    return "\n".join(
        (
            header,
            f"|{' --- |' * len(cells(header))}",
            *([more] if first else ()),
            *marked[first:last],
            *([more] if last < len(rows) else ()),
        )
    )


def _around(lines: Sequence[str], wanted: str, room: int) -> tuple[int, int]:
    """(first, last) of the lines that fit, with the wanted line in the middle."""
    first = next((n for n, line in enumerate(lines) if line.strip() == wanted.strip() or wanted in line), 0)
    last, room = first + 1, room - len(lines[first])
    while True:
        below = last < len(lines) and len(lines[last]) <= room
        if below:
            room -= len(lines[last])
            last += 1
        above = first > 0 and len(lines[first - 1]) <= room
        if above:
            first -= 1
            room -= len(lines[first])
        if not (below or above):
            return first, last


def _bold(row: str) -> str:
    if _MARKED_UP.search(row):
        return row
    return f"|{'|'.join(f' **{cell}** ' if cell else '  ' for cell in cells(row))}|"


def _written(
    pieces: Sequence[_Piece], above: tuple[str, ...], lead_in: str, tables: Sequence[SourceTable]
) -> Iterator[Token | Citation | WholeTable]:
    """A block quotation with a citation for each piece.

    Args:
        above: the headings in the lead-in.
    """
    yield Token(text=lead_in)
    at = len(lead_in)
    for last, piece in zip([None, *pieces], pieces, strict=False):
        skipped = last is not None and piece.start > last.end + 2 and not last.text.endswith(GAP)
        joint = "\n\n> " if last is None else "\n>\n> "
        joint += f"{GAP}\n>\n> " if skipped else ""
        if piece.headings and piece.headings != above:
            joint += f"**{piece.headings[-1]}**\n>\n> "
        above = piece.headings
        text = valid(piece.text).replace("\n", "\n> ")
        yield Token(text=joint + text)
        start = at + len(joint)
        at = start + len(text)
        if piece.quote:
            yield Citation(n=piece.n, start=start, end=at, quote=piece.quote)
        whole = next((each.text for each in tables if piece.n in each.sources and piece.block == each.block), "")
        if whole and f"| {GAP} |" in piece.text:
            yield WholeTable(n=piece.n, start=start, text=whole)
