"""Finds the content of a web page.

    one <main> ──────────────────────────────────────────────────▶ it ┐
    none, several ─▶ trafilatura finds text ─▶ the element around it ─┴▶ without blocks about other pages ─▶ HTML

trafilatura finds the content well, but its output lacks headings, cells and captions. So only its text is used, to find
the page's element that contains nearly all of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from copy import deepcopy
from itertools import accumulate, groupby, islice
from typing import Any

from lxml import etree, html

from text.html_tree import UNSEEN, is_hidden, why_frame, words_of
from text.loss import ELSEWHERE, HIDDEN, OTHERS, LeftOutText

# Most elements and characters of a page that trafilatura reads: its time is quadratic in nested lists. Larger pages are
# mostly text anyway.
EXTRACTED, EXTRACTED_CHARS = 10_000, 1_000_000
FEW = 40  # words; with fewer, trafilatura has missed the content, as on pages of links
HELD = 0.9  # least share of the found text in the content
RUN = 3  # words in a row that are compared together
REMOVED = 1 / 3  # most words of a removed block, as a share of the content's
FOUND_REMOVED = 0.1  # most of the found text in a removed block
LINKS = 3  # least number in a block of links
_BLOCKS = frozenset(("article", "aside", "div", "footer", "form", "header", "nav", "ol", "section", "ul"))
_TITLES = ("h2", "h3", "h4", "h5", "h6")
_WHOLE = ("dl", "ol", "p", "table", "ul")  # the content is never a part of one
# Words in classes and ids of what is about other pages, or about the page itself
_OTHERS = frozenset(
    """addtoany ads advert advertisement affiliate affiliatelinks breadcrumb breadcrumbs comment comments commentlist
    disqus feedback kommentare newsletter outbrain pagination paywall popular promo recirculation recommended
    recommendations related relatedlinks relatedposts respond share sharedaddy sharing social sponsored subscribe
    taboola tagcloud teilen trending""".split()  # noqa: SIM905
)
_AUTHOR = frozenset(("avatar", "bio", "box", "card", "info"))
# Of what is content where it says a fact, or where trafilatura has found something of it
_PERHAPS = frozenset(("ad", "aside", "noprint", "sidebar", "tags"))
_UNPRINTED = frozenset(("hidden", "hide", "no", "none"))
_FACT = re.compile(r"tel:|mailto:[^?]|[^?#]*\.(?:pdf|docx?|xlsx?|odt)(?:[?#]|$)", re.IGNORECASE)
# Of an hour, a price, a place or a telephone
_FIGURE = re.compile(r"\d[:.,]\d\d\b|[€$£]|\d\s?(?:am|pm|h|uhr)\b|\b(?!(?:19|20)\d\d\b)\d{4}", re.IGNORECASE)
_WORD = re.compile(r"\w+")


def content_of(tree: Any) -> tuple[str, tuple[LeftOutText, ...]]:
    """HTML of the content of a document, empty without a body; and what visitors see beside it."""
    body = next(iter(tree.xpath("//body")), None)
    if body is None:
        return "", ()
    for one in tree.xpath("//template[not(@shadowrootmode or @data-noscript)]"):
        one.drop_tree()
    mains = [one for one in tree.xpath("//main | //*[@role='main']") if not _hidden(one) and _WORD.search(_text(one))]
    page = _Page(body, _found(tree))
    if len(mains) == 1:
        pruned = page.prune(mains[0])
        return _as_main(mains[0]), (*_around(body, mains), *pruned)
    # Of several, one is around the others, or around a part of the frame.
    if not page.is_lost:
        kept, pruned = page.around()
        return "".join(map(_outer, kept)), (*_around(body, kept), *pruned)
    outer = [one for one in mains if not any(above in mains for above in one.iterancestors())]
    return "".join(map(_as_main, outer)) or _inner(body), tuple(_around(body, outer or [body]))


def _around(body: Any, kept: Collection[Any]) -> Iterator[LeftOutText]:
    """What visitors see outside of what is kept."""
    for why, texts in groupby(_texts(body, kept), key=lambda each: each[0]):
        if text := " ".join(text for _, text in texts).strip():
            yield LeftOutText(why, text)


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

    def around(self) -> tuple[list[Any], list[LeftOutText]]:
        """The deepest element that holds the text found, below the heading of the page, and what it was relieved of."""
        least = HELD * min(len(self._found), self._before[-1])
        here = self._body
        # If two elements contain it, the text is repeated, and both are content.
        while len(held := [one for one in here.iterchildren(tag=etree.Element) if self._held(one) >= least]) == 1:
            if held[0].tag in _WHOLE:
                break
            [here] = held
        if here is self._body:
            return [here], self.prune(here)
        start, _ = self._spans[here]
        title = []
        if next(here.iter("h1"), None) is None:
            above = [one for one in self._body.iter("h1") if self._spans[one][1] <= start]
            title = [*islice((one for one in reversed(above) if not _hidden(one)), 1)]
        return [*title, here], self.prune(here)

    def prune(self, root: Any) -> list[LeftOutText]:
        """Take what is about other pages out of an element, with the headings above."""
        pruned = []
        most, most_found = self._size(root) * REMOVED, self._before[-1] * FOUND_REMOVED
        done = 0  # words
        for block in [*root.iterdescendants(etree.Element)]:
            start, end = self._spans[block]
            if start < done or start == end or (block.tag not in _BLOCKS and "-" not in block.tag):
                continue
            if end - start <= most and self._held(block) <= most_found and self._is_of_others(block):
                one = self._with_title(block, root)
                done = self._spans[one][1]
                title = one.getprevious()
                titled = title is not None and title.tag in _TITLES and _ends(one)
                for each in [title, one] if titled else [one]:
                    pruned.append(LeftOutText(OTHERS, " ".join(" ".join(each.itertext()).split())))
                    each.drop_tree()
        return pruned

    def _is_of_others(self, block: Any) -> bool:
        names = _names(block)
        is_others = bool(names & _OTHERS) or ("author" in names and bool(names & _AUTHOR))
        if not is_others and not self._held(block):
            said = _text(block)
            is_others = self._is_links(block) and not _FIGURE.search(said)
            is_others |= _is_perhaps(block, names) and not any(map(str.isdigit, said))
        return is_others and not _has_facts(block)

    def _is_links(self, element: Any) -> bool:
        if element.tag in ("ol", "ul"):
            return False
        anchors = [*element.iter("a")]
        return len(anchors) >= LINKS and sum(map(self._size, anchors)) * 2 > self._size(element)

    def _with_title(self, block: Any, root: Any) -> Any:
        """The element around a block that has nothing else but headings."""
        while (around := block.getparent()) is not root:
            titles = sum(map(self._size, around.iterchildren(*_TITLES)))
            if self._size(around) != self._size(block) + titles:
                break
            block = around
        return block

    def _size(self, element: Any) -> int:
        start, end = self._spans[element]
        return end - start

    def _held(self, element: Any) -> int:
        start, end = self._spans[element]
        return self._before[end] - self._before[start]


def _found(tree: Any) -> str:
    """The text that trafilatura finds; empty if it finds none, or would take too long."""
    from trafilatura import extract  # 0.4 s

    copy = deepcopy(tree)
    etree.strip_elements(copy, "script", "style", "svg", with_tail=False)
    if len(html.tostring(copy)) > EXTRACTED_CHARS or sum(1 for _ in islice(copy.iter(), EXTRACTED + 1)) > EXTRACTED:
        return ""
    try:
        return extract(copy, include_comments=False, include_tables=True, deduplicate=False, fast=True) or ""
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


def _names(element: Any) -> set[str]:
    """The words of its class and its id."""
    return words_of(element.get("class") or "") | words_of(element.get("id") or "")


def _is_perhaps(element: Any, names: set[str]) -> bool:
    is_unprinted = "print" in names and bool(names & _UNPRINTED)
    return element.tag == "aside" or is_unprinted or bool(names & _PERHAPS)


def _ends(element: Any) -> bool:
    """Whether nothing or a heading follows."""
    after = element.getnext()
    return not (element.tail or "").strip() and (after is None or after.tag in _TITLES)


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
