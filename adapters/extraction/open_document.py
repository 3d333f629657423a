"""ODT to HTML; `text.html` converts the HTML to Markdown, with tables, superscripts and deletions as in all documents.

A note follows its paragraph, list or table. Left out and counted: comments, tracked deletions, hidden text, pictures,
embedded objects (charts).
"""

from __future__ import annotations

import io
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from lxml import etree

_NAMES = {
    name: f"{{urn:oasis:names:tc:opendocument:xmlns:{name}:1.0}}"
    for name in ("drawing", "office", "style", "table", "text")
}
_FO = "{urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0}"
_DRAW, _OFFICE, _STYLE, _TABLE, _TEXT = _NAMES.values()
_SVG = "{urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0}"
_LINK = "{http://www.w3.org/1999/xlink}href"
_LEFT_OUT = frozenset(
    (
        _OFFICE + "annotation",
        _OFFICE + "binary-data",
        _OFFICE + "forms",
        _SVG + "desc",
        _SVG + "title",
        _TEXT + "tracked-changes",
        _TEXT + "ruby-text",
        _TEXT + "script",
        _TABLE + "covered-table-cell",
    )
)
_COUNTED = {
    _OFFICE + "annotation": "comments",
    _TEXT + "deletion": "deletions",
    _DRAW + "image": "pictures",
    _DRAW + "object": "embedded objects",
}
_BLOCKS = frozenset((_TEXT + "p", _TEXT + "h", _TEXT + "list", _TABLE + "table"))
MOST_COLUMNS = 1_000
MOST_REPEATED = 30  # repetitions of a cell or row with a text


def to_html(data: bytes) -> tuple[str, Counter[str]]:
    """The text of an ODT; what is left out of it, and how often."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        content = _parsed(archive.read("content.xml"))
        styles = [_parsed(archive.read("styles.xml"))] if "styles.xml" in archive.namelist() else []
    body = content.find(f".//{_OFFICE}text")
    if body is None:
        return "", Counter()
    reading = _Reading([*styles, content])
    html = f'<html lang="{_language([*styles, content])}">{"".join(reading.blocks(body))}'
    left_out = Counter({what: sum(1 for _ in body.iter(tag)) for tag, what in _COUNTED.items()})
    left_out["pictures"] -= left_out["embedded objects"]  # each has one of itself
    left_out["hidden passages"] = reading.hidden
    return html, +left_out


def _language(styles: Sequence[Any]) -> str:
    """The language of the first style that names one, the default style as a rule; empty if none does."""
    properties = (one for root in styles for one in root.iter(_STYLE + "text-properties"))
    return next(filter(None, (one.get(_FO + "language", "") for one in properties)), "")


def is_locked(archive: zipfile.ZipFile) -> bool:
    """Whether an ODF's manifest lists encrypted parts."""
    name = "META-INF/manifest.xml"
    return name in archive.namelist() and b"encryption-data" in archive.read(name)


def _parsed(xml: bytes) -> Any:
    return etree.fromstring(xml, etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False))


