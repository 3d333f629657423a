"""Finds the content of a web page.

    one <main> ──────────────────────────────────────────────────▶ it ┐
    none, several ─▶ trafilatura finds text ─▶ the element around it ─┴▶ without blocks about other pages ─▶ HTML

trafilatura finds the content well, but its output lacks headings, cells and captions. So only its text is used, to find
the page's element that contains nearly all of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import accumulate, groupby, islice
from typing import Any

from lxml import etree, html

from text.html_tree import UNSEEN, is_hidden, why_frame, words_of
from text.loss import ELSEWHERE, HIDDEN, OTHERS, LeftOut

# Most elements and characters of a page that trafilatura reads: its time is quadratic in nested lists. Larger pages are
# mostly text anyway.
EXTRACTED, EXTRACTED_CHARS = 10_000, 1_000_000
FEW = 40  # words; with fewer, trafilatura has missed the content, as on pages of links
HELD = 0.9  # least share of the found text in the content
RUN = 3  # words in a row that are compared together
REMOVED = 1 / 3  # most words of a removed block, as a share of the content's
FOUND_REMOVED = 0.1  # most of the found text in a removed block
LINKS = 3  # least number in a block of links
_BLOCKS = ("article", "aside", "div", "footer", "form", "header", "nav", "ol", "section", "ul")
_WHOLE = ("dl", "ol", "p", "table", "ul")  # the content is never a part of one
_OTHERS = frozenset(
    """ads advert advertisement breadcrumb breadcrumbs comment comments disqus newsletter outbrain pagination paywall
    popular promo recommended recommendations related respond share sharing social sponsored subscribe taboola tagcloud
    trending""".split()  # noqa: SIM905
)
_FACT = re.compile(r"tel:|mailto:[^?]|[^?#]*\.(?:pdf|docx?|xlsx?|odt)(?:[?#]|$)", re.IGNORECASE)
_WORD = re.compile(r"\w+")


def content_of(tree: Any) -> tuple[str, tuple[LeftOut, ...]]:
    """HTML of the content of a document, empty without a body; and what visitors see beside it."""
    body = next(iter(tree.xpath("//body")), None)
    if body is None:
        return "", ()
    for one in tree.xpath("//template[not(@shadowrootmode or @data-noscript)]"):
        one.drop_tree()
    mains = [one for one in tree.xpath("//main | //*[@role='main']") if not _hidden(one) and _WORD.search(_text(one))]
    pruned: list[LeftOut] = []
    if len(mains) == 1:
        if any(map(_is_about_others, mains[0].iter(_BLOCKS))):
            pruned = _Page(body, _found(tree)).prune(mains[0])
        return _as_main(mains[0]), (*_around(body, mains), *pruned)
    page = _Page(body, _found(tree))  # of several, one is around the others, or around a part of the frame
    if not page.is_lost:
        kept, pruned = page.around()
        return "".join(map(_outer, kept)), (*_around(body, kept), *pruned)
    outer = [one for one in mains if not any(above in mains for above in one.iterancestors())]
    return "".join(map(_as_main, outer)) or _inner(body), tuple(_around(body, outer or [body]))


def _around(body: Any, kept: Collection[Any]) -> Iterator[LeftOut]:
    """What visitors see outside of what is kept."""
    for why, texts in groupby(_texts(body, kept), key=lambda each: each[0]):
        if text := " ".join(text for _, text in texts).strip():
            yield LeftOut(why, text)


def _texts(body: Any, kept: Collection[Any]) -> Iterator[tuple[str, str]]:
    whys = [ELSEWHERE]
    walk = etree.iterwalk(body, events=("start", "end"))
    for event, element in walk:
        if event == "end":
            whys.pop()
        elif element in kept or element.tag in UNSEEN:
            walk.skip_subtree()
            whys.append("")
        else:
            why = whys[-1]
            if why == ELSEWHERE:
                why = HIDDEN if is_hidden(element.attrib) else why_frame(element.tag, element.attrib) or why
            whys.append(why)
            yield why, element.text or ""
        if event == "end" and element is not body:
            yield whys[-1], element.tail or ""


class _Page:
    """The words of a body, and which of them trafilatura has found."""

    def __init__(self, body: Any, found: str) -> None:
        self._body = body
        words, self._spans = _read(body)
        self._found = _WORD.findall(found.lower())
        wanted = set(_runs(self._found))
        marks = [run in wanted for run in _runs(words)]
        self._before = [0, *accumulate(marks), *[sum(marks)] * RUN]  # number of found runs before each word

    @property
    def is_lost(self) -> bool:
        return len(self._found) < FEW

    def around(self) -> tuple[list[Any], list[LeftOut]]:
        """The deepest element that holds the text found, below the heading of the page, and what it was relieved of."""
        least = HELD * min(len(self._found), self._before[-1])
        here = self._body
        # If two elements contain it, the text is repeated, and both are content.
        while len(held := [one for one in here.iterchildren(tag=etree.Element) if self._held(one) >= least]) == 1:
            if held[0].tag in _WHOLE:
                break
            [here] = held
        if here is self._body:
            return [here], self.prune(here, links=True)
        start, _ = self._spans[here]
        title = []
        if next(here.iter("h1"), None) is None:
            above = [one for one in self._body.iter("h1") if self._spans[one][1] <= start]
            title = [*islice((one for one in reversed(above) if not _hidden(one)), 1)]
        return [*title, here], self.prune(here, links=True)

    def prune(self, root: Any, *, links: bool = False) -> list[LeftOut]:
        """Take out of an element what is about other pages, and with `links` also blocks of links."""
        pruned = []
        most, most_found = self._size(root) * REMOVED, self._before[-1] * FOUND_REMOVED
        for one in [*root.iterdescendants(_BLOCKS)]:
            if self._size(one) > most or self._held(one) > most_found or one.getparent() is None:
                continue
            if (_is_about_others(one) or (links and self._is_links(one))) and not _has_facts(one):
                pruned.append(LeftOut(OTHERS, " ".join(_text(one).split())))
                one.drop_tree()
        return pruned

    def _is_links(self, element: Any) -> bool:
        if element.tag in ("ol", "ul") or self._held(element):
            return False
        anchors = [*element.iter("a")]
        return len(anchors) >= LINKS and sum(map(self._size, anchors)) * 2 > self._size(element)

    def _size(self, element: Any) -> int:
        start, end = self._spans[element]
        return end - start

    def _held(self, element: Any) -> int:
        start, end = self._spans[element]
        return self._before[end] - self._before[start]


def _found(tree: Any) -> str:
    """The text that trafilatura finds; empty if it finds none, or would take too long."""
    from trafilatura import extract  # 0.4 s

    source = html.tostring(tree)
    if len(source) > EXTRACTED_CHARS or sum(1 for _ in islice(tree.iter(), EXTRACTED + 1)) > EXTRACTED:
        return ""
    try:
        return (
            extract(html.fromstring(source), include_comments=False, include_tables=True, deduplicate=False, fast=True)
            or ""
        )
    except (etree.LxmlError, ValueError, RecursionError):
        return ""


def _read(body: Any) -> tuple[list[str], dict[Any, tuple[int, int]]]:
    """The words of a body in order, and the range of words in each element."""
    words: list[str] = []
    spans: dict[Any, tuple[int, int]] = {}
    starts: list[int] = []
    for event, element in etree.iterwalk(body, events=("start", "end", "comment", "pi")):
        if event == "start":
            starts.append(len(words))
            if element.tag not in ("script", "style"):
                words += _WORD.findall((element.text or "").lower())
            continue
        if event == "end":
            spans[element] = starts.pop(), len(words)
        if element is not body:
            words += _WORD.findall((element.tail or "").lower())
    return words, spans


def _runs(words: list[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(RUN)), strict=False)


def _is_about_others(element: Any) -> bool:
    names: Iterable[str] = (element.get("class") or "", element.get("id") or "")
    return any(not _OTHERS.isdisjoint(words_of(name)) for name in names if name)


def _has_facts(element: Any) -> bool:
    """Whether the element has links to telephones, mailboxes or files. Then it is kept whatever its class."""
    return any(_FACT.match(anchor.get("href") or "") for anchor in element.iter("a"))


def _hidden(element: Any) -> bool:
    return any(is_hidden(one.attrib) for one in (element, *element.iterancestors()))


def _text(element: Any) -> str:
    return "".join(element.itertext())


def _as_main(element: Any) -> str:
    return f"<main>{_inner(element)}</main>"


def _outer(element: Any) -> str:
    if element.tag in ("body", "noscript", "template"):  # where scripts build the page, it may be there for others
        return _inner(element)
    return str(html.tostring(element, encoding="unicode", with_tail=False))


def _inner(element: Any) -> str:
    return "".join(
        [element.text or "", *(html.tostring(child, encoding="unicode") for child in element if child.tag is not None)]
    ).strip()
