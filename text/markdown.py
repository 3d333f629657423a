"""Markdown: its blocks, its plain text, and HTML made of it. The one place that knows how a page's text is written.

Most of what is read here are fragments: a passage begins in the middle of a table, a quotation is half of an emphasis.
markdown-it finds the blocks. Rows of tables and items of office files' lists are found line by line in what it calls
paragraphs: it knows a table by its header alone, and fills up short rows at a cost that grows with their square.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

# Quotations in each other, or twice the lists. Each reads all lines of those around it again; what is deeper is read
# line by line, which finds its items as well.
MAX_NESTING = 8
LONGEST_NUMBER = 3  # digits of an item's number: "1998. Then came the pool." begins with a year

Kind = Literal["prose", "item", "row", "heading", "code"]


@dataclass(frozen=True)
class Block:
    """`text[start:end]` of the text, without the white space around it.

    A paragraph, or its lines between hard line breaks; a list item's first paragraph; a table's row; a heading; what is
    inside a block of code. A definition list's terms and definitions are items: ": 9 to 5" below "Monday".
    """

    start: int
    end: int
    kind: Kind
    # Start and end of the table's header row, on the rows below it; of the term, on its definitions.
    header: tuple[int, int] | None = None


# Left out: indented code, headings by underlining, HTML and link definitions. No page that we convert has them, and the
# text of others means something else by four spaces or a line of dashes.
_RULES = ("blockquote", "fence", "heading", "hr", "list")
_LEAVES = frozenset(("paragraph_open", "heading_open", "fence", "hr"))
_LINE_END = re.compile(r"\n")
_ITEM = re.compile(rf"[ \t]*(?:[-*+•]|\d{{1,{LONGEST_NUMBER}}}[.)])[ \t]+")
_DEFINITION = re.compile(r"[ \t]{0,3}:[ \t]+(?=\S)")  # below its term, as PHP Markdown Extra and Pandoc write it
_INDENTED = "    "  # what goes on with the definition above
_ROW = re.compile(r"[ \t]*\|")
_SEPARATOR = re.compile(r"^[ \t]*\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*$", re.MULTILINE)  # below a table's header
_HARD_BREAKS = ("  \n", "\\\n")
_CELL = re.compile(r"\|((?:\\.|[^|\\])*)")
# Of a link
LABEL = r"(?:\\.|[^\[\]\\]|\[(?:\\.|[^\[\]\\])*+\])*+"  # with brackets of its own, as "Form [PDF]" has them
_LINK = re.compile(rf"!?\[({LABEL})\]\((?:[^)\s\]]|\](?!\())*+(?:\s+\"[^\"]*\")?\)")
# A heading's own text may begin with a number.
_LINE_MARK = re.compile(r"^[ \t]*(?:[-*+•:][ \t]+|\d{1,3}[.)][ \t]+|>[ \t]?)*+(?:#{1,6}[ \t]+)?", re.MULTILINE)
_DELETED = r"(?<![\\~])~~(?=[^\s~])[^~\n]+~~(?!~)"
_STRUCK = re.compile(rf"(?<=\s){_DELETED} |{_DELETED}")
# Marks are not emphasis in an address, in code, in a name such as __init__.py or Foo_(bar), or within a word: 5*3.
# Scripts without capital letters write no spaces between words, or join to them what is no word.
_ADDRESS = r"https?://[^\s<>|\\*`]*[^\s<>|.,;:!?'\"*_~`)\]\\]\)?"
_CODE = r"(?<![`\\])(?P<ticks>`++)(?P<code>[^\n]{1,300}?)(?<!`)(?P=ticks)(?!`)"
_NAME = r"(?<![\w\\])_\w*_(?=[.(/:@-]\w)"
_CASED = "0-9A-Za-z\u00c0-\u024f\u0370-\u052f"
_ESCAPED = r"\\(?P<literal>[^\w\s]|_)"
_INLINE = re.compile(
    rf"(?P<kept>{_ADDRESS}|{_NAME})|{_CODE}|{_ESCAPED}|\*\*+|(?<![{_CASED}])\*|\*(?![{_CASED}])|`+"
    r"|(?<!\w)_+|_+(?![.(/:@-]?\w)|~~"
)
# What is read as a mark, in a text that has none: in a line, and where one begins.
_LITERAL = re.compile(rf"({_ADDRESS}|{_NAME})|\\(?=[^\w\s]|_|\Z)|[*`]|~~++|(?<!\w)_++|_++(?![^\W_])|\](?=\()")
_BAR = re.compile(r"(?<!\\)\|")
_BRACKET = re.compile(r"(?<!\\)[\[\]]")
_LITERAL_LINE = re.compile(r"^(\s*(?:\d{1,9}(?=[.)](?:\s|$)))?)([-+:.)](?=\s|$)|#{1,6}(?=\s|$)|[>|])")


def blocks(text: str) -> Iterator[Block]:
    """In order. Rules, the lines below tables' headers and fences are in none of them; every word is in one."""
    starts = [0, *(end.end() for end in _LINE_END.finditer(text)), len(text)]
    done = 0  # lines that have been read
    begins_item = False
    term: tuple[int, int] | None = None  # of the definition that was read last
    for token in _tokens(text):
        if token.type in ("list_item_open", "list_item_close"):
            begins_item = token.nesting == 1 and len(token.info) <= LONGEST_NUMBER
        if token.map is None or token.type not in _LEAVES:
            continue
        first, last = token.map
        yield from _skipped(text, starts, done, first)
        match token.type:
            case "paragraph_open":
                goes_on = term if text.startswith(_INDENTED, starts[first]) else None
                found = list(_lines(text, starts, first, last, "item" if begins_item or goes_on else "prose", goes_on))
                yield from found
                term = found[-1].header if found and found[-1].kind == "item" else None
            case "heading_open":
                yield from _block(text, starts[first], starts[last], "item" if begins_item else "heading")
            case "fence":
                inside = token.content.count("\n") + (token.content[-1:] not in ("", "\n"))
                yield from _block(text, starts[first + 1], starts[first + 1 + inside], "code")
        done, begins_item = last, False
    yield from _skipped(text, starts, done, len(starts) - 1)


