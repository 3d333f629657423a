"""The question log as somebody with certain access groups may read it.

A question that was asked with access groups may have found pages that not everybody may read. Their ids, titles and
addresses are shown to those alone who may read the pages today: the live index decides, as it does for the list of
pages. Of a page that is gone this is unknown, so it is not shown.

The question log as a table, for spreadsheets, and as lines of JSON, for programs.
"""

from __future__ import annotations

import csv
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from io import StringIO
from typing import Any

from pipelines.query.log.ports import GroupableQuestion, QuestionReader
from schemas.outcome import LoggedQuestion, QuestionFilter, QuestionList, QuestionRow
from text.spreadsheets import guarded

PageName = tuple[str, str]  # id and language


# Those of a site's pages that some groups can find (adapters.elastic.page_view). Raises: Retryable.
PageRights = Callable[[str, Collection[str], Iterable[str]], Awaitable[frozenset[PageName]]]


@dataclass(frozen=True)
class ReadableQuestions:
    """A QuestionReader for one caller, or for all with the same groups."""

    questions: QuestionReader
    rights: PageRights
    groups: frozenset[str]

    async def find(self, site: str, wanted: QuestionFilter, limit: int, after: str | None = None) -> QuestionList:
        """Raises: BadCursor. Retryable."""
        found = await self.questions.find(site, wanted, limit, after)
        doubtful = {page for row in found.questions if row.restricted is not False for page in row.pages}
        allowed = {page for page, _ in await self._readable(site, doubtful)}
        rows = [
            row.model_copy(update={"pages": tuple(page for page in row.pages if page in allowed)})
            if row.restricted is not False
            else row
            for row in found.questions
        ]
        return found.model_copy(update={"questions": tuple(rows)})

    async def get(self, site: str, request_id: str) -> LoggedQuestion | None:
        """Raises: Retryable."""
        found = await self.questions.get(site, request_id)
        return found and (await self.cleared(site, [found]))[0]

    async def cleared(self, site: str, found: Sequence[LoggedQuestion]) -> list[LoggedQuestion]:
        """The questions without the pages that these groups may not read. Raises: Retryable."""
        doubtful = {hit.page_id for each in found if each.outcome.restricted is not False for hit in each.outcome.hits}
        allowed = await self._readable(site, doubtful)
        return [each if each.outcome.restricted is False else _cleared(each, allowed) for each in found]

    async def asked(self, site: str, since: datetime, until: datetime, most: int) -> list[GroupableQuestion]:
        """Raises: Retryable."""
        found = await self.questions.asked(site, since, until, most)
        doubtful = {hit.page_id for one in found if one.restricted is not False for hit in one.hits}
        allowed = await self._readable(site, doubtful)
        return [
            one
            if one.restricted is False
            else replace(one, hits=tuple(hit for hit in one.hits if (hit.page_id, hit.lang) in allowed))
            for one in found
        ]

    async def corrections_used(self, site: str) -> Mapping[str, int]:
        """Raises: Retryable."""
        return await self.questions.corrections_used(site)

    async def _readable(self, site: str, page_ids: Collection[str]) -> frozenset[PageName]:
        return await self.rights(site, page_ids, self.groups) if page_ids else frozenset()


def _cleared(question: LoggedQuestion, allowed: frozenset[PageName]) -> LoggedQuestion:
    hits = tuple(hit for hit in question.outcome.hits if (hit.page_id, hit.lang) in allowed)
    return question.model_copy(update={"outcome": question.outcome.model_copy(update={"hits": hits})})


COLUMNS = tuple(QuestionRow.model_fields)
PAGE = 1_000  # questions read at once


async def pages(reader: QuestionReader, site: str, wanted: QuestionFilter) -> AsyncGenerator[QuestionList, None]:
    """All questions that fit, a list at a time; the first also where there are none. Raises: Retryable."""
    after = None
    while True:
        page = await reader.find(site, wanted, PAGE, after)
        yield page
        after = page.next
        if after is None:
            return


def csv_lines(rows: Iterable[QuestionRow], *, header: bool) -> str:
    """RFC 4180, times in ISO 8601. Before what would be a formula stands an apostrophe."""
    written = StringIO()
    writer = csv.writer(written)
    if header:
        writer.writerow(COLUMNS)
    for row in rows:
        values = row.model_dump(mode="json")
        writer.writerow(_cell(values[name]) for name in COLUMNS)
    return written.getvalue()


def ndjson_lines(rows: Iterable[QuestionRow]) -> str:
    return "".join(f"{row.model_dump_json()}\n" for row in rows)


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        value = " ".join(value)
    return guarded(value) if isinstance(value, str) else value
