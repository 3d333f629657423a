"""A site's chat, switched off and on over HTTP."""

from __future__ import annotations

from fastapi import APIRouter, Request

from gateway.edge.auth import Caller
from gateway.edge.bodies import parse, read_body
from gateway.edge.edge import Edge, MayAdmin, MayView, MayViewSomewhere, TheEdge
from gateway.edge.openapi import request_body
from schemas.audit_log import Via
from schemas.chat_switch import ChatList, ChatOrder, ChatState

MAX_ORDER = 1_000  # bytes
CHAT = "/sites/{site}/chat"

router = APIRouter(prefix="/v1/admin", tags=["operations"])


@router.get("/chat")
async def list_chats(caller: MayViewSomewhere, edge: TheEdge) -> ChatList:
    """Of each site that the key may see, whether its visitors are answered, as far as this gateway knows."""
    sites = sorted(edge.settings.sites) if caller.site is None else [caller.site]
    return ChatList(chats=tuple(map(edge.ports.chat.state, sites)))


@router.get(CHAT)
async def show_chat(site: str, caller: MayView, edge: TheEdge) -> ChatState:
    """Whether the site's visitors are answered, as far as this gateway knows."""
    return edge.ports.chat.state(site)


@router.put(CHAT, openapi_extra=request_body(ChatOrder))
async def switch_chat(site: str, caller: MayAdmin, edge: TheEdge, request: Request) -> ChatState:
    """Switch the site's chat off, or on again. This gateway follows at once, all others and the workers within ten
    seconds; answers that are being written end. It stays so until it is switched again."""
    order = parse(ChatOrder, await read_body(request, MAX_ORDER))
    return await thrown(edge, caller, site, on=order.on)


async def thrown(edge: Edge, caller: Caller, site: str, *, on: bool, via: Via = "http") -> ChatState:
    """Throw the switch, and note who did. Raises: ChatOffInFile, Retryable."""
    async with edge.act(caller, "chat.on" if on else "chat.off", site, via=via):
        return await edge.ports.chat.throw(site, on=on, by=caller.name)
