"""`pagewire eval gaps`: what visitors ask and the site does not answer, grouped by meaning."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from cli.admin_client import Gateway
from cli.output import Json, Site, explained, out, print_json, table
from cli.wired import point
from pipelines.query.log.gaps import KEPT, trend
from pipelines.runtime.errors import WrongUse
from schemas.gaps import GapCounts, GapReport, QuestionGroup

HEAD = 70  # characters of a question
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
    with explained():
        begin, end = point("--since", since), point("--until", until)
        assert begin is not None
        days = round(((end or datetime.now(UTC)) - begin).total_seconds() / DAY, 5)
        if days <= 0:
            raise WrongUse("--since must be before --until")
        shown = Gateway().read(GapReport, "sites", site, "gaps", days=days, to=end, all=every, limit=limit, wait=WAIT)
    print_json(shown) if json else _print(shown, every=every)


def _print(made: GapReport, *, every: bool) -> None:
    out.print(summary(made), markup=False)
    if made.cut:
        out.print("There were more questions than are read at once: the oldest are left out.", markup=False)
    if made.groups:
        out.print()
        numbers = ("asked#", "missed#") if every else ("missed#", "asked#")
        columns = (*numbers, "", "lang", "question", "near")
        out.print(table(columns, [_line(group, every=every) for group in made.groups]))
    if made.total > len(made.groups):
        out.print(f"\n{len(made.groups):,} of {made.total:,} groups; more with --limit", markup=False)


def summary(made: GapReport) -> str:
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


def _line(group: QuestionGroup, *, every: bool) -> tuple[object, ...]:
    numbers = (group.asked, group.missed) if every else (group.missed, group.asked)
    others = [one.question for one in group.questions if one.question != group.label][:SAMPLES]
    question = "\n".join([_head(group.label), *(f"  {_head(other)}" for other in others)])
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
        said.append(f"{_head(page.title or page.page_id)}{distance} {page.url}".rstrip())
    return "\n".join(said)


def _head(text: str) -> str:
    return text if len(text) <= HEAD else text[: HEAD - 1] + "…"
