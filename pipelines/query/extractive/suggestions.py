"""Suggestions: proposes questions to begin a chat with, from a site's own pages.

beginnings of pages ─▶ questions on them (FAQ), then headings that ask for a figure ─▶ tried, one by one
                                                          (pipelines/conversations/suggestions.py)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelines.query.extractive.certainty import asked
from pipelines.query.extractive.replies import bare
from text.markdown import blocks, plain
from text.words import count_words, stems

LONGEST, FEWEST_WORDS = 80, 2
QUESTION_MARKS = ("?", "？", "؟")
READ = 40  # blocks of a page


@dataclass(frozen=True)
class PageText:
    """The beginning of a page. `text`: Markdown."""

    page_id: str
    title: str
    text: str


@dataclass(frozen=True)
class Proposal:
    """A question that its page should answer."""

    page_id: str
    question: str


def proposals(pages: Sequence[PageText], lang: str) -> list[Proposal]:
    """Questions of the pages first, then headings; the first one of each page before the second of any page."""
    titles = bare([" ".join(page.title.split()) for page in pages])
    found: list[tuple[int, int, int, Proposal]] = []
    for number, (page, title) in enumerate(zip(pages, titles, strict=True)):
        own = sorted(_of_page(page.text, title, lang), key=lambda each: each[0])
        found += [(rank, n, number, Proposal(page.page_id, text)) for n, (rank, text) in enumerate(own)]
    return [proposal for *_, proposal in sorted(found, key=lambda each: each[:3])]


def _of_page(text: str, title: str, lang: str) -> Iterator[tuple[int, str]]:
    """(rank, question) of each proposal."""
    for _, block in zip(range(READ), blocks(text), strict=False):
        said = plain(text[block.start : block.end])
        if len(said) > LONGEST:
            continue
        if said.endswith(QUESTION_MARKS) and count_words(said) >= FEWEST_WORDS:
            yield 0, said
        elif block.kind == "heading" and asked(said, (lang.partition("-")[0],))[0]:
            named = set(stems(title)) <= set(stems(said))
            question = said if named else f"{title}: {said}"
            if len(question) <= LONGEST:
                yield 1, question
