"""`pagewire questions`: what visitors asked, and the outcome."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from cli.admin_client import Gateway
from cli.output import Json, Site, explained, out, print_json, table
from cli.wired import point
from pipelines.query.log.readable import csv_lines, ndjson_lines
from pipelines.runtime.errors import WrongUse
from schemas.outcome import Became, LoggedQuestion, QuestionCounts, QuestionList, QuestionRow

SHOWN = 50  # questions on a terminal
HEAD = 80  # characters of one
MARKS = {"up": "+", "down": "-", None: ""}


def questions(
    site: Site,
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
    json: Json = False,
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
        gateway, where = Gateway(), ("sites", site, "questions")
        if id is not None:
            print_json(gateway.read(LoggedQuestion, *where, id))
            return
        lists = gateway.pages(
            QuestionList,
            *where,
            limit=limit or (None if csv or ndjson else SHOWN),
            **{"from": point("--since", since), "to": point("--until", until)},
            outcome="refused" if refused else outcome,
            feedback="down" if disliked else None,
            lang=lang,
            page=page,
            text=text,
        )
        if csv or ndjson:
            _write(lists, csv=csv)
            return
        every = list(lists)
    found = QuestionList(
        counts=every[0].counts, questions=tuple(row for one in every for row in one.questions), next=every[-1].next
    )
    print_json(found) if json else _print(found)


def _write(lists: Iterable[QuestionList], *, csv: bool) -> None:
    for number, found in enumerate(lists):
        rows = found.questions
        sys.stdout.write(csv_lines(rows, header=number == 0) if csv else ndjson_lines(rows))


def _print(found: QuestionList) -> None:
    out.print(summary(found.counts), markup=False)
    if found.questions:
        out.print()
        columns = ("asked", "lang", "outcome", "", "question", "pages", "id")
        out.print(table(columns, [_line(row) for row in found.questions]))
    if found.next:
        out.print(f"\nthe newest {len(found.questions):,}; more with --limit, all with --csv", markup=False)


def summary(counts: QuestionCounts) -> str:
    """One line: how many were asked, and their outcomes."""
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


def _line(row: QuestionRow) -> tuple[object, ...]:
    question = " ".join((row.question or "").split())
    shown = question if len(question) <= HEAD else question[: HEAD - 1] + "…"
    if row.comment:
        shown += f"\n“{' '.join(row.comment.split())}”"
    result = row.failed or row.became
    return (row.asked_at, row.asked_in, result, MARKS[row.feedback], shown, row.pages, row.request_id)
