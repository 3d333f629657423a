"""Quote: without a model, what the pages say in their own words, as far as that is sure.

The evidence was measured with the search.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import date
from time import perf_counter

from babel import Locale, UnknownLocaleError
from babel.dates import format_date

from pipelines.query.answer.canned import candidates
from pipelines.query.answer.days import asked_day
from pipelines.query.answer.quotation import Unsure, answering, by_part, describing, further, on_day, unsaid
from pipelines.query.answer.strategies.base import Piece, Task, step
from schemas.query import Evidence, Part, Retrieved, SureOf


class Quote:
    """Not for a site to choose: it takes the place of whatever was chosen when there is no model, or none that works.

    Args:
        lead_in: what comes before a quotation, in the visitor's language.
        closest: what comes before a passage of a page that is about the question, as far as one can tell.
        missing: what comes before the part of a question that nothing is sure to answer.
    """

    def __init__(self, lead_in: str, closest: str, missing: str) -> None:
        self._lead_in = lead_in
        self._closest = closest
        self._missing = missing

    async def run(self, task: Task) -> AsyncGenerator[Piece, None]:
        """Quote the evidence, of which there is some."""
        began = perf_counter()
        retrieved = task.retrieved
        evidence: Sequence[Evidence] = retrieved.evidence
        lead_in, closest = self._lead_in, self._closest
        lang = retrieved.request.lang
        asked = dict.fromkeys((retrieved.request.question, task.question))  # its own day before the topic's
        if day := next((day for each in asked if (day := asked_day(each, task.now, lang))), None):
            evidence = on_day(evidence, day, _language(retrieved), _on_page(evidence[0].n, retrieved))
            lead_in, closest = (f"**{_written(day, lang)}**\n\n{text}" for text in (lead_in, closest))
        sure = retrieved.sure is None or retrieved.sure.of == "unit"
        if retrieved.request.replaced and (others := unsaid(evidence, retrieved.request.replaced)):
            evidence, sure = others, False  # what was sure has been read, and was not what was wanted
        elif retrieved.request.history:
            evidence, again = further(evidence, retrieved.request.history[-1].answer)
            sure = sure and not again  # with what stands around it, it is not the same answer
        parts = [] if retrieved.request.replaced else [_dated(part, task, lang) for part in retrieved.parts]
        if answered := [part for part in parts if _sure_of(part) == "unit"]:
            unsure = [self._unsure(part, answered, retrieved) for part in parts if part not in answered]
            quotation = by_part([part.evidence for part in answered], lead_in, unsure, retrieved.tables)
        elif not sure:
            quotation = describing(evidence, _linked(closest, evidence[0].n, retrieved), retrieved.tables)
        else:
            there = _on_page(evidence[0].n, retrieved)
            quotation = answering([each for each in evidence if each.n in there], lead_in, retrieved.tables)
        for event in quotation.events:
            yield event
        yield step("quote", task.question, f"{len(quotation.citations)} units", began)

    def _unsure(self, part: Part, answered: Sequence[Part], retrieved: Retrieved) -> Unsure:
        asked = f"“{part.question}”"
        if _sure_of(part) == "nothing":
            return Unsure(f"{self._missing} {asked}", part.evidence, shown=False)
        n = part.evidence[0].n
        quoted = any(n == other.evidence[0].n for other in answered)  # its page needs no link of its own
        closest = self._closest if quoted else _linked(self._closest, n, retrieved)
        return Unsure(f"{asked}: {closest}", part.evidence, shown=True)


def _dated(part: Part, task: Task, lang: str) -> Part:
    """Where it is about a day, with what is about that day first."""
    day = asked_day(part.question, task.now, lang) if part.evidence else None
    if day is None:
        return part
    return part.model_copy(
        update={
            "evidence": tuple(
                on_day(part.evidence, day, _language(task.retrieved), _on_page(part.evidence[0].n, task.retrieved))
            )
        }
    )


def _sure_of(part: Part) -> SureOf:
    if not part.evidence:
        return "nothing"
    return part.sure.of if part.sure else "unit"


def _linked(closest: str, n: int, retrieved: Retrieved) -> str:
    """With the page that it is said of."""
    best = [source for source in retrieved.sources if source.n == n]
    return closest + "".join(f" [{title}](<{url}>)" for title, url in candidates(best))


def _on_page(n: int, retrieved: Retrieved) -> frozenset[int]:
    """The numbers of the sources of one page."""
    url = next(source.url for source in retrieved.sources if source.n == n)
    return frozenset(source.n for source in retrieved.sources if source.url == url)


def _language(retrieved: Retrieved) -> str:
    """Of the page that the best evidence is on."""
    return next(source.lang for source in retrieved.sources if source.n == retrieved.evidence[0].n)


def _written(day: date, lang: str) -> str:
    """The day in the visitor's language: "Monday, 23 November 2026"."""
    try:
        return str(format_date(day, "full", locale=Locale.parse(lang, sep="-")))
    except (UnknownLocaleError, ValueError):
        return day.isoformat()
