"""Erasing what a visitor said in a conversation, for those who look after the site: by any of its questions."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Path, Response

from gateway.conversations.conversations import forget
from gateway.edge.auth import Caller
from gateway.edge.edge import Edge, MayAdmin, TheEdge
from gateway.edge.problems import Problem
from pipelines.conversations.conversations import UnknownConversation
from schemas.audit_log import Via
from schemas.query import RequestId

router = APIRouter(prefix="/v1/admin/sites/{site}", tags=["operations"])


@router.delete("/questions/{request_id}/conversation", status_code=204, response_class=Response)
async def erase_conversation(
    site: str, request_id: Annotated[RequestId, Path()], caller: MayAdmin, edge: TheEdge
) -> Response:
    """Delete the conversation of a question for good, as its visitor could: its questions and answers, its feedback,
    and its words in the question log. Its figures stay there."""
    await erased(edge, caller, site, request_id)
    return Response(status_code=204)


async def erased(edge: Edge, caller: Caller, site: str, request_id: str, via: Via = "http") -> None:
    """Erase; twice does no harm, and what was broken off goes on where it was.

    Raises:
        Problem: 404: neither the log nor a conversation has this question. Retryable: some of it may be left.
    """
    async with edge.act(caller, "conversations.erase", site, via=via) as act:
        logged = await edge.ports.questions.get(site, request_id)
        whose = await edge.conversations.whose(site, request_id)
        if logged is None and whose is None:
            raise Problem(404, "unknown-question", f"site {site} has no question {request_id}, or it is erased already")
        act.target = logged.conversation if logged is not None else edge.pseudonyms.of(site, whose[1] if whose else "")
        # The log keeps words for longer than conversations are kept: all that it has of this one go by its name.
        await edge.ports.notes.forgotten(site, act.target, [request_id], edge.ports.now())
        if whose is not None:
            with suppress(UnknownConversation):  # its visitor was faster
                await forget(edge, *whose)
