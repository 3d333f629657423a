"""For those who run it: is it alive, can it work, how is it doing."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from gateway.edge.bounds import bounded
from gateway.edge.edge import MayAdmin, TheEdge
from gateway.edge.problems import Problem
from schemas.http import SystemStatus

router = APIRouter(tags=["operations"])


class Health(BaseModel):
    """This process answers."""

    status: str = "ok"


class Readiness(BaseModel):
    """Whether saves and questions can be worked on; `problems` says per part what is wrong."""

    ready: bool
    problems: dict[str, str]


@router.get("/healthz")
@bounded("memory")
async def healthz() -> Health:
    """Alive: the event loop turns. Says nothing of Kafka and Elasticsearch, so that their outage restarts nobody."""
    return Health()


@router.get("/readyz", response_model=Readiness, responses={503: {"model": Readiness}})
@bounded("kept")
async def readyz(edge: TheEdge) -> Response:
    """Ready: Kafka, Elasticsearch and the stages can be worked with. They are asked at most once a second."""
    ready, problems = await edge.readiness.get()
    body = Readiness(ready=ready, problems=problems).model_dump()
    return JSONResponse(body, status_code=200 if ready else 503)


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
@bounded("kept")
async def metrics(edge: TheEdge, request: Request) -> Response:
    """Counters of this process, and gauges of the whole pipeline, in Prometheus' text format; in OpenMetrics, with
    traces as exemplars, for who accepts `application/openmetrics-text`. Written at most once a second.

    With `metrics_port` they are there alone, and not here.
    """
    if edge.settings.metrics_port is not None:
        raise Problem(404, "not-found", "metrics are at the port of `metrics_port`")
    text, kind = await edge.exposition.get(", ".join(request.headers.getlist("accept")))
    return Response(text, headers={"Content-Type": kind})


@router.get("/v1/admin/status")
async def status(
    caller: MayAdmin, edge: TheEdge, site: Annotated[str | None, Query(description="Of the sites, this alone.")] = None
) -> SystemStatus:
    """Lag, rate, freshness and dead letters, per stage and site."""
    if site is not None:
        edge.settings.site(site)
    return await edge.ports.status.status(None if site is None else [site])
