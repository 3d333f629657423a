"""Quote: without a model, the best sentences of the pages."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from time import perf_counter

from pipelines.query.answer.extract import extract
from pipelines.query.answer.strategies.base import Piece, Task, step
from pipelines.runtime.embedder import Embedder

QUOTABLE = ("content", "description")


class Quote:
    """Not for a site to choose: it takes the place of whatever was chosen when there is no model, or none that works.

    Args:
        lead_in: what comes before a quotation, in the visitor's language.
    """

    def __init__(self, embedder: Embedder, lead_in: str) -> None:
        self._embedder = embedder
        self._lead_in = lead_in

    async def run(self, task: Task) -> AsyncGenerator[Piece, None]:
        """Nothing where there is nothing to quote. Raises: Retryable: the embedder is away."""
        began = perf_counter()
        # A title says that its page is about the question, but answers nothing.
        sources = task.retrieved.sources
        worth = [source for source in sources if source.field in QUOTABLE] or sources
        extracted = await extract(task.question, worth, self._embedder, self._lead_in)
        for event in extracted.events:
            yield event
        yield step("quote", task.question, f"{len(extracted.citations)} sentences", began)
