"""Evaluations that the console starts: the dataset, the settings to compare, the cost and the progress.

GET evaluations/new ─▶ POST, do=plan ─▶ the cost ─▶ POST, do=start ─▶ evaluations/run, which reloads itself
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, get_args

from fastapi import APIRouter, Response
from pydantic import ValidationError

from gateway.console.view import ConsoleRoute, Editor, OnSite, View, form_of
from gateway.edge.problems import Problem
from gateway.operators.evaluation_runs import (
    evaluation_of,
    last_evaluation,
    list_datasets,
    start_evaluation,
    stop_evaluation,
)
from gateway.operators.trials import list_choices
from pipelines.evaluate.comparison import GATED
from pipelines.evaluate.experiments.grid import BASE
from pipelines.evaluate.judged.registry import JUDGED
from pipelines.runtime.errors import Permanent
from schemas.base import problems
from schemas.evaluation import MAX_DATASET, EvaluationOrder, EvaluationPlan
from schemas.flow import Retriever
from schemas.trial import TrialStrategy

MAX_FORM = 3 * MAX_DATASET  # bytes: percent-encoded
AGAIN = 3  # seconds until the page reloads while an evaluation runs
BADGES = {"running": "fair", "broken-off": "bad", "failed": "bad", "done": "calm"}
CHOSEN: Mapping[str, tuple[str, ...]] = {"retriever": get_args(Retriever), "strategy": get_args(TrialStrategy)}
NUMBERS = ("hits", "shots", "self_consistency")  # fields with several numbers, separated by commas

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)


@router.get("/evaluations/new")
async def show_form(view: Editor) -> Response:
    return await _form(view, {"corrections": "yes"})


@router.post("/evaluations/new")
async def take_order(view: Editor) -> Response:
    """`do=plan` shows the cost, `do=start` starts the evaluation."""
    form = await form_of(view, limit=MAX_FORM)
    try:
        made = await evaluation_of(view.edge, view.caller, view.site, _order(form))
        if form.get("do") != "start":
            plan = await asyncio.to_thread(lambda: made.plan)
            return await _form(view, form, plan=plan)
        await start_evaluation(view.edge, view.caller, made, str(view.request.base_url), "console")
    except ValidationError as err:
        return await _form(view, form, refused=problems(err))
    except (Permanent, Problem) as err:
        return await _form(view, form, refused=getattr(err, "detail", "") or str(err))
    return view.to("evaluations/run")


@router.get("/evaluations/run")
async def show_progress(view: OnSite) -> Response:
    """The running evaluation, or the last one."""
    last = await last_evaluation(view.edge, view.site)
    shown = [name for name in GATED if last.run and any(name in arm.figures for arm in last.run.arms)]
    return view.page(
        "evaluation_run.html",
        again=AGAIN if last.state == "running" else 0,
        run=last.run,
        state=last.state,
        measures=shown,
        badges=BADGES,
        base=BASE,
    )


@router.post("/evaluations/run/stop")
async def stop_run(view: Editor) -> Response:
    await form_of(view)
    await stop_evaluation(view.edge, view.caller, view.site, "console")
    return view.to("evaluations/run")


async def _form(
    view: View, form: Mapping[str, str], *, plan: EvaluationPlan | None = None, refused: str = ""
) -> Response:
    datasets, choices = await asyncio.gather(
        list_datasets(view.site, view.caller, view.edge), list_choices(view.site, view.caller, view.edge)
    )
    judge = view.edge.settings.judge_of_answers
    return view.page(
        "evaluation_new.html",
        form=form,
        datasets=datasets,
        chosen=CHOSEN,
        numbers=NUMBERS,
        models=choices.models,
        judge=judge,
        judged=[measure.name for measure in JUDGED],
        plan=plan,
        refused=refused,
    )


def _order(form: Mapping[str, str]) -> EvaluationOrder:
    """Raises: ValidationError."""
    vary: dict[str, Any] = {
        name: [value for value in values if form.get(f"{name}-{value}")] for name, values in CHOSEN.items()
    }
    vary |= {name: [_number(one) for one in form.get(name, "").split(",") if one.strip()] for name in NUMBERS}
    if form.get("think"):
        vary["think"] = [False, True]
    base: dict[str, Any] = {name: values[0] for name, values in vary.items() if len(values) == 1}
    if form.get("short"):
        base["short"] = True
    if form.get("model"):
        base["model"] = form["model"]
    if form.get("temperature", "").strip():
        base["temperature"] = form["temperature"].strip()
    return EvaluationOrder.model_validate(
        {
            "dataset": form.get("dataset", ""),
            "content": form.get("content", "").replace("\r\n", "\n"),
            "corrections": form.get("corrections") == "yes",
            "base": base,
            "vary": {name: values for name, values in vary.items() if len(values) > 1},
            "judge": [measure.name for measure in JUDGED if form.get(f"judge-{measure.name}")],
            **{name: form[name] for name in ("calls", "judge_calls", "note") if form.get(name, "").strip()},
        }
    )


def _number(text: str) -> int | str:
    """The number, or the text itself: the grid's validation then names it."""
    return int(text) if text.strip().isdecimal() else text.strip()
