"""What visitors say of answers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from gateway.chat.chat import ConversationOfAnswer
from gateway.edge.bodies import parse, read_body
from gateway.edge.edge import MayRate, TheEdge, owner_of
from gateway.edge.metrics import FEEDBACK
from gateway.edge.openapi import request_body
from pipelines.runtime import tracing
from schemas.conversation import Feedback, FeedbackOrder
from schemas.query import RequestId

BODY_LIMIT = 64 * 1024  # bytes: a comment, escaped

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
