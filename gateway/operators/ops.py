"""For operators: health, status, metrics, the audit log, the switch of a site's chat, and the list of pages."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from gateway.edge.auth import Caller
from gateway.edge.bodies import GivenLabels, parse, read_body
from gateway.edge.bounds import bounded
from gateway.edge.edge import Edge, MayAdmin, MayView, MayViewSomewhere, TheEdge
from gateway.edge.openapi import request_body
from gateway.edge.problems import Problem
from schemas.audit_log import AuditLogPage, AuditLogQuery, Via
from schemas.chat_switch import ChatList, ChatOrder, ChatState
from schemas.http import LabelList, PageList, SystemStatus
from schemas.labels import have_labels, label_tokens

router = APIRouter(tags=["operations"])
MAX_ORDER = 1_000  # bytes
CHAT = "/v1/admin/sites/{site}/chat"
MOST_LISTED = 1_000


class Health(BaseModel):
    """This process responds."""

    status: str = "ok"


class Readiness(BaseModel):
    """Whether saves and questions can be processed; `problems` says per part what is wrong."""

    ready: bool
    problems: dict[str, str]


@router.get("/healthz")
@bounded("memory")
async def healthz() -> Health:
    """Alive: the event loop runs. Kafka and Elasticsearch are not checked, so that their outage causes no restart."""
    return Health()


@router.get("/readyz", response_model=Readiness, responses={503: {"model": Readiness}})
@bounded("kept")
async def readyz(edge: TheEdge) -> Response:
    """Ready: Kafka, Elasticsearch and the stages are available. They are checked at most once a second."""
    ready, problems = await edge.readiness.get()
    body = Readiness(ready=ready, problems=problems).model_dump()
    return JSONResponse(body, status_code=200 if ready else 503)


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
@bounded("kept")
async def metrics(edge: TheEdge, request: Request) -> Response:
    """Counters of this process, and gauges of the whole pipeline, in Prometheus' text format; in OpenMetrics, with
    traces as exemplars, for clients that accept `application/openmetrics-text`. Written at most once a second.

    With `metrics_port` they are served only there.
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


@router.get("/v1/admin/audit-log")
async def audit_log(caller: MayAdmin, edge: TheEdge, wanted: Annotated[AuditLogQuery, Query()]) -> AuditLogPage:
    """Who changed what, when and with what outcome: keys, dead letters, examples, rebuilds, repairs, erasures; the
    newest first. An entry is listed within two seconds."""
    return await edge.ports.audit_log.find(wanted, wanted.limit, wanted.after)


@router.get("/v1/admin/chat")
async def list_chats(caller: MayViewSomewhere, edge: TheEdge) -> ChatList:
    """Whether the chat is on, for each site that the key may see, as far as this gateway knows."""
    sites = sorted(edge.settings.sites) if caller.site is None else [caller.site]
    return ChatList(chats=tuple(map(edge.ports.chat.state, sites)))


@router.get(CHAT)
async def show_chat(site: str, caller: MayView, edge: TheEdge) -> ChatState:
    """Whether the site's chat is on, as far as this gateway knows."""
    return edge.ports.chat.state(site)


@router.put(CHAT, openapi_extra=request_body(ChatOrder))
async def switch_chat(site: str, caller: MayAdmin, edge: TheEdge, request: Request) -> ChatState:
    """Switch the site's chat off, or on again. This gateway follows at once, all others and the workers within ten
    seconds; answers that are being written end. The state is stored."""
    order = parse(ChatOrder, await read_body(request, MAX_ORDER))
    return await set_chat(edge, caller, site, on=order.on)


async def set_chat(edge: Edge, caller: Caller, site: str, *, on: bool, via: Via = "http") -> ChatState:
    """Switch, and note the caller in the audit log. Raises: ChatOffInFile, Retryable."""
    async with edge.act(caller, "chat.on" if on else "chat.off", site, via=via):
        return await edge.ports.chat.throw(site, on=on, by=caller.name)


@router.get("/v1/admin/sites/{site}/pages")
async def list_pages(
    site: str,
    caller: MayView,
    edge: TheEdge,
    labels: GivenLabels,
    url: Annotated[str, Query(max_length=2_000, description="Only pages of this address; with or without host.")] = "",
    after: Annotated[str, Query(max_length=4_000, description="`next` of the answer before.")] = "",
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 100,
) -> PageList:
    """Pages that visitors can find, by their ids. Pages for access groups are listed for keys that have one of them."""
    if url:
        at = await edge.ports.indexed.at(site, url, groups=caller.groups)
        return PageList(pages=tuple(page for page in at if have_labels(label_tokens(page.labels), labels)), next=None)
    return await edge.ports.indexed.pages(site, groups=caller.groups, after=after, limit=limit, labels=labels)


@router.get("/v1/admin/sites/{site}/labels")
async def list_labels(site: str, caller: MayView, edge: TheEdge) -> LabelList:
    """The labels of the pages that visitors can find, with the number of pages, up to 500. Pages for access groups are
    counted for keys that have one of them."""
    return await edge.ports.indexed.labels(site, caller.groups)
