"""What a search field offers while a visitor types: titles of pages, and headings on them.

typed ─▶ index, by prefix ─▶ candidates ─▶ ranked here ─▶ suggestions
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pipelines.query.search.snippet import text_fragment
from schemas.http import SuggestedHeading, SuggestedPage
from text.folding import fold
from text.words import words

MAX_TYPED = 200  # characters that are completed


@dataclass(frozen=True)
class TitleCandidate:
    """A page whose title, or headings on it, have the typed words."""

    title: str
    url: str
    lang: str
    headings: tuple[str, ...] = ()  # of the chunk that was found; plain text


class TypeaheadIndex(Protocol):
    """The live index of each site, as it is searched by prefix (adapters.elastic.typeahead)."""

    async def titles(
        self, site: str, typed: str, *, lang: str | None, groups: Iterable[str]
    ) -> tuple[Sequence[TitleCandidate], Sequence[TitleCandidate]]:
        """Pages found by their title, and chunks found by their headings, the best first; readable by these groups.

        Args:
            lang: only pages in this language; None: all.

        Raises: Retryable.
        """


@dataclass(frozen=True)
class Typed:
    """The words that a visitor has typed; the last one may be a prefix."""

    text: str  # folded
    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Typed:
        return cls(" ".join(fold(text).split()), tuple(words(fold(text))))

    def fits(self, text: str) -> bool:
        """Whether a text has the words, in any order; in scripts without spaces it has the characters."""
        if not self.words or self.text in fold(text):
            return bool(self.words)
        there = words(fold(text))
        *whole, last = self.words
        return set(whole) <= set(there) and any(word.startswith(last) for word in there)

    def rank(self, text: str) -> tuple[bool, int, str]:
        """Sorts texts that begin with what was typed first, then the shorter ones."""
        folded = fold(text)
        return not folded.startswith(self.text), len(folded), folded


def suggested_pages(typed: Typed, found: Iterable[TitleCandidate], size: int) -> list[SuggestedPage]:
    """The best pages, each address once."""
    pages: dict[str, TitleCandidate] = {}
    for page in found:
        if page.title:
            pages.setdefault(page.url or page.title, page)
    best = sorted(pages.values(), key=lambda page: typed.rank(page.title))[:size]
    return [SuggestedPage(title=page.title, url=page.url, lang=page.lang) for page in best]


def suggested_headings(typed: Typed, found: Iterable[TitleCandidate], size: int) -> list[SuggestedHeading]:
    """The best headings that have the words; those that repeat their page's title are left out."""
    headings = {
        (page.url, heading): SuggestedHeading(
            heading=heading, title=page.title, url=page.url, lang=page.lang, fragment=text_fragment(heading)
        )
        for page in found
        for heading in page.headings
        if typed.fits(heading) and fold(heading) != fold(page.title)
    }
    return sorted(headings.values(), key=lambda each: typed.rank(each.heading))[:size]
