"""Evaluations that a gateway runs: plan with costs, start, progress, stop.

POST :plan ─▶ cases and calls          POST ─▶ asked and judged in the background ─▶ published runs
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request

from gateway.edge.auth import Caller
from gateway.edge.bodies import parse, read_body
from gateway.edge.edge import Edge, MayEdit, MayView, TheEdge
from gateway.edge.openapi import request_body
from gateway.edge.problems import Problem
from gateway.operators.corrections import corrections
from gateway.operators.trials import compared, list_choices
from pipelines.evaluate.dataset import NDJSON, YAML, BadDataset, Dataset, corrected_cases, load_dataset
from pipelines.evaluate.ordered import Note, OrderedEvaluation, OrderedWork
from pipelines.evaluate.run import askable
from pipelines.operate.site_runs import EvaluationRun, LastEvaluation
from pipelines.runtime.errors import Permanent
from schemas.audit_log import Via
from schemas.evaluation import MAX_DATASET, DatasetChoice, DatasetList, EvaluationOrder, EvaluationPlan
from schemas.trial import TrialOrder, TrialResult, TrialSettings
from sites.content import DATASETS as SAMPLE_DATASETS
from wiring.evaluating import judge_model

MAX_ORDER = 2 * MAX_DATASET  # bytes
SAMPLE_SITE = "demo"

Site = Annotated[str, Path()]

router = APIRouter(prefix="/v1/admin/sites/{site}", tags=["operations"])


class TrialRefused(Permanent):
    """The gateway refuses a question of an evaluation, as it would refuse a trial."""

    code = "trial-refused"


@router.get("/evaluation-datasets")
async def list_datasets(site: str, caller: MayView, edge: TheEdge) -> DatasetList:
    """The datasets that an evaluation can be ordered of by name: the files of the site's folder `datasets`."""
    found = await asyncio.to_thread(_datasets, edge, site)
    corrected = corrected_cases(await corrections(edge).list(site, caller.groups))
    choices = (DatasetChoice(name=name, cases=len(askable(each, site))) for name, each in found.items())
    return DatasetList(datasets=tuple(choices), corrections=len(corrected.cases))


@router.post("/evaluation-run:plan", openapi_extra=request_body(EvaluationOrder))
async def plan_evaluation(site: str, caller: MayEdit, edge: TheEdge, request: Request) -> EvaluationPlan:
    """The questions and the possible costs of an order. No question is asked."""
    return (await evaluation_of(edge, caller, site, parse(EvaluationOrder, await read_body(request, MAX_ORDER)))).plan


@router.get("/evaluation-run")
async def show_evaluation_run(site: str, caller: MayView, edge: TheEdge) -> LastEvaluation:
    """The running evaluation, or the last one, started at any gateway.

    An arm that is finished is published: `arms` has its figures and the id of its run. A run whose gateway died is
    `broken-off`, half a minute later.
    """
    return await last_evaluation(edge, site)


@router.post("/evaluation-run", status_code=202, openapi_extra=request_body(EvaluationOrder))
async def start_evaluation_run(site: str, caller: MayEdit, edge: TheEdge, request: Request) -> LastEvaluation:
    """Start, and do not wait for the end; 409 while one of the site is running. Its questions are trials: they are not
    logged or counted, but their tokens count for `daily_tokens`."""
    order = parse(EvaluationOrder, await read_body(request, MAX_ORDER))
    made = await evaluation_of(edge, caller, site, order)
    return LastEvaluation(state="running", run=await start_evaluation(edge, caller, made, str(request.base_url)))


@router.delete("/evaluation-run", status_code=202)
async def stop_evaluation_run(site: str, caller: MayEdit, edge: TheEdge) -> LastEvaluation:
    """Stop the running evaluation, within five seconds. Arms that are finished stay published."""
    await stop_evaluation(edge, caller, site)
    return await last_evaluation(edge, site)


async def last_evaluation(edge: Edge, site: str) -> LastEvaluation:
    """Raises: Retryable."""
    run = await edge.ports.evaluation_runs.last(site)
    return LastEvaluation(state=run.state(edge.ports.now()) if run else None, run=run)


async def evaluation_of(edge: Edge, caller: Caller, site: str, order: EvaluationOrder) -> OrderedEvaluation:
    """Raises: WrongUse: the order is invalid. Retryable."""
    choices = await list_choices(site, caller, edge)
    said = await corrections(edge).list(site, caller.groups) if order.corrections else None
    file = None
    if order.dataset and not order.content.strip():
        found = await asyncio.to_thread(_datasets, edge, site)
        if order.dataset not in found:
            raise BadDataset(f"there is no dataset {order.dataset}; there are: {', '.join(found) or '(none)'}")
        file = found[order.dataset]
    if order.judge_model and order.judge_model not in (*choices.models, edge.settings.judge_of_answers):
        raise Problem(422, "invalid", f"judge_model: none of {', '.join(choices.models) or '(none)'}")
    return await asyncio.to_thread(
        OrderedEvaluation.of, order, choices, said, file, edge.settings.judge_of_answers or ""
    )


async def start_evaluation(
    edge: Edge, caller: Caller, made: OrderedEvaluation, url: str, via: Via = "http"
) -> EvaluationRun:
    """Start; noted in the audit log. Raises: EvaluationRunning, Retryable."""
    runs, site = edge.ports.evaluation_runs, made.choices.site
    began_at, until = runs.claim()
    run = EvaluationRun(site=site, by=caller.name, began_at=began_at, until=until, plan=made.plan, note=made.order.note)

    async def work(note: Note) -> dict[str, Any]:
        async with AsyncExitStack() as stack:
            model = await stack.enter_async_context(judge_model(edge.settings, made.judge)) if made.judge else None
            trials = GatewayTrials(edge, caller, site)
            ports = edge.ports
            return await OrderedWork(made, trials, model, ports.evaluations, url, caller.name, ports.now, note).done()

    async with edge.act(caller, "evaluations.start", site, made.dataset.name[:200], via):
        return await runs.start(run, work)


async def stop_evaluation(edge: Edge, caller: Caller, site: str, via: Via = "http") -> None:
    """Noted in the audit log. Raises: Retryable."""
    async with edge.act(caller, "evaluations.stop", site, "", via):
        await edge.ports.evaluation_runs.stop(site)


class GatewayTrials:
    """This gateway's own trials: pipelines.evaluate.experiments.sweep.Trials."""

    def __init__(self, edge: Edge, caller: Caller, site: str) -> None:
        self._edge = edge
        self._caller = caller
        self._site = site

    async def tried(self, question: str, settings: TrialSettings) -> TrialResult:
        """Raises: Retryable. TrialRefused: the chat is off, or the settings are refused."""
        try:
            order = TrialOrder(question=question, trials=(settings,))
            report = await compared(self._edge, _waits, self._caller, self._site, order)
        except Problem as problem:
            raise TrialRefused(f"{problem.code}: {problem.detail}") from problem
        return report.trials[0]


async def _waits() -> dict[str, Any]:
    """In place of a request's `receive`: never disconnects."""
    await asyncio.Event().wait()
    return {}


def _datasets(edge: Edge, site: str) -> dict[str, Dataset]:
    """By name. A file that is no dataset is left out: `pagewire eval datasets show` says what is wrong with it."""
    folder = edge.settings.site(site).datasets or (SAMPLE_DATASETS if site == SAMPLE_SITE else None)
    found = {}
    for path in sorted(folder.iterdir()) if folder is not None and folder.is_dir() else ():
        if path.suffix in (*YAML, *NDJSON):
            try:
                found[path.stem] = load_dataset(path)
            except BadDataset:
                continue
    return found
