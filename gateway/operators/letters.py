"""Dead letters over HTTP, for the console and for scripts."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import AwareDatetime

from gateway.edge.auth import Caller
from gateway.edge.bodies import parse, read_body, validated
from gateway.edge.edge import Edge, MayAdmin, TheEdge
from gateway.edge.openapi import request_body
from schemas.letters import (
    DeadLetterCounts,
    DeadLetterDetail,
    DeadLetterFilter,
    DeadLetterList,
    DeadLetterSummary,
    Redrive,
)
from schemas.topics import MAX_MESSAGE_BYTES

MAX_LISTED = 1_000
MAX_FILTER = 10_000  # bytes
MAX_EDIT = 2 * MAX_MESSAGE_BYTES  # bytes: JSON may be escaped and indented

router = APIRouter(prefix="/v1/admin", tags=["operations"])

LETTER = "/dlq/{topic}/{partition}/{offset}"


async def query_filter(
    stage: str | None = None,
    topic: Annotated[str | None, Query(description="For example `cms.changes`.")] = None,
    site: str | None = None,
    page: Annotated[str | None, Query(description="Page id, in any language.")] = None,
    code: str | None = None,
    since: Annotated[AwareDatetime | None, Query(description="Last failed then or later.")] = None,
) -> DeadLetterFilter:
    """The filter from the query string."""
    given = {"stage": stage, "topic": topic, "site": site, "page": page, "code": code, "since": since}
    return validated(DeadLetterFilter, given)


async def letter_id(topic: str, partition: int, offset: int) -> str:
    """As `DeadLetterSummary.id`."""
    return f"{topic}/{partition}/{offset}"


Filter = Annotated[DeadLetterFilter, Depends(query_filter)]
LetterId = Annotated[str, Depends(letter_id)]


@router.get("/dlq")
async def list_letters(
    caller: MayAdmin,
    edge: TheEdge,
    wanted: Filter,
    limit: Annotated[int, Query(ge=0, le=MAX_LISTED)] = 100,
    all: Annotated[bool, Query(description="Also those that were redriven, edited or dropped.")] = False,
) -> DeadLetterList:
    """The newest open dead letters that fit, and how many there are."""
    return await edge.ports.letters.list(wanted, limit, handled=all)


@router.get(LETTER)
async def show_letter(
    caller: MayAdmin,
    edge: TheEdge,
    id: LetterId,
    full: Annotated[bool, Query(description="Vectors and undecodable values in full length.")] = False,
) -> DeadLetterDetail:
    """A dead letter with its headers, its value, and what its change would do to the page."""
    return await edge.ports.letters.show(id, full=full)


@router.post(f"{LETTER}/redrive", openapi_extra=request_body(Redrive, required=False))
async def redrive_letter(caller: MayAdmin, edge: TheEdge, id: LetterId, request: Request) -> DeadLetterSummary:
    """Send the message again to where it failed; with `value` in the body, that message in its place."""
    body = await read_body(request, MAX_EDIT)
    value = parse(Redrive, body).value if body else None
    async with edge.act(caller, "letters.redrive" if value is None else "letters.edit", target=id):
        return await edge.ports.letters.redrive(id, None if value is None else json.dumps(value).encode())


@router.delete(LETTER)
async def drop_letter(caller: MayAdmin, edge: TheEdge, id: LetterId) -> DeadLetterSummary:
    """Settle a dead letter without processing it."""
    async with edge.act(caller, "letters.drop", target=id):
        return await edge.ports.letters.drop(id)


@router.post("/dlq:redrive", openapi_extra=request_body(DeadLetterFilter))
async def redrive_letters(caller: MayAdmin, edge: TheEdge, request: Request) -> DeadLetterCounts:
    """Redrive all open dead letters that fit the filter; `{}` is all."""
    wanted = parse(DeadLetterFilter, await read_body(request, MAX_FILTER))
    return await redriven(edge, caller, wanted)


@router.post("/dlq:drop", openapi_extra=request_body(DeadLetterFilter))
async def drop_letters(caller: MayAdmin, edge: TheEdge, request: Request) -> DeadLetterCounts:
    """Settle all open dead letters that fit the filter without processing them; `{}` is all."""
    wanted = parse(DeadLetterFilter, await read_body(request, MAX_FILTER))
    async with edge.act(caller, "letters.drop", wanted.site, wanted.said()):
        return await _last(edge.ports.letters.drop_all(wanted))


async def redriven(edge: Edge, caller: Caller, wanted: DeadLetterFilter, client: str = "") -> DeadLetterCounts:
    """Redrive all open ones that fit; noted in the audit log. Raises: Retryable."""
    async with edge.act(caller, "letters.redrive", wanted.site, wanted.said(), client=client):
        return await _last(edge.ports.letters.redrive_all(wanted))


async def _last(progress: AsyncGenerator[DeadLetterCounts, None]) -> DeadLetterCounts:
    last = DeadLetterCounts()
    async with aclosing(progress):
        async for counts in progress:
            last = counts
    return last