def plain(markdown: str) -> str:
    """The words as a reader sees them, on one line: for comparing, embedding and finding them on the page.

    Marks of lists and headings are left out, and what was deleted. Not by markdown-it: where emphasis or a link is cut
    in two, as in many a sentence, it sees asterisks and brackets.
    """
    text = _LINE_MARK.sub("", _SEPARATOR.sub("", markdown))
    return inline(_BAR.sub(" ", text))


def inline(markdown: str) -> str:
    """As `plain`, of a text that is within a line: a cell may begin with a number or a sign."""
    return " ".join(_INLINE.sub(_shown, _LINK.sub(r"\1", valid(markdown))).split())


def valid(markdown: str) -> str:
    """Without what was deleted: an old price is not quoted beside the new one."""
    return _STRUCK.sub("", markdown)


def escaped(text: str, *, linked: bool = False) -> str:
    """Text as Markdown that is read as that text. `linked`: it is in a link's text."""
    text = _LITERAL.sub(lambda found: found[0] if found[1] else "".join(f"\\{mark}" for mark in found[0]), text)
    return _BRACKET.sub(r"\\\g<0>", text) if linked else text


def escaped_line(line: str) -> str:
    """A line of such text, whose beginning is no mark of a list, a heading, a quotation or a table."""
    return _LITERAL_LINE.sub(r"\1\\\2", line, count=1)


def _shown(mark: re.Match[str]) -> str:
    code: str | None = mark["code"]
    if code is None:
        return mark["kept"] or mark["literal"] or ""
    return code[1:-1] if code[0] == code[-1] == " " and code.strip() else code


def cells(row: str) -> list[str]:
    """Of a table's row, as they are written there."""
    found = [cell.strip() for cell in _CELL.findall(row)]
    return found[:-1] if found and not found[-1] else found  # behind the last bar


def to_html(markdown: str) -> str:
    """A document as a page's HTML."""
    return str(_renderer().render(markdown))


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("zero", {"maxNesting": MAX_NESTING}).enable(_RULES)


@cache
def _renderer() -> MarkdownIt:
    return MarkdownIt("gfm-like", {"linkify": False})


def _tokens(text: str) -> Sequence[Token]:
    """Of blocks alone: nothing is looked for inside a paragraph."""
    parser = _parser()
    return parser.block.parse(text.replace("\r", " "), parser, {}, []) or ()


def _skipped(text: str, starts: Sequence[int], first: int, last: int) -> Iterator[Block]:
    """What is nested too deep for the parser."""
    if any(map(str.isalnum, text[starts[first] : starts[last]])):
        yield from _lines(text, starts, first, last, "prose")


def _lines(
    text: str, starts: Sequence[int], first: int, last: int, kind: Kind, term: tuple[int, int] | None = None
) -> Iterator[Block]:
    """A paragraph, or what there is of tables and of lists that are not written as Markdown's.

    Args:
        term: of the definition that it goes on with.
    """
    begin: int | None = None  # of the block that is being read
    previous_row: tuple[int, int] | None = None
    header: tuple[int, int] | None = None
    for n in range(first, last):
        at, line = starts[n], text[starts[n] : starts[n + 1]]
        row, item = _ROW.match(line), _ITEM.match(line) or (n == first and kind == "item")
        rule = _is_rule(line)
        if _DEFINITION.match(line):
            if begin is not None and not _DEFINITION.match(text, begin):
                term = trimmed(text, begin, at)
                yield Block(*term, "item")
            elif begin is not None:
                yield from _block(text, begin, at, kind, term)
            begin, kind = at, "item"
            continue
        if begin is not None and (row or item or rule or not line.strip()):
            yield from _block(text, begin, at, kind, term)
            begin = None
        if rule:
            header = previous_row
        elif row and not line.strip(" \t\n|"):
            previous_row = None  # a blank header is none
        elif row:
            previous_row = trimmed(text, at, starts[n + 1])
            yield Block(*previous_row, "row", header)
        else:
            previous_row = header = None
            if begin is None and line.strip():
                begin, kind = at, "item" if item else "prose"
            if begin is not None and line.endswith(_HARD_BREAKS):
                yield from _block(text, begin, starts[n + 1], kind, term)
                begin = None
    if begin is not None:
        yield from _block(text, begin, starts[last], kind, term)


def _is_rule(line: str) -> bool:
    """Whether a line is drawn there, above a table's rows or elsewhere."""
    return ("---" in line and not line.strip(" \t\n|:-")) or _SEPARATOR.match(line) is not None


def _block(text: str, start: int, end: int, kind: Kind, term: tuple[int, int] | None = None) -> Iterator[Block]:
    start, end = trimmed(text, start, end)
    if start < end:
        yield Block(start, end, kind, term if kind == "item" else None)


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """`text[start:end]` without the white space around it."""
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - (len(piece) - len(piece.rstrip()))
