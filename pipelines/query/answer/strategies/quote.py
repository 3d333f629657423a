"""Quote: without a model, what the pages say in their own words, as far as that is sure.

The evidence was measured with the search. Where there is none (an index made before units, sources that a strategy has
found since), the sentences of the sources are embedded here.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import date
from time import perf_counter

from babel import Locale, UnknownLocaleError
from babel.dates import format_date

from pipelines.query.answer.canned import candidates
from pipelines.query.answer.days import asked_day
from pipelines.query.answer.extract import extract
from pipelines.query.answer.quotation import answering, describing, further, on_day, unsaid
from pipelines.query.answer.strategies.base import Piece, Task, step
from pipelines.runtime.embedder import Embedder
from schemas.query import Evidence, Retrieved

QUOTABLE = ("content", "description")


class Quote:
    """Not for a site to choose: it takes the place of whatever was chosen when there is no model, or none that works.

    Args:
        lead_in: what comes before a quotation, in the visitor's language.
        about: what comes before a passage of a page that is about the question, as far as one can tell.
    """

    def __init__(self, embedder: Embedder, lead_in: str, about: str) -> None:
        self._embedder = embedder
        self._lead_in = lead_in
        self._about = about

    async def run(self, task: Task) -> AsyncGenerator[Piece, None]:
        """Nothing where there is nothing to quote. Raises: Retryable: the embedder is away."""
        began = perf_counter()
        retrieved = task.retrieved
        evidence: Sequence[Evidence] = retrieved.evidence
        if evidence:
            lead_in, about = self._lead_in, self._about
            lang = retrieved.request.lang
            asked = dict.fromkeys((retrieved.request.question, task.question))  # its own day before the topic's
            if day := next((day for each in asked if (day := asked_day(each, task.now, lang))), None):
                evidence = on_day(evidence, day, _language(retrieved))
                lead_in, about = (f"**{_written(day, lang)}**\n\n{text}" for text in (lead_in, about))
            sure = retrieved.sure is None or retrieved.sure.of == "unit"
            if retrieved.request.replaced and (others := unsaid(evidence, retrieved.request.replaced)):
                evidence, sure = others, False  # what was sure has been read, and was not what was wanted
            elif retrieved.request.history:
                evidence, again = further(evidence, retrieved.request.history[-1].answer)
                sure = sure and not again  # with what stands around it, it is not the same answer
            if not sure:
                best = [source for source in retrieved.sources if source.n == evidence[0].n]
                links = [f" [{title}](<{url}>)" for title, url in candidates(best)]
                quotation = describing(evidence, about + "".join(links))
            else:
                quotation = answering(evidence, lead_in)
            for event in quotation.events:
                yield event
            yield step("quote", task.question, f"{len(quotation.citations)} units", began)
            return
        # A title says that its page is about the question, but answers nothing.
        sources = task.retrieved.sources
        worth = [source for source in sources if source.field in QUOTABLE] or sources
        extracted = await extract(task.question, worth, self._embedder, self._lead_in)
        for event in extracted.events:
            yield event
        yield step("quote", task.question, f"{len(extracted.citations)} sentences", began)


def _language(retrieved: Retrieved) -> str:
    """Of the page that the best evidence is on."""
    return next(source.lang for source in retrieved.sources if source.n == retrieved.evidence[0].n)


def _written(day: date, lang: str) -> str:
    """The day in the visitor's language: "Monday, 23 November 2026"."""
    try:
        return str(format_date(day, "full", locale=Locale.parse(lang, sep="-")))
    except (UnknownLocaleError, ValueError):
        return day.isoformat()
