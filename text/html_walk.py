"""Walks a page's tree and calls the converter of each element, in less than half of markdownify's time.

markdownify looks for a `pre` above each element, copies the set of the elements above it, and normalizes white space
that the tree (text.html_tree) has normalized already.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from bs4 import BeautifulSoup, Tag
from bs4.element import PageElement
from markdownify import MarkdownConverter

_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_TABLE = frozenset(("table", "thead", "tbody", "tfoot", "tr", "td", "th"))
# White space at their edges shows nothing.
_BLOCKS = _HEADINGS | _TABLE | {"p", "blockquote", "article", "div", "section", "ol", "ul", "li", "dl", "dt", "dd"}
_IN_ONE_LINE = _HEADINGS | {"td", "th"}
_AS_IT_IS = frozenset(("pre", "code", "kbd", "samp"))
_SPACE = " \t\r\n"


class TreeConverter(MarkdownConverter):
    """markdownify's converters of elements, with a walk of our own."""

    def convert_soup(self, soup: BeautifulSoup) -> str:
        return self.process_tag(soup, frozenset())

    def process_tag(self, node: Tag, parent_tags: frozenset[str]) -> str:
        above = _tags_above(parent_tags, node.name)
        pieces = [
            self.process_tag(child, above) if isinstance(child, Tag) else self.process_text(child, above)
            for child in node.contents
        ]
        text = "".join(pieces) if "pre" in above else _joined(pieces)
        convert = self.get_conv_fn_cached(node.name)  # type: ignore[attr-defined]  # its stubs leave it out
        return text if convert is None else str(convert(node, text, parent_tags))

    def process_text(self, el: PageElement, parent_tags: frozenset[str]) -> str:
        before, after, parent = el.previous_sibling, el.next_sibling, el.parent
        text = str(el)
        if "_noformat" not in parent_tags:
            text = self._escaped(text, parent_tags)
        if _is_block(parent) if before is None else _is_apart(before):
            text = text.lstrip(_SPACE)
        if _is_block(parent) if after is None else _is_apart(after):
            text = text.rstrip()
        return text

    def _escaped(self, text: str, parent_tags: frozenset[str]) -> str:
        """A text as Markdown that shows it."""
        return text


@lru_cache(maxsize=1 << 10)
def _tags_above(parent_tags: frozenset[str], name: str) -> frozenset[str]:
    """The names of the elements above its children, with markdownify's own marks of what they may become."""
    marks = {"_inline": _IN_ONE_LINE, "_noformat": _AS_IT_IS}
    return parent_tags | {name, *(mark for mark, names in marks.items() if name in names)}


def _is_block(el: PageElement | None) -> bool:
    return isinstance(el, Tag) and el.name in _BLOCKS


def _is_apart(el: PageElement) -> bool:
    return isinstance(el, Tag) and (el.name in _BLOCKS or el.name == "pre")


def _joined(pieces: Iterable[str]) -> str:
    """The pieces. Where the line ends of one meet those of the next one, the larger number counts, two at most."""
    found, ends = [], 0
    for piece in filter(None, pieces):
        content = piece.lstrip("\n")
        begins = len(piece) - len(content)
        said = content.rstrip("\n")
        found += ["\n" * (min(2, max(ends, begins)) if ends and begins else ends + begins), said]
        ends = len(content) - len(said)
    return "".join(found) + "\n" * ends
