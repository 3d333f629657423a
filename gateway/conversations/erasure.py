"""Erasure: all that is kept of a visitor's words on a site, at once and for good."""

from __future__ import annotations

from asyncio import sleep

from fastapi import APIRouter, Response

from gateway.conversations.conversations import forget
from gateway.edge.edge import Edge, MayErase, TheEdge, owner_of
from gateway.edge.problems import Problem
from pipelines.conversations.conversations import UnknownConversation
from pipelines.conversations.turns import ConversationOwner

LISTED_WITHIN = 1.1  # seconds until a conversation that was just begun is in the list

router = APIRouter(prefix="/v1/sites/{site}/visitors", tags=["conversations"])


@router.delete("/me", status_code=204, response_class=Response)
async def forget_me(site: str, caller: MayErase, edge: TheEdge) -> Response:
    """Delete all your conversations and messages for good, feedback and their words in the question log included. What
    was delivered of a message is with the people who got it.

    For visitors: a program's key has the conversations of all who ask through it.
    """
    if caller.visitor is None:
        raise Problem(403, "forbidden", "for visitors; with a key delete conversations one by one")
    owner = owner_of(caller, site)
    await edge.ports.handovers.erase(owner)
    if not await edge.conversations.ids(owner):
        await sleep(LISTED_WITHIN)
    if await edge.conversations.ids(owner):  # else there is nothing to note in the audit log
        async with edge.act(caller, "visitors.erase", site):
            await _forget_all(edge, owner)
            await sleep(LISTED_WITHIN)
            await _forget_all(edge, owner)
    return Response(status_code=204)


async def _forget_all(edge: Edge, owner: ConversationOwner) -> None:
    """Whatever is in the list. Raises: Retryable: some may be left; asked again, it goes on there."""
    while ids := await edge.conversations.ids(owner):
        left = 0
        for conversation_id in ids:
            try:
                await forget(edge, owner, conversation_id)
            except UnknownConversation:  # somebody was faster, in another window
                left += 1
        if left == len(ids):
            await sleep(LISTED_WITHIN)
