"""`pagewire questions`: what visitors asked, and what became of it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, get_args

import typer

from cli.output import NOT_SO, complain, explained, out, print_json, table
from cli.times import point
from cli.wired import connected, load
from pipelines.query.log.listing import csv_lines, ndjson_lines, pages
from pipelines.runtime.errors import WrongUse
from schemas.outcome import Became, LoggedQuestion, QuestionCounts, QuestionFilter, QuestionList, QuestionRow

SHOWN = 50  # questions on a terminal
HEAD = 80  # characters of one
MARKS = {"up": "+", "down": "-", None: ""}


def questions(
    site: Annotated[str, typer.Argument(help="Site, as in pagewire.yaml.")],
    id: Annotated[str | None, typer.Argument(help="One question, by its request id: all that is known of it.")] = None,
    refused: Annotated[bool, typer.Option("--refused", help="Only those that got neither answer nor page.")] = False,
    disliked: Annotated[bool, typer.Option("--disliked", help="Only those whose answer was disliked.")] = False,
    outcome: Annotated[
        str | None, typer.Option(help="Only with this outcome: answered, page, refused, courtesy or failed.")
    ] = None,
    since: Annotated[str | None, typer.Option(help="Only asked since then: 30m, 2h, 7d, or an ISO 8601 time.")] = None,
    until: Annotated[str | None, typer.Option(help="Only asked before, written as `--since`.")] = None,
    lang: Annotated[str | None, typer.Option(help="Only asked or answered in this language.")] = None,
    page: Annotated[str | None, typer.Option(help="Only those whose answer cites this page, by its id.")] = None,
    text: Annotated[str | None, typer.Option(help="Only with these words, in the question or the comment.")] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="So many at most, the newest: 50; of --csv and --ndjson all by default."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print a table for spreadsheets (CSV, UTF-8).")] = False,
    ndjson: Annotated[bool, typer.Option("--ndjson", help="Print a line of JSON for each.")] = False,
) -> None:
    """What visitors asked, the newest first, after a line that counts all that fit. Exit code 1 when there is no
    question of that id.

    Example: pagewire questions town --refused --since 7d

    Example: pagewire questions town --disliked --csv > disliked.csv
    """
    with explained():
        if json + csv + ndjson > 1:
            raise WrongUse("--json, --csv, --ndjson: choose one")
        if refused and outcome not in (None, "refused"):
            raise WrongUse(f"--refused and --outcome {outcome}: choose one")
        if outcome not in (None, *get_args(Became)):
            raise WrongUse(f"--outcome {outcome}: choose one of {', '.join(get_args(Became))}")
        wanted = QuestionFilter.model_validate(
            {
                "since": point("--since", since),
                "until": point("--until", until),
                "lang": lang,
                "became": "refused" if refused else outcome,
                "feedback": "down" if disliked else None,
                "page": page,
                "text": text,
            }
        )
        if id is not None:
            _show(asyncio.run(_one(site, id)), site, id)
        elif csv:
            asyncio.run(_csv(site, wanted, limit))
        elif ndjson:
            asyncio.run(_ndjson(site, wanted, limit))
        else:
            found = asyncio.run(_newest(site, wanted, limit or SHOWN))
            print_json(found) if json else _print(found)


async def _one(site: str, id: str) -> LoggedQuestion | None:
    settings = load()
    settings.site(site)
    async with connected(settings) as clients:
        return await clients.questions().get(site, id)


async def _newest(site: str, wanted: QuestionFilter, limit: int) -> QuestionList:
    """As one list. Raises: UnknownSite, Retryable."""
    lists = [found async for found in _lists(site, wanted, limit)]
    every = tuple(row for found in lists for row in found.questions)
    return QuestionList(counts=lists[0].counts, questions=every, next=lists[-1].next)


async def _csv(site: str, wanted: QuestionFilter, limit: int | None) -> None:
    header = True
    async for found in _lists(site, wanted, limit):
        sys.stdout.write(csv_lines(found.questions, header=header))
        header = False


async def _ndjson(site: str, wanted: QuestionFilter, limit: int | None) -> None:
    async for found in _lists(site, wanted, limit):
        sys.stdout.write(ndjson_lines(found.questions))


async def _lists(site: str, wanted: QuestionFilter, limit: int | None) -> AsyncGenerator[QuestionList, None]:
    settings = load()
    settings.site(site)
    async with connected(settings) as clients, aclosing(pages(clients.questions(), site, wanted, limit)) as lists:
        async for found in lists:
            yield found


def _show(found: LoggedQuestion | None, site: str, id: str) -> None:
    if found is None:
        complain(f"the log of site {site} has no question {id}")
        raise typer.Exit(NOT_SO)
    print_json(found)


def _print(found: QuestionList) -> None:
    out.print(summary(found.counts), markup=False)
    if found.questions:
        out.print()
        columns = ("asked", "lang", "outcome", "", "question", "pages", "id")
        out.print(table(columns, [_line(row) for row in found.questions]))
    if found.next:
        out.print(f"\nthe newest {len(found.questions):,}; more with --limit, all with --csv", markup=False)


def summary(counts: QuestionCounts) -> str:
    """One line: how many were asked, and what became of them."""
    became: dict[str, Became] = {
        "answered": "answered",
        "shown a page": "page",
        "refused": "refused",
        "courtesies": "courtesy",
        "failed": "failed",
    }
    numbers = [(name, getattr(counts, kind)) for name, kind in became.items()]
    numbers += [("liked", counts.liked), ("disliked", counts.disliked)]
    return ", ".join([f"{counts.asked:,} asked", *(f"{number:,} {name}" for name, number in numbers if number)])


def _line(row: QuestionRow) -> tuple[str, ...]:
    question = " ".join((row.question or "").split())
    shown = question if len(question) <= HEAD else question[: HEAD - 1] + "…"
    if row.comment:
        shown += f"\n“{' '.join(row.comment.split())}”"
    became = row.failed or row.became
    at = row.asked_at.astimezone().strftime("%Y-%m-%d %H:%M")
    return (at, row.asked_in, became, MARKS[row.feedback], shown, " ".join(row.pages), row.request_id)
