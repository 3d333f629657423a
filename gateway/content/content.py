"""Pages in: what a CMS pushes, and the receipts its editors read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from gateway.content.bulk import STRINGS, accept_lines, body_limit
from gateway.edge.bodies import PAGE_ID, lines, parse, read_body
from gateway.edge.edge import Edge, MayIngest, TheEdge
from gateway.edge.openapi import request_body
from gateway.edge.problems import Problem
from pipelines.ingest.accept import Acceptance, Change, check_size
from schemas.base import GivenLang, PageId, Revision
from schemas.http import AcceptedChange, BulkLine, BulkResult
from schemas.ingest import Receipt
from schemas.page import PageDocument

LONGEST_WAIT = 300.0  # seconds
SUPERSEDED_HEADER = "Pagewire-Superseded"


RECEIPT_TIMEOUT = 10.0  # seconds, where `?wait=searchable` names no `timeout`

router = APIRouter(prefix="/v1/sites/{site}", tags=["content"])

Wait = Annotated[
    Literal["searchable"] | None,
    Query(description="Answer with the receipt once the change is settled: searchable, deleted or failed."),
]
Timeout = Annotated[
    float | None,
    Query(ge=0, le=LONGEST_WAIT, description="Seconds to wait at most; default: 10."),
]
OptionalLang = Annotated[GivenLang | None, Query(description="Default: the site's first language.")]

SETTLED: dict[int | str, dict[str, Any]] = {
    200: {"model": Receipt, "description": "`wait=searchable`: the change is settled; see `state`."}
}


@router.put(
    f"/pages/{PAGE_ID}",
    status_code=202,
    response_model=AcceptedChange,
    responses=SETTLED,
    openapi_extra=request_body(PageDocument),
)
async def put_page(
    site: str,
    page_id: PageId,
    caller: MayIngest,
    edge: TheEdge,
    request: Request,
    wait: Wait = None,
    timeout: Timeout = None,
) -> Response:
    """Save a page: 202 once the change is durable. A change older than what is there is not an error: 202 with
    `Pagewire-Superseded: true`.
    """
    page = parse(PageDocument, await read_body(request, body_limit(edge.settings)), STRINGS)
    if page.id != page_id:
        raise Problem(422, "id-mismatch", "id: not the page id of the path")
    check_size(page, edge.settings.content_limit)
    [acceptance] = await edge.ports.intake.accept(site, [Change("upsert", page)], "push")
    return await _accepted(acceptance, edge, wait, timeout)


@router.delete(f"/pages/{PAGE_ID}", status_code=202, response_model=AcceptedChange, responses=SETTLED)
async def delete_page(
    site: str,
    page_id: PageId,
    caller: MayIngest,
    edge: TheEdge,
    lang: OptionalLang = None,
    revision: Annotated[Revision | None, Query(description="Default: newer than anything before.")] = None,
    wait: Wait = None,
    timeout: Timeout = None,
) -> Response:
    """Delete a page. Deleting a page that does not exist is allowed: an older save that arrives later has no effect."""
    page = PageDocument(id=page_id, lang=lang, revision=revision)
    [acceptance] = await edge.ports.intake.accept(site, [Change("delete", page)], "push")
    return await _accepted(acceptance, edge, wait, timeout)


@router.get(f"/pages/{PAGE_ID}/receipt")
async def get_receipt(
    site: str, page_id: PageId, caller: MayIngest, edge: TheEdge, lang: OptionalLang = None
) -> Receipt:
    """The state of the page's newest change, and the revision that can be found now."""
    lang = lang or edge.settings.site(site).languages[0]
    receipt = await edge.ports.receipts.receipt(site, lang, page_id)
    if receipt is None:
        raise Problem(404, "unknown-page", f"no change of this page in {lang!r} was ever accepted")
    return receipt


@router.post("/pages:bulk", openapi_extra=request_body(BulkLine, media_type="application/x-ndjson"))
async def bulk(site: str, caller: MayIngest, edge: TheEdge, request: Request) -> BulkResult:
    """Many changes, one JSON object a line, in order. A bad line does not affect the others. Single saves are indexed
    before them. An empty body is refused, since it was probably lost on the way.

    503, 408 and 400 in the middle say how many lines were accepted; sending everything again is safe.
    """
    settings = edge.settings
    body = lines(request, body_limit(settings))
    result = await accept_lines(body, site, edge.ports.intake, settings, source="push", lane="bulk")
    if not result.accepted + result.superseded + result.rejected:
        raise Problem(400, "body-empty", "no line came: send one JSON object a line")
    return result


async def _accepted(acceptance: Acceptance, edge: Edge, wait: str | None, timeout: float | None) -> Response:
    headers = {SUPERSEDED_HEADER: "true"} if acceptance.superseded else {}
    detail = None
    if wait is not None:
        seconds = RECEIPT_TIMEOUT if timeout is None else timeout
        # A superseded change has no receipt of its own: the newer change's shows the page's state.
        accepted_at = datetime.min.replace(tzinfo=UTC) if acceptance.superseded else acceptance.accepted_at
        receipt = await edge.ports.receipts.settled(acceptance.page_key, (acceptance.revision, accepted_at), seconds)
        if receipt is not None:
            return JSONResponse(receipt.model_dump(mode="json"), headers=headers)
        detail = f"accepted, but not settled within {seconds:g} s; see its receipt, and `pagewire status`"
    change = AcceptedChange(page_key=acceptance.page_key, revision=acceptance.revision, detail=detail)
    return JSONResponse(change.model_dump(), status_code=202, headers=headers)
