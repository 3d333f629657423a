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

from connectors.cms.sitemap import others
from text.html_tree import UNSEEN, is_hidden, why_frame
from text.loss import ELSEWHERE, HIDDEN, OTHERS, LeftOutText

# Most elements and characters of a page that trafilatura reads: its time is quadratic in nested lists. Larger pages are
# mostly text anyway.
EXTRACTED, EXTRACTED_CHARS = 10_000, 1_000_000
FEW = 40  # words; with fewer, trafilatura has missed the content, as on pages of links
HELD = 0.9  # least share of the found text in the content
RUN = 3  # words in a row that are compared together
REMOVED = 1 / 3  # most words of a removed block, as a share of the content's
FOUND_REMOVED = 0.1  # most of the found text in a removed block; in all together twice as much
CHANCE = 0.1  # most words of a block that the found text may have as well, and one in any case
EXCERPT = 40  # most words of a teaser for each of its links
_WHOLE = ("dl", "ol", "p", "table", "ul")  # the content is never a part of one
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
    pruned = [] if outer else page.prune(body)
    return "".join(map(_as_main, outer)) or _inner(body), (*_around(body, outer or [body]), *pruned)


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
            if held[0].tag == "table":  # if one of its cells holds the text, it lays out the page
                held = [one for one in held[0].iter("td") if self._held(one) >= least][-1:] or held
            if held[0].tag in _WHOLE:
                break
            [here] = held
        if here is self._body:
            return [here], self.prune(here)
        for own in (one for one in here.iter("header") if self._held(one)):
            own.tag = "div"  # of the content, not of the page
        start, _ = self._spans[here]
        title = []
        if next(here.iter("h1"), None) is None:
            title = [*islice(self._titles_above(start), 1)]
        return [*title, here], self.prune(here)

    def _titles_above(self, start: int) -> Iterator[Any]:
        """The page's headings above its word number `start`, the nearest first; smaller ones only directly above."""
        above = [one for one in self._body.iter("h1", "h2", "h3") if self._spans[one][1] <= start and not _hidden(one)]
        yield from (one for one in reversed(above) if one.tag == "h1" and not _is_site(one))
        yield from (one for one in reversed(above) if one.tag != "h1" and self._spans[one][1] == start)

    def prune(self, root: Any) -> list[LeftOutText]:
        """Take what is about other pages out of an element, with the headings above."""
        pruned = []
        most, most_found = self._size(root) * REMOVED, self._before[-1] * FOUND_REMOVED
        done, held = 0, 0  # words
        for element in [*root.iterdescendants(etree.Element)]:
            start, end = self._spans[element]
            if start < done or start == end:
                continue
            parts = self._of_others(element, root)
            if not parts:
                continue
            if (found := sum(map(self._held, parts))) > most_found or held + found > 2 * most_found:
                continue
            # Comments may be longer than what they are about.
            is_large = sum(map(self._size, parts)) > most and (self.is_lost or not others.is_named_so(element))
            if is_large or any(map(others.has_facts, parts)) or any(_has_title(one) for one in parts):
                continue
            done, held = max(self._spans[one][1] for one in parts), held + found
            for one in parts:
                pruned.append(LeftOutText(OTHERS, " ".join(" ".join(one.itertext()).split())))
                one.drop_tree()
        return pruned

    def _of_others(self, element: Any, root: Any) -> list[Any]:
        """The elements that are about other pages, from this one on; empty if it is not about them."""
        size = self._size(element)
        text = _text(element) if size <= others.CROSS_REFERENCE else ""
        if text and others.is_cross_reference(element, text):
            return [element]
        if text and size <= others.LABEL and others.is_title(text):
            return self._section(element, root)
        if not others.is_named_so(element):
            if not others.is_block(element):
                return []
            share = sum(map(self._size, element.iter("a"))) / size
            found = self._held(element)
            is_own = self.is_lost or found > max(1, size * CHANCE)
            if not others.is_menu(element, share) and (
                is_own or not others.may_be(element, _text(element), share, is_found=found > 0)
            ):
                return []
        block = self._with_title(element, root)
        title = block.getprevious()
        titled = title is not None and title.tag in others.TITLES and _ends(block)
        return [title, block] if titled else [block]

    def _section(self, title: Any, root: Any) -> list[Any]:
        """A heading and what is below it, if that is mostly links."""
        level = title.tag
        while title.getparent() is not root and self._size(title.getparent()) <= self._size(title) + 3:
            title = title.getparent()
            level = min(level, title.tag) if title.tag in others.TITLES else level
        parts, links = [title], 0
        for after in title.itersiblings(etree.Element):
            heads = [
                one for one in islice(after.iter(*others.TITLES), 1) if self._spans[one][0] == self._spans[after][0]
            ]
            if any(level not in others.TITLES or one.tag <= level for one in heads):
                break
            if self._size(after) <= others.LABEL and others.is_title(_text(after)):
                break
            parts.append(after)
            links += sum(1 for _ in after.iter("a"))
        size = sum(map(self._size, parts[1:]))
        return parts if size <= links * EXCERPT else []

    def _with_title(self, block: Any, root: Any) -> Any:
        """The element around a block that has nothing else but headings."""
        while (around := block.getparent()) is not root:
            titles = sum(map(self._size, around.iterchildren(*others.TITLES)))
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


def _ends(element: Any) -> bool:
    """Whether nothing or a heading follows."""
    after = element.getnext()
    return not (element.tail or "").strip() and (after is None or after.tag in others.TITLES)


def _has_title(element: Any) -> bool:
    return next(element.iter("h1"), None) is not None


def _is_site(title: Any) -> bool:
    """Whether a heading is the name of the site: a link to its home page."""
    return any(anchor.get("href") in ("/", "./", "#") for anchor in title.iter("a"))


def _hidden(element: Any) -> bool:
    return any(is_hidden(one.attrib) for one in (element, *element.iterancestors()))


def _text(element: Any) -> str:
    return "".join(element.itertext())


def _as_main(element: Any) -> str:
    return f"<main>{_inner(element)}</main>"


def _outer(element: Any) -> str:
    if element.tag in (
        "body",
        "noscript",
        "td",
        "template",
    ):  # where scripts build the page, it may be there for others
        return _inner(element)
    return str(html.tostring(element, encoding="unicode", with_tail=False))


def _inner(element: Any) -> str:
    return "".join(
        [element.text or "", *(html.tostring(child, encoding="unicode") for child in element if child.tag is not None)]
    ).strip()
