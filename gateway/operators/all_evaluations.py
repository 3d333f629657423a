"""The same published runs without a site in the path: of one that the query names, of the key's own, or of all."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request

from gateway.edge.auth import Caller
from gateway.edge.edge import Edge, MayEditSomewhere, MayViewSomewhere, TheEdge, allow
from gateway.edge.openapi import request_body
from gateway.edge.problems import FieldProblem, Problem
from gateway.operators.evaluations import Id, named, publish_evaluation, remove_evaluation, show_evaluation
from pipelines.evaluate.publication import UnknownRun
from schemas.access_key import Scope
from schemas.evaluation import ListedRun, NewRun, PublishedRun, RunList

router = APIRouter(prefix="/v1/admin/evaluations", tags=["operations"])

OfSite = Annotated[str | None, Query(description="Default: the key's, or all.")]


@router.get("")
async def list_all_evaluations(
    caller: MayViewSomewhere,
    edge: TheEdge,
    site: OfSite = None,
    dataset: Annotated[str | None, Query(max_length=200, description="By its name; default: all.")] = None,
) -> RunList:
    """The published runs of a site or of all that the key may see, the newest first; without their cases."""
    sites = _sites(edge, caller, "view", site)
    found = await asyncio.gather(*(edge.ports.evaluations.of_site(each, dataset) for each in sites))
    runs = sorted((run for some in found for run in some), key=lambda run: (run.begun, run.id), reverse=True)
    return RunList(runs=tuple(named(runs, caller)))


@router.post("", status_code=201, openapi_extra=request_body(NewRun))
async def publish_evaluation_of_site(
    caller: MayEditSomewhere, edge: TheEdge, request: Request, site: OfSite = None
) -> ListedRun:
    """As `POST /v1/admin/sites/{site}/evaluations`; `site` is needed with a key of all sites."""
    sites = _sites(edge, caller, "edit", site)
    if len(sites) != 1:
        missing = FieldProblem(field="site", code="missing", message="the key is of all sites: name one")
        raise Problem(422, "invalid", f"site: {missing.message}", errors=[missing])
    return await publish_evaluation(sites[0], caller, edge, request)


@router.get("/{run}")
async def show_any_evaluation(run: Id, caller: MayViewSomewhere, edge: TheEdge, site: OfSite = None) -> PublishedRun:
    """One run with its cases."""
    return await show_evaluation(await _site_of(edge, run, _sites(edge, caller, "view", site)), run, caller, edge)


@router.delete("/{run}", status_code=204)
async def remove_any_evaluation(run: Id, caller: MayEditSomewhere, edge: TheEdge, site: OfSite = None) -> None:
    """Take a run away."""
    await remove_evaluation(await _site_of(edge, run, _sites(edge, caller, "edit", site)), run, caller, edge)


def _sites(edge: Edge, caller: Caller, scope: Scope, site: str | None) -> list[str]:
    """Whose runs are meant. Raises: UnknownSite. Problem: 403."""
    wanted = site or caller.site
    if wanted is None:
        return sorted(edge.settings.sites)
    allow(caller, scope, wanted)
    edge.settings.site(wanted)
    return [wanted]


async def _site_of(edge: Edge, run: str, sites: list[str]) -> str:
    """Whose run it is: a run has its id on one site alone. Raises: UnknownRun, Retryable."""
    if len(sites) == 1:  # where it is not there either, that is said, and noted, as ever
        return sites[0]
    for site in sites:
        if await edge.ports.evaluations.get(site, run) is not None:
            return site
    raise UnknownRun(f"there is no published run {run}")
