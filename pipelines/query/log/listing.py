"""The question log as a table, for spreadsheets, and as lines of JSON, for programs."""

from __future__ import annotations

import csv
from collections.abc import AsyncGenerator, Iterable
from io import StringIO
from typing import Any

from pipelines.query.log.ports import QuestionReader
from schemas.outcome import QuestionFilter, QuestionList, QuestionRow
from text.spreadsheets import guarded

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
