"""Many changes in one body. A bad line does not affect the others.

lines ─▶ parse, check ─▶ batches ─▶ intake ─▶ counts, and an error per bad line
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator

from gateway.edge.bodies import parse, too_large
from gateway.edge.problems import Problem, problem_of
from pipelines.ingest.accept import Acceptance, Change, Intake, check_size
from pipelines.runtime.errors import Permanent, Retryable, TooLarge
from pipelines.runtime.record import Lane
from schemas.http import BulkError, BulkLine, BulkResult
from wiring.settings import Settings

MIB = 1024 * 1024
STRINGS = 120_000  # of a page: far more than its fields may have, so that those that are too many are named
BATCH_LINES = 500  # changes handed to the log at once, ...
BATCH_BYTES = 8 * MIB  # ... unless they are heavy before that
MAX_BULK_ERRORS = 10_000  # listed; the rest is only counted

Lines = AsyncIterable[tuple[int, bytes | None]]  # numbers from 1; None: longer than body_limit


def body_limit(settings: Settings) -> int:
    """Bytes of a page as JSON: `content` may be escaped (`\\u00fc`: 6 bytes for 2); the rest is for attachments."""
    return 3 * settings.content_limit + 4 * MIB


async def accept_lines(
    lines: Lines, site: str, intake: Intake, settings: Settings, *, source: str, lane: Lane, revised: bool = False
) -> BulkResult:
    """Put the changes into the log, in order.

    Args:
        revised: refuse a line without a revision. Sent again, it would undo later changes.

    Raises:
        Problem: 503, 408 or 400 in the middle; `accepted` says how many lines the log has. Sending everything again is
            safe.
    """
    tally = _Tally()
    try:
        async for numbers, changes in _batches(lines, settings, tally, revised):
            await _hand_over(site, numbers, changes, intake, source, lane, tally)
    except Retryable as err:
        raise tally.so_far(problem_of(err)) from err
    except Problem as problem:  # of the body
        raise tally.so_far(problem) from None
    return tally.result()


class _Tally:
    """Counts of one body."""

    def __init__(self) -> None:
        self.accepted = 0
        self.superseded = 0
        self.rejected = 0
        self.errors: list[BulkError] = []

    def reject(self, line: int, code: str, message: str) -> None:
        self.rejected += 1
        if len(self.errors) < MAX_BULK_ERRORS:
            self.errors.append(BulkError(line=line, code=code, message=message))

    def take(self, acceptances: list[Acceptance]) -> None:
        for acceptance in acceptances:
            if acceptance.superseded:
                self.superseded += 1
            else:
                self.accepted += 1

    def so_far(self, problem: Problem) -> Problem:
        problem.extra["accepted"] = self.accepted
        return problem

    def result(self) -> BulkResult:
        errors = tuple(sorted(self.errors, key=lambda e: e.line))
        return BulkResult(accepted=self.accepted, rejected=self.rejected, superseded=self.superseded, errors=errors)


async def _batches(
    lines: Lines, settings: Settings, tally: _Tally, revised: bool
) -> AsyncIterator[tuple[list[int], list[Change]]]:
    """Good lines in batches; bad ones go to the tally. By hand: more-itertools knows no asynchronous lines."""
    limit = body_limit(settings)
    numbers: list[int] = []
    changes: list[Change] = []
    weight = 0
    async for number, raw in lines:
        try:
            if raw is None:
                raise too_large(limit)
            line = parse(BulkLine, raw, STRINGS)
            if revised and line.page.revision is None:
                raise Problem(422, "no-revision", "page.revision: a webhook's lines need one")
            if line.op == "upsert":
                check_size(line.page, settings.content_limit)
        except (Problem, TooLarge) as err:
            tally.reject(number, err.code, err.detail if isinstance(err, Problem) else str(err))
            continue
        numbers.append(number)
        changes.append(Change(line.op, line.page))
        weight += len(raw)
        if len(changes) == BATCH_LINES or weight >= BATCH_BYTES:
            yield numbers, changes
            numbers, changes, weight = [], [], 0
    if changes:
        yield numbers, changes


async def _hand_over(
    site: str, numbers: list[int], changes: list[Change], intake: Intake, source: str, lane: Lane, tally: _Tally
) -> None:
    try:
        tally.take(await intake.accept(site, changes, source, lane))
        return
    except Permanent as err:
        if len(changes) == 1:
            tally.reject(numbers[0], err.code, str(err))
            return
    # One of them made the log refuse all: one by one, so that the others are accepted.
    for number, change in zip(numbers, changes, strict=True):
        await _hand_over(site, [number], [change], intake, source, lane, tally)
