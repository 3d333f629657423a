"""Loss: the words of a page that its visitors see, or can open, and that are not in its text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from bs4 import BeautifulSoup, Tag
from bs4.element import PageElement

from text.words import count_roughly

DELETED = "deleted"  # by its author
HIDDEN = "hidden"  # without a control that opens it, so it is no loss
ELSEWHERE = "not taken for content"
OTHERS = "other pages"
UNWRITTEN = "without a form in text"  # in the content, but not in its Markdown
CUT = "over the limit"
# No loss: around the content of every page of a site, or no longer valid.
FRAME = frozenset({"aside", "consent", DELETED, "dialog", "footer", "header", "menu", OTHERS})
WHOLE = 0.9  # least share of a page's words, without its frame; a page with less is flagged
_IN_LINE = frozenset(
    (
        *("a", "b", "cents", "code", "del", "em", "i", "img", "kbd", "mi", "mn", "mo", "mroot", "mrow", "msqrt"),
        *("msub", "msubsup", "msup", "mtext", "munderover", "q", "s", "samp", "strong", "sub", "sup"),
    )
)
_TARGET = re.compile(r"\]\([^()\s]*\)")


class LeftOutText(NamedTuple):
    """A part of a page that is not in its text."""

    why: str
    text: str


class KeptText(Protocol):
    """How many words of a page are indexed, and how many are not, by why."""

    @property
    def indexed(self) -> int: ...

    @property
    def left_out(self) -> Mapping[str, int]: ...


@dataclass(frozen=True)
class Words:
    """How many words of a page there are."""

    visible: int  # without those of `hidden`
    indexed: int
    left_out: Mapping[str, int]


def counted(left_out: Iterable[LeftOutText]) -> Counter[str]:
    """Words by why they are left out."""
    words: Counter[str] = Counter()
    for why, text in left_out:
        words[why] += count_roughly(text)
    return +words


def measured(tree: BeautifulSoup, markdown: str, left_out: Mapping[str, int]) -> Words:
    """What the index holds of a page.

    Args:
        tree: Of its content (text.html_tree).
        markdown: What was made of that.
        left_out: Words outside the tree, by why.
    """
    content = count_roughly(_text(tree))
    indexed = min(content, whole(markdown).indexed)
    lost = +Counter({**left_out, UNWRITTEN: content - indexed})
    return Words(indexed + lost.total() - lost[HIDDEN], indexed, lost)


def whole(markdown: str) -> Words:
    """What the index holds of text that loses nothing."""
    count = count_roughly(_TARGET.sub("]", markdown))
    return Words(count, count, {})


def share(words: KeptText) -> float:
    """The part of a page's words that is indexed; its frame does not count."""
    lost = sum(count for why, count in words.left_out.items() if why not in FRAME and why != HIDDEN)
    return words.indexed / (words.indexed + lost) if lost else 1.0


def is_lacking(words: KeptText | None) -> bool:
    """Whether somebody should look at the page."""
    return words is not None and share(words) < WHOLE


def warning(words: KeptText) -> str | None:
    """What the editor of a page should know that has lost more than a page should."""
    if not is_lacking(words):
        return None
    lost = ", ".join(f"{why}: {count:,}" for why, count in words.left_out.items() if why not in FRAME | {HIDDEN})
    return f"{share(words):.0%} of the words that its visitors see can be found; left out: {lost}"


def _text(tree: BeautifulSoup) -> str:
    """The words of a tree, apart where it shows them apart."""
    return "".join(str(text) if _goes_on(text) else f" {text}" for text in tree.strings)


def _goes_on(text: PageElement) -> bool:
    before = text.previous_sibling or text.parent
    return isinstance(before, Tag) and before.name in _IN_LINE
