"""`pagewire coverage`: what the pages speak of beside what visitors ask, by topic."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import typer

from cli.gaps import DAY
from cli.output import explained, out, print_json, rows, table
from cli.times import point
from cli.wired import connected, logged
from pipelines.query.log.coverage import KEPT, KINDS, of_kind
from pipelines.query.log.kept_reports import UnderWay
from pipelines.runtime.errors import WrongUse
from schemas.coverage import CoverageReport, CoverageTopic

HEAD = 60  # characters of a title or a question
SAMPLES = 2
SAID = {"uncovered": "asked, not covered", "unasked": "covered, not asked", "covered": "covered and asked"}


class Kind(StrEnum):
    """Of topics."""

    uncovered = "uncovered"
    unasked = "unasked"
    covered = "covered"


def coverage(
    site: Annotated[str, typer.Argument(help="Site, as in pagewire.yaml.")],
    since: Annotated[str, typer.Option(help="Asked since then: 2h, 30d, or an ISO 8601 time.")] = "30d",
    until: Annotated[str | None, typer.Option(help="Asked before, written as `--since`; default: now.")] = None,
    kind: Annotated[Kind | None, typer.Option(help="Only topics of this kind.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=KEPT, help="So many topics of each kind at most.")] = 10,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Topics of the site's pages and its visitors' questions together: asked and not covered, covered and not asked,
    covered and asked. All pages are in it, those for access groups, too.

    Example: pagewire coverage town --since 90d

    Example: pagewire coverage town --kind uncovered --json
    """
    with explained():
        begin, end = point("--since", since), point("--until", until)
        assert begin is not None
        days = ((end or datetime.now(UTC)) - begin).total_seconds() / DAY
        if days <= 0:
            raise WrongUse("--since must be before --until")
        made = of_kind(asyncio.run(_report(site, days, end)), None if kind is None else kind.value, limit)
        print_json(made) if json else _print(made)


async def _report(site: str, days: float, until: datetime | None) -> CoverageReport:
    settings = logged()
    settings.site(site)
    async with connected(settings) as clients:
        made = await (await clients.coverage()).report(site, days, until, groups=None)
    assert not isinstance(made, UnderWay)
    return made


def _print(made: CoverageReport) -> None:
    out.print(summary(made), markup=False)
    if made.questions_cut:
        out.print("There were more questions than are read at once: the oldest are left out.", markup=False)
    if made.pages_cut:
        out.print(f"There are more pages than are read at once: {made.pages:,} were read.", markup=False)
    for kind in KINDS:
        topics = [topic for topic in made.topics if topic.kind == kind]
        if not topics:
            continue
        count = getattr(made, kind)
        out.print(f"\n{SAID[kind]}: {count.topics:,} topics, {count.pages:,} pages, {count.asked:,} questions")
        shown = table("asked#", "answered#", "refused#", "pages#", "near#", "topic", "pages")
        out.print(rows(shown, [_line(topic) for topic in topics]))
        if count.topics > len(topics):
            out.print(f"{len(topics):,} of {count.topics:,} topics; more with --limit", markup=False)


def summary(made: CoverageReport) -> str:
    """One line: how much was compared."""
    said = f"{made.pages:,} pages, {made.asked:,} questions since {made.since.astimezone():%Y-%m-%d %H:%M}"
    return f"{said}; {made.without_words:,} have no words to group them by" if made.without_words else said


def _line(topic: CoverageTopic) -> tuple[object, ...]:
    others = [one.question for one in topic.questions if one.question != topic.label][:SAMPLES]
    told = "\n".join([_head(topic.label), *(f"  {_head(other)}" for other in others)])
    pages = "\n".join(f"{_head(page.title or page.page_id)} {page.url}".rstrip() for page in topic.page_samples[:3])
    near = "" if topic.distance is None else f"{topic.distance:.2f}"
    return topic.asked, topic.answered, topic.refused, topic.pages, near, told, pages


def _head(text: str) -> str:
    return text if len(text) <= HEAD else text[: HEAD - 1] + "…"
