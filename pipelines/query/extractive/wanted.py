"""Wanted: looks for the price that a question asks for, on the page of the best unit.

"How much is the sauna?"   "Towels cost €3."                ─▶ of the sauna by its heading alone
                           "| Sauna, all day | €14 |"       ─▶ names the sauna itself: this one first
                           no price anywhere on the page    ─▶ no card
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from pipelines.query.extractive.certainty import asked, holds, itself, languages, unnamed
from schemas.query import Evidence, Source
from text.likeness import Likeness
from text.markdown import cells, plain
from text.words import words

NAMED = 4.0  # bonus of a unit with a price that itself names the whole subject
LISTED = 2.0  # bonus of a price in a table
READ = 500  # characters of a unit to search for prices
FORM = 0.9  # likeness of two forms of a word; a compound has less


def priced(
    evidence: Sequence[Evidence], sources: Sequence[Source], question: str, whole: str, visitor: str
) -> list[Evidence]:
    """The units, with the wanted price first if the question asks for one.

    Args:
        evidence: best first; at least one.
        question: in the visitor's own words.
        whole: the question with the one that it leans on, which then names its subject.
        visitor: the visitor's language.
    """
    page = _of(sources, evidence[0])
    langs = languages(question, visitor, page.lang)
    wants, subject = asked(question, langs)
    if "price" not in wants:
        return list(evidence)
    subject = [word for word in subject if word not in unnamed(langs)] or asked(whole, langs)[1]

    def bonus(unit: Evidence) -> float:
        if _of(sources, unit).url != page.url or not _has_price(unit, page):
            return 0.0
        own = Likeness(words(plain(itself(unit)[:READ])))
        named = sum(max(own.of(word).values(), default=0.0) >= FORM for word in subject)
        return NAMED * named / max(len(subject), 1) + LISTED * (unit.kind == "row")

    raised = [unit.model_copy(update={"score": unit.score + bonus(unit)}) for unit in evidence]
    return sorted(raised, key=lambda unit: -unit.score)


def lacks_price(evidence: Sequence[Evidence], sources: Sequence[Source], question: str, visitor: str) -> bool:
    """Whether a question asks for a price, and no unit of the best page has one."""
    if not evidence:
        return False
    page = _of(sources, evidence[0])
    if "price" not in asked(question, languages(question, visitor, page.lang))[0]:
        return False
    return not any(_of(sources, unit).url == page.url and _has_price(unit, page) for unit in evidence)


def _has_price(unit: Evidence, page: Source) -> bool:
    text = unit.text
    if unit.kind == "row":  # the currency may be in the header
        text = " ".join(
            f"{cell} {column};" for cell, column in zip_longest(cells(text), cells(unit.header), fillvalue="")
        )
    return holds("price", plain(text[:READ]), page.lang)


def _of(sources: Sequence[Source], unit: Evidence) -> Source:
    return next(source for source in sources if source.n == unit.n)
