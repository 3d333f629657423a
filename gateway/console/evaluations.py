"""Evaluations: published runs by dataset with their trend, one run, and two runs side by side. The data is that of
`/v1/admin/.../evaluations`. Runs are started in the console (evaluation_runs.py) or by `pagewire evaluate`.

Cases: a question of the log or of the playground, as a line for a dataset's file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Response

from gateway.console.view import ConsoleRoute, Editor, OnSite, confirmed, form_of
from gateway.edge.bodies import validated
from gateway.operators.evaluations import file_of, named, run_of, unknown
from pipelines.evaluate.comparison import GATED, WHOLE
from pipelines.evaluate.non_inferiority import MARGIN
from pipelines.evaluate.publication import (
    ORDER,
    PairedCase,
    failures_first,
    is_wrong,
    marked,
    shown_checks,
    side_by_side,
)
from schemas.evaluation import MAX_BEFORE, MAX_PAGES, ListedRun, NewCase, RunFigure, RunId
from schemas.outcome import OutcomeSource
from schemas.query import Became, Source

# Units of the SVG's view box; the browser stretches it to the width of the page.
WIDTH = 700
HEIGHT = 160
LINE = 3  # width of an interval
GAP = 0.3  # share of a bar's slot that stays empty


@dataclass(frozen=True)
class Rect:
    """A part of a bar; `kind` is its class in the style sheet."""

    kind: str
    x: float
    y: float
    width: float
    height: float


def shares(columns: Sequence[tuple[float, float, float]]) -> list[Rect]:
    """Bars for shares between 0 and 1, each with its interval as a line: (share, low, high). 1 fills the chart."""
    slot = WIDTH / max(len(columns), 1)
    made = []
    for n, (share, low, high) in enumerate(columns):
        left, width = slot * (n + GAP / 2), slot * (1 - GAP)
        made.append(
            Rect("answered", round(left, 1), round(HEIGHT * (1 - share), 1), round(width, 1), round(HEIGHT * share, 1))
        )
        tall = max(HEIGHT * (high - low), LINE)
        made.append(
            Rect("interval", round(left + width / 2 - LINE / 2, 1), round(HEIGHT * (1 - high), 1), LINE, round(tall, 1))
        )
    return made


def bars(columns: Sequence[Sequence[tuple[str, int]]]) -> list[Rect]:
    """A stacked bar for each column: its parts from the bottom up, (kind, count). The highest bar fills the chart."""
    top = max((sum(count for _, count in parts) for parts in columns), default=0) or 1
    slot = WIDTH / max(len(columns), 1)
    made = []
    for n, parts in enumerate(columns):
        y = float(HEIGHT)
        for kind, count in parts:
            height = HEIGHT * count / top
            y -= height
            if count:
                left = slot * (n + GAP / 2)
                made.append(Rect(kind, round(left, 1), round(y, 1), round(slot * (1 - GAP), 1), round(height, 1)))
    return made


LISTED = 50  # cases on a page
TREND = 12  # runs in a chart
BADGES = {"lost": "bad", "wrong": "fair", "gained": "good", "other": "calm", "same": ""}

Id = Annotated[RunId, Path()]
Skip = Annotated[int, Query(ge=0, le=10_000)]

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)
MAX_FORM = 256 * 1024  # bytes


@router.get("/evaluations")
async def list_runs(
    view: OnSite, dataset: Annotated[str, Query(max_length=200)] = "", done: Literal["", "removed"] = ""
) -> Response:
    """Runs by dataset. The dataset with the newest run is first, and in each dataset the newest run."""
    runs = named(await view.edge.ports.evaluations.of_site(view.site, dataset or None), view.caller)
    by_dataset: dict[str, list[ListedRun]] = {}
    for run in runs:
        by_dataset.setdefault(run.dataset, []).append(run)
    return view.page(
        "evaluations.html",
        datasets=by_dataset,
        charts={name: _trend(some) for name, some in by_dataset.items()},
        trend=TREND,
        measures={name: _measures(some) for name, some in by_dataset.items()},
        whole=WHOLE,
        only=dataset,
        done=done,
    )


@router.get("/evaluations/compare")
async def compare_runs(view: OnSite, before: RunId, after: RunId, skip: Skip = 0) -> Response:
    """Two runs side by side. Cases that got worse are first; differences between the answers are marked."""
    one = await run_of(view.edge.ports, view.site, before)
    other = await run_of(view.edge.ports, view.site, after)
    paired = await asyncio.to_thread(side_by_side, one, other, MARGIN)
    shown = paired.cases[skip : skip + LISTED]
    return view.page(
        "evaluation_pair.html",
        before=one,
        after=other,
        paired=paired,
        checks=shown_checks(paired.comparison) if paired.comparison else [],
        cases=await asyncio.to_thread(_marked, shown),
        counts={change: sum(each.change == change for each in paired.cases) for change in ORDER},
        badges=BADGES,
        skip=skip,
        listed=LISTED,
    )


@router.get("/evaluations/{run}")
async def show_run(view: OnSite, run: Id, skip: Skip = 0) -> Response:
    """The figures of a run, and its cases, failures first."""
    [found] = named([await run_of(view.edge.ports, view.site, run)], view.caller)
    results = failures_first(found.results)
    others = [
        each
        for each in await view.edge.ports.evaluations.of_site(view.site, found.dataset)
        if each.fingerprint == found.fingerprint and each.id != found.id
    ]
    return view.page(
        "evaluation.html",
        run=found,
        others=others,
        results=results[skip : skip + LISTED],
        wrong=is_wrong,
        whole=WHOLE,
        gated=GATED,
        skip=skip,
        listed=LISTED,
    )


@router.post("/evaluations/{run}/remove")
async def remove_run(view: Editor, run: Id) -> Response:
    await confirmed(view, "to delete the run")
    async with view.act("evaluations.remove", run):
        if not await view.edge.ports.evaluations.remove(view.site, run):
            raise unknown(view.site, run)
    return view.to("evaluations", done="removed")


def _measures(runs: Sequence[ListedRun]) -> list[str]:
    """The gated measures that any of these runs has."""
    return [name for name in GATED if any(name in run.groups.get(WHOLE, {}) for run in runs)]


def _trend(runs: Sequence[ListedRun]) -> tuple[str, list[object], list[ListedRun]]:
    """Measure, bars and runs of the trend, the oldest run first. Only runs of the same cases as the newest count."""
    same = [run for run in runs if run.fingerprint == runs[0].fingerprint][:TREND][::-1]
    measure = next((name for name in ("right", *GATED) if all(name in run.groups.get(WHOLE, {}) for run in same)), "")
    if not measure or len(same) < 2:
        return "", [], []
    figures: list[RunFigure] = [run.groups[WHOLE][measure] for run in same]
    return measure, [*shares([(each.mean, each.low, each.high) for each in figures])], same


def _marked(cases: Sequence[PairedCase]) -> list[tuple[PairedCase, object, object]]:
    return [(each, *marked(each.before.answer, each.after.answer)) for each in cases]


@router.post("/case")
async def make_case(view: Editor) -> Response:
    """The case as a file. A case that expects a refusal or a courtesy has neither pages nor a reference answer."""
    form = await form_of(view, limit=MAX_FORM)
    given = {name: form[name] for name in ("question", "lang", "expect", "answer", "note", "id") if form.get(name)}
    listed = {
        "history": [form[f"before{n}"] for n in range(1, MAX_BEFORE + 1) if form.get(f"before{n}")],
        "pages": [form[f"page{n}"] for n in range(1, MAX_PAGES + 1) if form.get(f"page{n}")],
        "tags": [tag.strip() for tag in form.get("tags", "").split(",") if tag.strip()],
    }
    if given.get("expect", "answer") != "answer":
        given.pop("answer", None)
        listed["pages"] = []
    new = validated(NewCase, given | listed)
    return file_of(view.site, new, "yaml" if form.get("format") == "yaml" else "ndjson")


def pages_of(found: Iterable[Source | OutcomeSource]) -> list[tuple[str, str, str, bool]]:
    """(id, title, language, cited) of each page of these sources, cited pages first."""
    pages: dict[str, tuple[str, str, str, bool]] = {}
    for each in sorted(found, key=lambda each: not each.cited):
        pages.setdefault(each.page_id, (each.page_id, each.title, each.lang, each.cited))
    return list(pages.values())[:MAX_PAGES]


def expected(became: Became) -> str:
    """The `expect` of a case for which this outcome is right."""
    return {"refused": "refuse", "courtesy": "courtesy"}.get(became, "answer")
