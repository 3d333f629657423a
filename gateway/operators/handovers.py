"""Visitors' messages to a person, for operators: list, deliver again, delete."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from gateway.edge.auth import Caller
from gateway.edge.edge import Edge, MayAdmin, TheEdge
from pipelines.conversations.handovers import UnknownHandover
from schemas.audit_log import Via
from schemas.handover import HandoverList, HandoverState, ListedHandover, Reference, StoredHandover

MAX_LISTED = 200

router = APIRouter(prefix="/v1/admin/sites/{site}/handovers", tags=["operations"])


@router.get("")
async def list_handovers(
    site: str,
    caller: MayAdmin,
    edge: TheEdge,
    state: HandoverState | None = None,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = 50,
    after: Annotated[str | None, Query(max_length=100, description="`next` of the list before.")] = None,
) -> HandoverList:
    """Messages that visitors left for a person, the newest first, and whether they are delivered."""
    found, more = await edge.ports.handovers.of_site(site, state, limit, after)
    return HandoverList(handovers=tuple(map(listed, found)), next=more)


@router.post("/{reference}/redeliver")
async def redeliver_handover(
    site: str, reference: Annotated[Reference, Path()], caller: MayAdmin, edge: TheEdge
) -> ListedHandover:
    """Deliver a message again after its delivery failed. 409 `handover-waiting`: its delivery is not over."""
    return listed(await redeliver(edge, caller, site, reference))


@router.delete("/{reference}", status_code=204, response_class=Response)
async def erase_handover(
    site: str, reference: Annotated[Reference, Path()], caller: MayAdmin, edge: TheEdge
) -> Response:
    """Delete a message for good. A delivered copy stays with its receiver."""
    await erase(edge, caller, site, reference)
    return Response(status_code=204)


async def redeliver(edge: Edge, caller: Caller, site: str, reference: str, via: Via = "http") -> StoredHandover:
    """Raises: UnknownHandover, NotWaiting, Retryable."""
    async with edge.act(caller, "handovers.redeliver", site, reference, via):
        return await edge.handovers.redeliver(site, reference)


async def erase(edge: Edge, caller: Caller, site: str, reference: str, via: Via = "http") -> None:
    """Raises: UnknownHandover, Retryable."""
    async with edge.act(caller, "handovers.erase", site, reference, via):
        if not await edge.ports.handovers.delete(site, reference):
            raise UnknownHandover(f"site {site} has no message {reference}")


def listed(stored: StoredHandover) -> ListedHandover:
    """Without the visitor's id, which would link messages and conversations."""
    return ListedHandover.model_validate(stored.model_dump(include=set(ListedHandover.model_fields)))
