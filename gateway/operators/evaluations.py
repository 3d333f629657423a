"""Published runs of evaluations over HTTP: for everybody who looks after a site, and for CI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeVar

from fastapi import APIRouter, Path, Query, Request

from gateway.edge.auth import Caller
from gateway.edge.bodies import parse, read_body
from gateway.edge.edge import MayEdit, MayView, TheEdge
from gateway.edge.openapi import request_body
from gateway.ports import Ports
from pipelines.evaluate.publication import UnknownRun, published
from schemas.evaluation import ListedRun, NewRun, PublishedRun, RunId, RunList

MAX_RUN = 12 * 2**20  # bytes: 2,000 cases with answers of 2,000 characters, some of them escaped

Run = TypeVar("Run", bound=ListedRun)
Id = Annotated[RunId, Path()]

router = APIRouter(prefix="/v1/admin/sites/{site}/evaluations", tags=["operations"])


@router.get("")
async def list_evaluations(
    site: str,
    caller: MayView,
    edge: TheEdge,
    dataset: Annotated[str | None, Query(max_length=200, description="By its name; default: all.")] = None,
) -> RunList:
    """The published runs with their figures, the newest first; without their cases."""
    return RunList(runs=tuple(named(await edge.ports.evaluations.of_site(site, dataset), caller)))


@router.post("", status_code=201, openapi_extra=request_body(NewRun))
async def publish_evaluation(site: str, caller: MayEdit, edge: TheEdge, request: Request) -> ListedRun:
    """Publish a run of `pagewire eval run`, as `--publish` does: its figures and a part of each case, 2,000 at most.
    The same run published twice is kept once."""
    new = parse(NewRun, await read_body(request, MAX_RUN))
    run = published(new, site, caller.name, edge.ports.now())
    async with edge.act(caller, "evaluations.publish", site, run.id):
        await edge.ports.evaluations.put(run)
    return ListedRun.model_validate(run.model_dump(exclude={"results"}))


@router.get("/{run}")
async def show_evaluation(site: str, run: Id, caller: MayView, edge: TheEdge) -> PublishedRun:
    """One run with its cases."""
    return named([await run_of(edge.ports, site, run)], caller)[0]


@router.delete("/{run}", status_code=204)
async def remove_evaluation(site: str, run: Id, caller: MayEdit, edge: TheEdge) -> None:
    """Take a run away. What it was made of stays where `pagewire eval run` has kept it."""
    async with edge.act(caller, "evaluations.remove", site, run):
        if not await edge.ports.evaluations.remove(site, run):
            raise unknown(site, run)


async def run_of(ports: Ports, site: str, id: str) -> PublishedRun:
    """Raises: UnknownRun, Retryable."""
    found = await ports.evaluations.get(site, id)
    if found is None:
        raise unknown(site, id)
    return found


def unknown(site: str, id: str) -> UnknownRun:
    """It is not there."""
    return UnknownRun(f"site {site} has no published run {id}")


def named(runs: Sequence[Run], caller: Caller) -> list[Run]:
    """Who published them is told to those who may read the audit log, and to themselves."""
    return [
        run if caller.operates or run.published_by == caller.name else run.model_copy(update={"published_by": ""})
        for run in runs
    ]
