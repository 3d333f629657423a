"""Reads Markdown: its blocks, its plain text, its HTML. The only place that knows the syntax of a page's text.

Most texts here are fragments: a passage may begin inside a table, a quotation inside an emphasis. markdown-it finds the
blocks. Table rows and list items of office files are found line by line in its paragraphs, since it needs a table's
header, and pads short rows in quadratic time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

# Nested quotations, or twice the nested lists. Each level reads its lines again, so deeper ones are read line by line,
# which finds their items as well.
MAX_NESTING = 8
LONGEST_NUMBER = 3  # digits of an item's number: "1998. Then came the pool." begins with a year

Kind = Literal["prose", "item", "row", "heading", "code"]


@dataclass(frozen=True)
class Block:
    """A block at `text[start:end]`, without surrounding white space.

    A paragraph, or its lines between hard line breaks; the first paragraph of a list item; a table's row; a heading;
    the content of a code block. Terms and definitions of a definition list are items: ": 9 to 5" below "Monday".
    """

    start: int
    end: int
    kind: Kind
    # Start and end: for a row, of its table's header row; for a definition, of its term.
    header: tuple[int, int] | None = None


# Left out: indented code, underlined headings, HTML and link definitions. Converted pages do not have them, and in
# other texts four spaces or a line of dashes mean something else.
_RULES = ("blockquote", "fence", "heading", "hr", "list")
_LEAVES = frozenset(("paragraph_open", "heading_open", "fence", "hr"))
_LINE_END = re.compile(r"\n")
_ITEM = re.compile(rf"[ \t]*(?:[-*+•]|\d{{1,{LONGEST_NUMBER}}}[.)])[ \t]+")
_DEFINITION = re.compile(r"[ \t]{0,3}:[ \t]+(?=\S)")  # below its term, as in PHP Markdown Extra and Pandoc
_INDENTED = "    "  # continues the definition above
_ROW = re.compile(r"[ \t]*\|")
_SEPARATOR = re.compile(r"^[ \t]*\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*$", re.MULTILINE)  # below a table's header
_HARD_BREAKS = ("  \n", "\\\n")
_CELL = re.compile(r"\|((?:\\.|[^|\\])*)")
# Of a link
LABEL = r"(?:\\.|[^\[\]\\]|\[(?:\\.|[^\[\]\\])*+\])*+"  # may contain brackets: "Form [PDF]"
_LINK = re.compile(rf"!?\[({LABEL})\]\((?:[^)\s\]]|\](?!\())*+(?:\s+\"[^\"]*\")?\)")
# A heading's own text may begin with a number.
_LINE_MARK = re.compile(r"^[ \t]*(?:[-*+•:][ \t]+|\d{1,3}[.)][ \t]+|>[ \t]?)*+(?:#{1,6}[ \t]+)?", re.MULTILINE)
_DELETED = r"(?<![\\~])~~(?=[^\s~])[^~\n]+~~(?!~)"
_STRUCK = re.compile(rf"(?<=\s){_DELETED} |{_DELETED}")
# Marks are no emphasis in URLs, code, names such as __init__.py or Foo_(bar), or inside words: 5*3.
# Scripts without case have no spaces between words, or join other characters to words.
_ADDRESS = r"https?://[^\s<>|\\*`]*[^\s<>|.,;:!?'\"*_~`)\]\\]\)?"
_CODE = r"(?<![`\\])(?P<ticks>`++)(?P<code>[^\n]{1,300}?)(?<!`)(?P=ticks)(?!`)"
_NAME = r"(?<![\w\\])_\w*_(?=[.(/:@-][^\W_])"
_CASED = "0-9A-Za-z\u00c0-\u024f\u0370-\u052f"
_ESCAPED = r"\\(?P<literal>[^\w\s]|_)"
_INLINE = re.compile(
    rf"(?P<kept>{_ADDRESS}|{_NAME})|{_CODE}|{_ESCAPED}|\*\*+|(?<![{_CASED}])\*|\*(?![{_CASED}])|`+"
    r"|(?<!\w)_+|_+(?![.(/:@-]?\w)|~~"
)
# Characters that must be escaped: inside a line, and at its beginning.
_LITERAL = re.compile(rf"({_ADDRESS}|{_NAME})|\\(?=[^\w\s]|_|\Z)|[*`]|~~++|(?<!\w)_++|_++(?![^\W_])|\](?=\()")
_MARK = re.compile(r"[\\*`~_\]]")
_TAG = re.compile(r"(?<!\\)<(?=[a-z/!?])(?!https?://)", re.IGNORECASE)
_BAR = re.compile(r"(?<!\\)\|")
_ROW_LINE = re.compile(r"^[ \t]*\|.*", re.MULTILINE)
_BRACKET = re.compile(r"(?<!\\)[\[\]]")
_LITERAL_LINE = re.compile(r"(\s*(?:\d{1,9}(?=[.)](?:\s|$)))?)([-+:.)](?=\s|$)|#{1,6}(?=\s|$)|[>|])")


def blocks(text: str) -> Iterator[Block]:
    """The blocks in order. They contain every word, but no rules, separators of tables or fences."""
    starts = [0, *(end.end() for end in _LINE_END.finditer(text)), len(text)]
    done = 0  # lines read so far
    begins_item = False
    term: tuple[int, int] | None = None  # of the last definition
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
    """The visible words in one line, to compare, embed, or find them on the page.

    Leaves out marks of lists and headings, and deleted text. Does not use markdown-it, which would keep the marks of
    emphasis and links that a sentence cuts in two.
    """
    text = _LINE_MARK.sub("", _SEPARATOR.sub("", markdown))
    return inline(_ROW_LINE.sub(lambda row: _BAR.sub(" ", row[0]), text) if "|" in text else text)


def inline(markdown: str) -> str:
    """As `plain`, for text inside a line: a cell may begin with a number or a sign."""
    return " ".join(_INLINE.sub(_shown, _LINK.sub(r"\1", valid(markdown))).split())


def valid(markdown: str) -> str:
    """The Markdown without deleted text, so that an old price is not quoted."""
    return _STRUCK.sub("", markdown)


def escaped(text: str, *, linked: bool = False) -> str:
    """Plain text escaped as Markdown. `linked`: for a link's text."""
    if _MARK.search(text):  # most texts have none, and this is found out soon
        text = _LITERAL.sub(lambda found: found[0] if found[1] else "".join(f"\\{mark}" for mark in found[0]), text)
    return _BRACKET.sub(r"\\\g<0>", text) if linked else text


