"""A site's chat, switched off and on over HTTP."""

from __future__ import annotations

from fastapi import APIRouter, Request

from gateway.edge.auth import Caller
from gateway.edge.bodies import parse, read_body
from gateway.edge.edge import Edge, MayAdmin, MayView, TheEdge
from gateway.edge.openapi import request_body
from schemas.audit_log import Via
from schemas.chat_switch import ChatOrder, ChatState

MAX_ORDER = 1_000  # bytes

router = APIRouter(prefix="/v1/admin/sites/{site}", tags=["operations"])


@router.get("/chat")
async def show_chat(site: str, caller: MayView, edge: TheEdge) -> ChatState:
    """Whether the site's visitors are answered, as far as this gateway knows."""
    return edge.ports.chat.state(site)


@router.put("/chat", openapi_extra=request_body(ChatOrder))
async def switch_chat(site: str, caller: MayAdmin, edge: TheEdge, request: Request) -> ChatState:
    """Switch the site's chat off, or on again. This gateway follows at once, all others and the workers within ten
    seconds; answers that are being written end. It stays so until it is switched again."""
    order = parse(ChatOrder, await read_body(request, MAX_ORDER))
    return await thrown(edge, caller, site, on=order.on)


async def thrown(edge: Edge, caller: Caller, site: str, *, on: bool, via: Via = "http") -> ChatState:
    """Throw the switch, and note who did. Raises: ChatOffInFile, Retryable."""
    async with edge.act(caller, "chat.on" if on else "chat.off", site, via=via):
        return await edge.ports.chat.throw(site, on=on, by=caller.name)
