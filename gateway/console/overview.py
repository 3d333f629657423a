"""Overview: faults and questions of the last two weeks. The figures are those of `pagewire status` and of the question
log.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, time, timedelta
from itertools import pairwise

from babel.dates import format_date
from fastapi import APIRouter, Response

from gateway.console.corrections import OUT_OF_FORCE
from gateway.console.evaluations import bars
from gateway.console.view import ConsoleRoute, OnSite, View
from gateway.operators.corrections import corrections
from schemas.outcome import QuestionCounts, QuestionFilter

DAYS = 14
KINDS = ("answered", "page", "refused", "failed")  # without courtesies, which are no questions

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)


@router.get("/")
async def overview(view: OnSite) -> Response:
    """Only an operator sees the stages, which work for all sites. Other callers see the faults of their site."""
    everything = view.caller.operates
    status, days, corrected, runs = await asyncio.gather(
        view.edge.ports.status.status([view.site]),
        _days(view),
        corrections(view.edge).list(view.site, view.caller.groups),
        view.edge.ports.evaluations.of_site(view.site, None),
    )
    mine = next((site for site in status.sites if site.site == view.site), None)
    away = [name for name, there in (("Kafka", status.kafka), ("Elasticsearch", status.elasticsearch)) if not there]
    problems = [*(status.problems if everything else ()), *([mine.problem] if mine and mine.problem else [])]
    total = {kind: sum(getattr(counts, kind) for _, counts in days) for kind in QuestionCounts.model_fields}
    return view.page(
        "overview.html",
        site_status=mine,
        stages=status.stages if everything else (),
        away=away,
        problems=problems,
        dead_letters=sum(stage.dead_letters for stage in status.stages) if everything else 0,
        out_of_force=sum(one.state in OUT_OF_FORCE for one in corrected.corrections),
        run=max(runs, key=lambda run: run.begun, default=None),
        days=days,
        kinds=KINDS,
        total=total,
        most=max(counts.asked for _, counts in days),
        rects=bars([[(kind, getattr(counts, kind)) for kind in KINDS] for _, counts in days]),
    )


async def _days(view: View) -> list[tuple[str, QuestionCounts]]:
    """(label, counts of questions) of the last days in the site's time zone, the oldest first."""
    zone = view.edge.settings.site(view.site).zone
    today = view.edge.ports.now().astimezone(zone).date()
    dates = [today - timedelta(days=n) for n in reversed(range(DAYS))]
    begins = [datetime.combine(date, time(), zone).astimezone(UTC) for date in [*dates, today + timedelta(days=1)]]
    wanted = [QuestionFilter(since=since, until=until) for since, until in pairwise(begins)]
    found = await asyncio.gather(*(view.edge.ports.questions.find(view.site, each, 1) for each in wanted))
    labels = [format_date(date, view.say("pattern-of-days"), locale=view.say.locale) for date in dates]
    return [(label, each.counts) for label, each in zip(labels, found, strict=True)]
