"""Published runs of evaluations over HTTP, of one site or of all; and cases: an answer that was looked at
becomes a line of a dataset's file.

Datasets are files on the evaluator's machine; the gateway stores none of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, TypeVar

from fastapi import APIRouter, Header, Path, Query, Request, Response

from gateway.edge.auth import Caller
from gateway.edge.bodies import parse, read_body
from gateway.edge.edge import Edge, MayEdit, MayEditSomewhere, MayView, MayViewSomewhere, TheEdge, allow
from gateway.edge.openapi import request_body
from gateway.edge.problems import FieldProblem, Problem
from gateway.ports import Ports
from pipelines.evaluate.dataset import Case, appendable
from pipelines.evaluate.publication import UnknownRun, published
from schemas.access_key import Scope
from schemas.evaluation import CaseFormat, ListedRun, NewCase, NewRun, PublishedRun, RunId, RunList

MAX_RUN = 12 * 2**20  # bytes: 2,000 cases with answers of 2,000 characters, some of them escaped

Run = TypeVar("Run", bound=ListedRun)
Id = Annotated[RunId, Path()]

router = APIRouter(prefix="/v1/admin", tags=["operations"])
OfSite = Annotated[str | None, Query(description="Default: the key's, or all.")]
MAX_CASE = 256 * 1024  # bytes: a question, those before it, and an answer, escaped
MEDIA_TYPES: dict[CaseFormat, str] = {"ndjson": "application/x-ndjson", "yaml": "application/yaml"}
SHAPES = {MEDIA_TYPES["ndjson"]: "string", MEDIA_TYPES["yaml"]: "array"}
ACCEPTED: dict[str, CaseFormat] = {kind: name for name, kind in MEDIA_TYPES.items()}


@router.get("/sites/{site}/evaluations")
async def list_evaluations(
    site: str,
    caller: MayView,
    edge: TheEdge,
    dataset: Annotated[str | None, Query(max_length=200, description="By its name; default: all.")] = None,
) -> RunList:
    """The published runs with their figures, the newest first; without their cases."""
    return RunList(runs=tuple(named(await edge.ports.evaluations.of_site(site, dataset), caller)))


@router.post("/sites/{site}/evaluations", status_code=201, openapi_extra=request_body(NewRun))
async def publish_evaluation(site: str, caller: MayEdit, edge: TheEdge, request: Request) -> ListedRun:
    """Publish a run of `pagewire eval run`, as `--publish` does: its figures and a part of each case, 2,000 at most.
    The same run published twice is kept once."""
    new = parse(NewRun, await read_body(request, MAX_RUN))
    run = published(new, site, caller.name, edge.ports.now())
    async with edge.act(caller, "evaluations.publish", site, run.id):
        await edge.ports.evaluations.put(run)
    return ListedRun.model_validate(run.model_dump(exclude={"results"}))


@router.get("/sites/{site}/evaluations/{run}")
async def show_evaluation(site: str, run: Id, caller: MayView, edge: TheEdge) -> PublishedRun:
    """One run with its cases."""
    return named([await run_of(edge.ports, site, run)], caller)[0]


@router.delete("/sites/{site}/evaluations/{run}", status_code=204)
async def remove_evaluation(site: str, run: Id, caller: MayEdit, edge: TheEdge) -> None:
    """Take a run away. The files of `pagewire eval run` stay."""
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
    """With the publisher's name for keys that may read the audit log, and for the publisher."""
    return [
        run if caller.operates or run.published_by == caller.name else run.model_copy(update={"published_by": ""})
        for run in runs
    ]


@router.get("/evaluations")
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


@router.post("/evaluations", status_code=201, openapi_extra=request_body(NewRun))
async def publish_evaluation_of_site(
    caller: MayEditSomewhere, edge: TheEdge, request: Request, site: OfSite = None
) -> ListedRun:
    """As `POST /v1/admin/sites/{site}/evaluations`; `site` is needed with a key of all sites."""
    sites = _sites(edge, caller, "edit", site)
    if len(sites) != 1:
        missing = FieldProblem(field="site", code="missing", message="the key is of all sites: name one")
        raise Problem(422, "invalid", f"site: {missing.message}", errors=[missing])
    return await publish_evaluation(sites[0], caller, edge, request)


@router.get("/evaluations/{run}")
async def show_any_evaluation(run: Id, caller: MayViewSomewhere, edge: TheEdge, site: OfSite = None) -> PublishedRun:
    """One run with its cases."""
    return await show_evaluation(await _site_of(edge, run, _sites(edge, caller, "view", site)), run, caller, edge)


@router.delete("/evaluations/{run}", status_code=204)
async def remove_any_evaluation(run: Id, caller: MayEditSomewhere, edge: TheEdge, site: OfSite = None) -> None:
    """Take a run away."""
    await remove_evaluation(await _site_of(edge, run, _sites(edge, caller, "edit", site)), run, caller, edge)


def _sites(edge: Edge, caller: Caller, scope: Scope, site: str | None) -> list[str]:
    """The sites of a request. Raises: UnknownSite. Problem: 403."""
    wanted = site or caller.site
    if wanted is None:
        return sorted(edge.settings.sites)
    allow(caller, scope, wanted)
    edge.settings.site(wanted)
    return [wanted]


async def _site_of(edge: Edge, run: str, sites: list[str]) -> str:
    """The site of a run; its id is unique. Raises: UnknownRun, Retryable."""
    if len(sites) == 1:  # if it is not there either, that is reported and audited as usual
        return sites[0]
    for site in sites:
        if await edge.ports.evaluations.get(site, run) is not None:
            return site
    raise UnknownRun(f"there is no published run {run}")


@router.post(
    "/sites/{site}/cases",
    response_class=Response,
    responses={200: {"content": {kind: {"schema": {"type": shape}} for kind, shape in SHAPES.items()}}},
    openapi_extra=request_body(NewCase),
)
async def make_case(
    site: str,
    caller: MayEdit,
    edge: TheEdge,
    request: Request,
    format: Annotated[CaseFormat | None, Query(description="Goes before `Accept`; default: `ndjson`.")] = None,
    accept: Annotated[str, Header()] = "",
) -> Response:
    """What a case of an evaluation looks like in a dataset's file: a line of NDJSON, or an entry of YAML's list.

    Append it to the file. It is not stored here.
    """
    new = parse(NewCase, await read_body(request, MAX_CASE))
    return file_of(site, new, format or ACCEPTED.get(accept.split(";")[0].strip().lower(), "ndjson"))


def file_of(site: str, new: NewCase, format: CaseFormat) -> Response:
    """The case as a file to keep."""
    told = new.model_dump(exclude_defaults=True, exclude={"answer"})
    case = Case.model_validate(told | {"site": site} | ({"answers": new.answer} if new.answer else {}))
    return Response(
        appendable(case, f".{format}"),
        media_type=MEDIA_TYPES[format],
        headers={"Content-Disposition": f'attachment; filename="case.{format}"'},
    )
