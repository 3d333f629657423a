"""`pagewire questions`: what visitors asked, and the outcome. `eval gaps`: what of it the site does not answer."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated

import typer

from cli.admin_client import Gateway
from cli.output import Json, Site, out, print_json, table
from cli.wired import point
from pipelines.query.log.gaps import KEPT, trend
from pipelines.query.log.readable import csv_lines, ndjson_lines
from pipelines.runtime.errors import WrongUse
from schemas.gaps import GapCounts, GapReport, QuestionGroup
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


GAP_HEAD = 70  # characters of a question
SAMPLES = 2  # beside the label
DAY = 86_400.0  # seconds
WAIT = 60.0  # seconds that the gateway holds a request for a report that is being made
COVERED = {"nothing": "nothing was shown", "near": "pages were shown, but no answer", "there": "an answer was given"}


def gaps(
    site: Site,
    since: Annotated[str, typer.Option(help="Asked since then: 2h, 30d, or an ISO 8601 time.")] = "30d",
    until: Annotated[str | None, typer.Option(help="Asked before, written as `--since`; default: now.")] = None,
    every: Annotated[bool, typer.Option("--all", help="What is asked most, whether it is answered or not.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=KEPT, help="So many groups at most.")] = 20,
    json: Json = False,
) -> None:
    """Questions that were refused, disliked or badly grounded, grouped by meaning, those missed most first; how many
    there were in the period before, and which pages are near them.

    Example: pagewire eval gaps town --since 7d

    Example: pagewire eval gaps town --all --json
    """
    begin, end = point("--since", since), point("--until", until)
    assert begin is not None
    days = round(((end or datetime.now(UTC)) - begin).total_seconds() / DAY, 5)
    if days <= 0:
        raise WrongUse("--since must be before --until")
    shown = Gateway().read(GapReport, "sites", site, "gaps", days=days, to=end, all=every, limit=limit, wait=WAIT)
    print_json(shown) if json else _print_gaps(shown, every=every)


def _print_gaps(made: GapReport, *, every: bool) -> None:
    out.print(gap_summary(made), markup=False)
    if made.cut:
        out.print("There were more questions than are read at once: the oldest are left out.", markup=False)
    if made.groups:
        out.print()
        numbers = ("asked#", "missed#") if every else ("missed#", "asked#")
        columns = (*numbers, "", "lang", "question", "near")
        out.print(table(columns, [_group_line(group, every=every) for group in made.groups]))
    if made.total > len(made.groups):
        out.print(f"\n{len(made.groups):,} of {made.total:,} groups; more with --limit", markup=False)


def gap_summary(made: GapReport) -> str:
    """One line: how many were asked and missed, and how many in the period before."""
    now, before = made.counts, made.counts_before
    said = f"{_counted(now)} since {made.since.astimezone():%Y-%m-%d %H:%M}"
    if now.without_words:
        said += f"; {now.without_words:,} have no words to group them by"
    return f"{said}; {before.asked:,} and {before.missed:,} in as many days before"


def _counted(counts: GapCounts) -> str:
    kinds = {
        "refused": counts.refused,
        "disliked": counts.disliked,
        "shown a page": counts.unsure,
        "with sentences left out": counts.unfounded,
    }
    told = ", ".join(f"{number:,} {name}" for name, number in kinds.items() if number)
    return f"{counts.asked:,} asked, {counts.missed:,} missed" + (f" ({told})" if told else "")


def _group_line(group: QuestionGroup, *, every: bool) -> tuple[object, ...]:
    numbers = (group.asked, group.missed) if every else (group.missed, group.asked)
    others = [one.question for one in group.questions if one.question != group.label][:SAMPLES]
    question = "\n".join([_cut(group.label), *(f"  {_cut(other)}" for other in others)])
    return (*numbers, _trend(group, every=every), " ".join(group.languages), question, _near(group))


def _trend(group: QuestionGroup, *, every: bool) -> str:
    before = group.asked_before if every or not (group.missed or group.missed_before) else group.missed_before
    moved = trend(group.asked, group.asked_before) if every else group.trend
    said = moved if moved in ("new", "gone") else "as before" if moved == "same" else f"{moved} from {before:,}"
    return f"{said}, closing" if group.closing and not every else said


def _near(group: QuestionGroup) -> str:
    said = [COVERED[group.covered]] if group.covered else []
    for page in group.pages:
        distance = "" if page.distance is None else f" {page.distance:.2f}"
        said.append(f"{_cut(page.title or page.page_id)}{distance} {page.url}".rstrip())
    return "\n".join(said)


def _cut(text: str) -> str:
    return text if len(text) <= GAP_HEAD else text[: GAP_HEAD - 1] + "…"
