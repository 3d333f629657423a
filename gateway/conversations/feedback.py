"""Visitors' feedback on answers, and their messages to a person."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from gateway.chat.chat import ConversationOfAnswer
from gateway.edge.bodies import parse, read_body
from gateway.edge.edge import MayHandOver, MayRate, TheEdge, address_of, owner_of
from gateway.edge.metrics import FEEDBACK
from gateway.edge.openapi import request_body
from gateway.edge.problems import Problem
from pipelines.runtime import tracing
from pipelines.runtime.metrics import HANDOVERS
from schemas.conversation import Feedback, FeedbackOrder
from schemas.handover import HandoverOrder, HandoverTaken
from schemas.query import RequestId

BODY_LIMIT = 64 * 1024  # bytes: a comment or a message, escaped

router = APIRouter(prefix="/v1/sites/{site}", tags=["conversations"])


@router.post(
    "/answers/{request_id}/feedback",
    status_code=204,
    response_class=Response,
    openapi_extra=request_body(FeedbackOrder),
)
async def feedback(
    site: str,
    request_id: Annotated[RequestId, Path()],
    caller: MayRate,
    edge: TheEdge,
    request: Request,
    conversation_id: ConversationOfAnswer = None,
) -> Response:
    """Say whether one of your answers helped. Saying it again replaces what was said."""
    order = parse(FeedbackOrder, await read_body(request, BODY_LIMIT))
    said = Feedback(rating=order.rating, comment=order.comment or None, at=datetime.now(UTC))
    rated = await edge.conversations.rate(owner_of(caller, site), request_id, said, conversation_id)
    await edge.ports.notes.rated(site, edge.pseudonyms.of(site, rated), request_id, said)
    FEEDBACK.labels(edge.settings.label(site), order.rating).inc(exemplar=tracing.exemplar())
    return Response(status_code=204)


@router.post("/handovers", status_code=201, openapi_extra=request_body(HandoverOrder))
async def hand_over(site: str, caller: MayHandOver, edge: TheEdge, request: Request) -> HandoverTaken:
    """Leave a message for a person of the site. It is stored before this returns, and delivered soon after.

    The conversation is included only if `conversation_id` names it: your own, as you see it.
    A visitor may leave ten messages in a day (429). 404 `no-handover`: the site has not set it up.
    """
    settings = edge.settings.site(site)
    if not settings.hands_over:
        raise Problem(404, "no-handover", f"site {site} takes no messages for people")
    order = parse(HandoverOrder, await read_body(request, BODY_LIMIT))
    owner = owner_of(caller, site)
    talk = await edge.conversations.get(owner, order.conversation_id) if order.conversation_id else None
    if caller.visitor is not None:
        edge.messages.count("handover", address_of(request), caller.visitor)
    reference = await edge.handovers.take(owner, order, order.lang or settings.languages[0], talk)
    HANDOVERS.labels(edge.settings.label(site), "kept").inc()
    return HandoverTaken(reference=reference)