def escaped_line(line: str) -> str:
    """An escaped line, whose beginning is no mark of a list, heading, quotation or table."""
    mark = _LITERAL_LINE.match(line)
    return f"{mark[1]}\\{line[mark.start(2) :]}" if mark else line


def _shown(mark: re.Match[str]) -> str:
    code: str | None = mark["code"]
    if code is None:
        return mark["kept"] or mark["literal"] or ""
    return code[1:-1] if code[0] == code[-1] == " " and code.strip() else code


_TARGET = re.compile(r"\][(:]\s{0,9}(?P<to>[^\s()]{1,2000})")
_LINKED = re.compile(r"<?(?:https?://|mailto:|tel:|[/#])", re.IGNORECASE)


def as_text(markdown: str) -> str:
    """The Markdown with its HTML escaped, so that every reader of Markdown shows it as it is written; without images,
    which a browser would fetch, and without links to anything but pages, mail and telephones."""
    kept = _TARGET.sub(lambda found: found[0] if _LINKED.match(found["to"]) else f"]\\{found[0][1:]}", markdown)
    return _TAG.sub(r"\\<", kept.replace("![", "["))


def cells(row: str) -> list[str]:
    """The cells of a table's row, as Markdown."""
    found = [cell.strip() for cell in _CELL.findall(row)]
    return found[:-1] if found and not found[-1] else found  # after the last bar


def to_html(markdown: str) -> str:
    return str(_renderer().render(markdown))


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("zero", {"maxNesting": MAX_NESTING}).enable(_RULES)


@cache
def _renderer() -> MarkdownIt:
    return MarkdownIt("gfm-like", {"linkify": False})


def _tokens(text: str) -> Sequence[Token]:
    """The tokens of blocks, without parsing inline content."""
    parser = _parser()
    return parser.block.parse(text.replace("\r", " "), parser, {}, []) or ()


def _skipped(text: str, starts: Sequence[int], first: int, last: int) -> Iterator[Block]:
    """Blocks of lines that are nested too deep for the parser."""
    if any(map(str.isalnum, text[starts[first] : starts[last]])):
        yield from _lines(text, starts, first, last, "prose")


def _lines(
    text: str, starts: Sequence[int], first: int, last: int, kind: Kind, term: tuple[int, int] | None = None
) -> Iterator[Block]:
    """Blocks of a paragraph: text, table rows, and items of lists that are not Markdown's.

    Args:
        term: of the definition that the paragraph continues.
    """
    begin: int | None = None  # of the current block
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
            previous_row = None  # a blank header does not count
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
    return ("---" in line and not line.strip(" \t\n|:-")) or _SEPARATOR.match(line) is not None


def _block(text: str, start: int, end: int, kind: Kind, term: tuple[int, int] | None = None) -> Iterator[Block]:
    start, end = trimmed(text, start, end)
    if start < end:
        yield Block(start, end, kind, term if kind == "item" else None)


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """`text[start:end]` without the white space around it."""
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - (len(piece) - len(piece.rstrip()))