class _Reading:
    def __init__(self, roots: list[Any]) -> None:
        self.hidden = 0  # passages with a text
        self._notes: list[str] = []  # of the current block
        self._tags: dict[str, list[str]] = {}  # by style: its HTML tags
        self._hiding: set[str] = set()
        for root in roots:
            for style in root.iter(_STYLE + "style"):
                self._learn(style)

    def _learn(self, style: Any) -> None:
        name = style.get(_STYLE + "name", "")
        above = style.get(_STYLE + "parent-style-name", "")
        self._tags[name] = list(self._tags.get(above, ()))
        if above in self._hiding:
            self._hiding.add(name)
        for properties in style.iter(_STYLE + "text-properties", _STYLE + "section-properties"):
            position = properties.get(_STYLE + "text-position", "0%").split()[0]
            raised = position == "super" or (position[:1].isdigit() and position.strip("0.%") != "")
            lowered = position.startswith(("sub", "-"))
            struck = properties.get(_STYLE + "text-line-through-style", "none") != "none"
            bold = properties.get(_FO + "font-weight") == "bold"
            tags = {"sup": raised, "sub": lowered, "s": struck, "b": bold}
            self._tags[name] += [tag for tag, is_so in tags.items() if is_so and tag not in self._tags[name]]
            if "none" in (properties.get(_TEXT + "display"), properties.get(_STYLE + "display")):
                self._hiding.add(name)

    def blocks(self, parent: Any) -> Iterator[str]:
        """Each heading, paragraph, list and table as HTML, with its notes behind it."""
        for node in parent:
            if not self._is_shown(node):
                continue
            if node.tag not in _BLOCKS:
                yield from self.blocks(node)
                continue
            yield self._block(node)
            notes, self._notes = self._notes, []
            yield from notes

    def _block(self, node: Any) -> str:
        kind = etree.QName(node).localname
        if kind == "p":
            return f"<p>{self._styled(node)}</p>"
        if kind == "h":
            level = node.get(_TEXT + "outline-level", "1")
            level = min(max(int(level), 1), 6) if level.isdecimal() else 1
            return f"<h{level}>{self._line(node)}</h{level}>"
        if kind == "list":
            items = ("".join(map(self._block, self._inside(item))) for item in self._inside(node))
            return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"
        rows = "".join(self._rows(node))
        return f"<table>{rows}</table>"

    def _inside(self, node: Any) -> Iterator[Any]:
        """The visible items of a list, or blocks of an item or cell, without the elements that wrap them."""
        for child in node:
            if not self._is_shown(child):
                continue
            if child.tag in _BLOCKS or child.tag in (_TEXT + "list-item", _TEXT + "list-header"):
                yield child
            else:
                yield from self._inside(child)

    def _rows(self, table: Any) -> Iterator[str]:
        for node in table:
            if not self._is_shown(node):
                continue
            if node.tag == _TABLE + "table-row":
                cells = "".join(map(self._cell, node.iterchildren(_TABLE + "table-cell")))
                yield f"<tr>{cells}</tr>" * (
                    _number(node, "number-rows-repeated", MOST_REPEATED) if "<p>" in cells else 1
                )
            elif node.tag == _TABLE + "table-header-rows":
                yield f"<thead>{''.join(self._rows(node))}</thead>"
            else:
                yield from self._rows(node)

    def _cell(self, cell: Any) -> str:
        inside = "".join(map(self._block, self._inside(cell)))
        times = _number(cell, "number-columns-repeated", MOST_REPEATED if inside else MOST_COLUMNS)
        if not inside:
            return f'<td colspan="{times}"></td>'
        columns, rows = (_number(cell, f"number-{what}-spanned", MOST_COLUMNS) for what in ("columns", "rows"))
        return f'<td colspan="{columns}" rowspan="{rows}">{inside}</td>' * times

    def _line(self, node: Any) -> str:
        """A paragraph's content as HTML."""
        return escape(node.text or "") + "".join(self._part(child) + escape(child.tail or "") for child in node)

    def _part(self, node: Any) -> str:
        if not self._is_shown(node):
            return ""
        kind = etree.QName(node).localname
        if kind in ("s", "tab"):
            return " "
        if kind == "line-break":
            return "<br>"
        if kind == "note":
            self._notes += map(self._block, self._inside(node.find(_TEXT + "note-body")))
            return ""
        if node.tag in _BLOCKS:  # a text box: treated as a note, below the paragraph
            self._notes.append(self._block(node))
            return ""
        text = self._styled(node)
        link = node.get(_LINK)
        return f'<a href="{escape(link)}">{text}</a>' if kind == "a" and link else text

    def _styled(self, node: Any) -> str:
        text = self._line(node)
        for tag in self._tags.get(node.get(_TEXT + "style-name", ""), ()) if text.strip() else ():
            text = f"<{tag}>{text}</{tag}>"
        return text

    def _is_shown(self, node: Any) -> bool:
        if not isinstance(node.tag, str) or node.tag in _LEFT_OUT:
            return False
        hidden = (
            node.tag in (_TEXT + "hidden-text", _TEXT + "hidden-paragraph")
            or node.get(_TEXT + "display") == "none"
            or node.get(_TABLE + "visibility") in ("collapse", "filter")
            or node.get(_TEXT + "style-name", "") in self._hiding
        )
        self.hidden += hidden and any(text.strip() for text in node.itertext())
        return not hidden


def _number(node: Any, name: str, most: int) -> int:
    said = node.get(_TABLE + name, "1")
    return min(max(int(said), 1), most) if said.isdecimal() and len(said) < 9 else 1
