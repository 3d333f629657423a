"""Where a sentence ends: for quoting one, for citing one, and for cutting a source at one.

Knows Markdown: a heading, a list item, a table row and a block of code are each one unit, and nothing is joined
across them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

LONG_ITEM = 300  # characters: a longer list item is several sentences, quoted one by one

Kind = Literal["prose", "item", "row", "heading", "code"]


@dataclass(frozen=True)
class Sentence:
    """`text[start:end]` of the split text, without the white space around it."""

    start: int
    end: int
    kind: Kind
    # Start and end of the table's header row, on the rows below it.
    header: tuple[int, int] | None = None


# Languages that write ordinal numbers with a full stop: "3. Oktober" is no sentence end there.
_ORDINAL_DOT = re.compile(r"bs|cs|da|de|et|fi|hr|hu|is|lv|mk|nb|nn|no|pl|sk|sl|sr|tr")
_ABBREVIATION = re.compile(
    # de, en
    r"anm|bd|bzgl|bzw|ca|co|dgl|dipl|dr|eigtl|einschl|evtl|gem|ggf|hl|hr|hrsg|inkl|insb|jh|jhd|lt|mio|mld|mln|mrd|prof"
    r"|sog|spez|st|std|str|tel|vgl|vorm|zb|zt|zzgl|approx|assn|ave|blvd|capt|cf|cmdr|corp|dept|inc|jr|ltd|messrs|mrs?"
    r"|ms|mts?|rev|sen|sgt|sr|vs"
    # fr, it, es, ro
    r"|avd?a?|bull|chap|cie|dott|dra|gral|mgr|mlle|mme|prov|réf|rte|sigg?|srta|sra|sta|tél|ud|vd"
    # hu, pl, cs
    r"|dkt|godz|hab|inż|ker|krt|ks|np|pkt|pon|tj|tzn|tzv|ul|ún|vö|wg"
)
# Words of their own as well, or seldom alone: an abbreviation only before a number ("No. 5", "Abs. 2", "Okt. 3").
_ABBREVIATION_BEFORE_NUMBER = re.compile(
    r"abs|abt|art|aufl|est|fig|gen|kap|max|med|min|mind|nos?|nr|num|núm|op|pag|pág|par|pos|pp|rep|vol|kb|ok"
    r"|jan|febr?|mar|märz|mart|apr|avr|abr|mai|jun|juin|jul|juil|aug|août|ago|sept?|okt|oct|ott|nov|dez|dec|dic"
)
_FENCE = re.compile(r"[ \t]*(```|~~~)")
_HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]")
_ITEM = re.compile(r"[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+")
_ROW = re.compile(r"[ \t]*\|")
_RULE = re.compile(  # below a table's header; between sections
    r"[ \t]*\|?[ \t:|-]*-{3,}[ \t:|-]*\|?[ \t]*$|[ \t]*\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*$"
    r"|[ \t]*([-*_])(?:[ \t]*\1){2,}[ \t]*$"
)
_SEPARATOR = re.compile(r"^[ \t]*\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*$", re.MULTILINE)  # below a table's header
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*(?:\s+\"[^\"]*\")?\)")
_LINE_MARK = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|[-*+•][ \t]+|\d{1,3}[.)][ \t]+|>[ \t]?)+", re.MULTILINE)
_EMPHASIS = re.compile(r"(?<!\\)\*+|(?<!\\)`+|(?<![\w\\])_+|(?<!\\)_+(?!\w)|~~")
_ESCAPE = re.compile(r"\\([^\w\s])")
_LINE = re.compile(r"[^\n]*\n?")
# A full stop, what closes with it, and white space; the full-width and Indic ones need no white space.
_STOP = re.compile(r"(?:(?P<dot>\.)|[.!?…؟۔]+)[\"'”’“»)\]*_]*(?=\s)|[。！？]+[」』”’）]*|।(?=\s)")


def split(text: str, lang: str = "") -> list[Sentence]:
    """The sentences and Markdown units of `text`, in order. Rules, table separators and fences are left out."""
    found: list[Sentence] = []
    for start, end, kind, header in _blocks(text):
        if kind == "prose" or (kind == "item" and end - start > LONG_ITEM):
            found.extend(Sentence(s, e, kind) for s, e in _prose(text, start, end, lang))
        else:
            found.append(Sentence(start, end, kind, header))
    return found


def cut(text: str, limit: int, lang: str = "") -> str:
    """The longest beginning of `text` of at most `limit` characters that ends with a sentence.

    Ends with a word if not even one sentence fits, and is empty if no word does.
    """
    if len(text) <= limit:
        return text
    end = 0
    for sentence in split(text, lang):
        if sentence.end > limit:
            break
        end = sentence.end
    if end == 0 and limit > 0:
        end = limit if text[limit].isspace() else max(text.rfind(mark, 0, limit) for mark in " \n\t")
    return text[: max(end, 0)].rstrip()


def last_start(text: str, lang: str = "") -> int:
    """Where the last sentence of `text` starts; the length of `text` if it is blank."""
    sentences = split(text, lang)
    return sentences[-1].start if sentences else len(text)


def plain(markdown: str) -> str:
    """The words as a reader sees them, on one line: for comparing, embedding and finding them on the page."""
    text = _LINK.sub(r"\1", _SEPARATOR.sub("", markdown))
    text = _LINE_MARK.sub("", text)
    text = _EMPHASIS.sub("", text.replace("|", " "))
    return " ".join(_ESCAPE.sub(r"\1", text).split())


def _blocks(text: str) -> Iterator[tuple[int, int, Kind, tuple[int, int] | None]]:
    """(start, end, kind, header) of each block, white space trimmed."""
    start: int | None = None  # of the paragraph or code block being read
    kind: Kind = "prose"
    fence = ""
    previous_row: tuple[int, int] | None = None
    header: tuple[int, int] | None = None
    for match in _LINE.finditer(text):
        line, at = match.group(), match.start()
        if not line:
            break
        if fence:
            if line.strip() == fence:
                if start is not None:
                    yield from _block(text, start, at, "code", None)
                start, fence = None, ""
            elif start is None:
                start = at
            continue
        opened = _FENCE.match(line)
        special = _kind(line)
        ends = opened or special or not line.strip() or _RULE.match(line)
        if start is not None and ends:
            yield from _block(text, start, at, kind, None)
            start = None
        if special == "row":
            if _RULE.match(line):
                header = previous_row
                continue
            row = (at, at + len(line.rstrip("\n")))
            yield from _block(text, *row, "row", header)
            previous_row = _trim(text, *row)
            continue
        previous_row = header = None
        if opened:
            fence = opened.group(1)
        elif special == "heading":
            yield from _block(text, at, at + len(line), "heading", None)
        elif not ends or special == "item":
            if start is None:
                start, kind = at, special or "prose"
            if line.endswith(("  \n", "\\\n")):  # Markdown's hard line break
                yield from _block(text, start, at + len(line), kind, None)
                start = None
    if start is not None:
        yield from _block(text, start, len(text), "code" if fence else kind, None)


def _kind(line: str) -> Kind | None:
    if _HEADING.match(line):
        return "heading"
    if _ROW.match(line):
        return "row"
    if _RULE.match(line):
        return None
    return "item" if _ITEM.match(line) else None


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - (len(piece) - len(piece.rstrip()))


def _block(
    text: str, start: int, end: int, kind: Kind, header: tuple[int, int] | None
) -> Iterator[tuple[int, int, Kind, tuple[int, int] | None]]:
    start, end = _trim(text, start, end)
    if start < end:
        yield start, end, kind, header


def _prose(text: str, start: int, end: int, lang: str) -> Iterator[tuple[int, int]]:
    begin = start
    for stop in _STOP.finditer(text, start, end):
        if stop.end() < end and _ends_sentence(text, begin, stop, lang):
            yield _trim(text, begin, stop.end())
            begin = stop.end()
    if text[begin:end].strip():
        yield _trim(text, begin, end)


def _ends_sentence(text: str, begin: int, stop: re.Match[str], lang: str) -> bool:
    follows = text[stop.end() : stop.end() + 8].lstrip()[:1]
    if follows.islower():
        return False
    if stop["dot"] is None:
        return True
    before = text[begin : stop.start()]
    word = re.search(r"[^\s(\[\"'“„«»*_/-]*$", before)
    last = word.group() if word else ""
    if last.isdigit():
        return not (len(last) <= 2 and _ORDINAL_DOT.fullmatch(lang.partition("-")[0]))
    letters = last.rpartition(".")[2].casefold()
    if (len(letters) == 1 and letters.isalpha()) or _ABBREVIATION.fullmatch(letters):
        return False
    return not (follows.isdigit() and _ABBREVIATION_BEFORE_NUMBER.fullmatch(letters))
