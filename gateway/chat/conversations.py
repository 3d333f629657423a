"""A visitor's conversations: listed, read, renamed, deleted, taken back by a step, asked again; and all erased at once.
Feedback on their answers, and messages to a person.

Each caller sees its own: a visitor by its token, a program by its key. Another caller's conversation is a 404.
"""

from __future__ import annotations

from asyncio import sleep
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from gateway.chat.chat import ConversationOfAnswer, LastEventId, ask, come_back, continue_conversation, new_question
from gateway.edge.bodies import parse, read_body
from gateway.edge.edge import Edge, MayAsk, MayConverse, MayErase, MayHandOver, MayRate, TheEdge, address_of, owner_of
from gateway.edge.metrics import FEEDBACK
from gateway.edge.openapi import event_stream, request_body
from gateway.edge.problems import Problem
from pipelines.conversations.conversations import UnknownConversation
from pipelines.conversations.turns import ConversationOwner
from pipelines.runtime import tracing
from pipelines.runtime.errors import Retryable
from pipelines.runtime.metrics import HANDOVERS
from schemas.conversation import ConversationDetail, ConversationList, Feedback, FeedbackOrder, Rename, StoredTurn
from schemas.handover import HandoverOrder, HandoverTaken
from schemas.http import ChatResponse
from schemas.query import MAX_HISTORY, RequestId

TITLE_LIMIT = 16 * 1024  # bytes: a title, escaped
DAY = 24 * 60  # minutes; the world's clocks are 26 hours apart, so none is a day away from UTC

router = APIRouter(prefix="/v1/sites/{site}", tags=["conversations"])

ConversationId = Annotated[RequestId, Path()]
LISTED_WITHIN = 1.1  # seconds until a conversation that was just begun is in the list


@router.get("/conversations")
async def conversations(
    site: str,
    caller: MayConverse,
    edge: TheEdge,
    utc_offset: Annotated[
        int, Query(gt=-DAY, lt=DAY, description="Minutes that the visitor's clock is ahead of UTC: for the days.")
    ] = 0,
) -> ConversationList:
    """Your newest 200 conversations, by the day of their last question. A new one is listed within a second."""
    return await edge.conversations.list(owner_of(caller, site), timedelta(minutes=utc_offset))


@router.get("/conversations/{conversation_id}")
async def conversation(
    site: str, conversation_id: ConversationId, caller: MayConverse, edge: TheEdge
) -> ConversationDetail:
    """One conversation with its questions and answers, the newest 100 of them."""
    return await edge.conversations.get(owner_of(caller, site), conversation_id)


@router.patch("/conversations/{conversation_id}", openapi_extra=request_body(Rename))
async def rename(
    site: str, conversation_id: ConversationId, caller: MayConverse, edge: TheEdge, request: Request
) -> ConversationDetail:
    """Give a conversation another title."""
    order = parse(Rename, await read_body(request, TITLE_LIMIT))
    return await edge.conversations.rename(owner_of(caller, site), conversation_id, order.title)


@router.delete("/conversations/{conversation_id}", status_code=204, response_class=Response)
async def delete(site: str, conversation_id: ConversationId, caller: MayConverse, edge: TheEdge) -> Response:
    """Delete a conversation for good, feedback and its words in the question log included. Stops its answer when under
    way."""
    owner = owner_of(caller, site)
    if caller.visitor is not None:  # deleting one's own conversation is not audited
        await forget(edge, owner, conversation_id)
    else:
        async with edge.act(caller, "conversations.erase", site, edge.pseudonyms.of(site, conversation_id)):
            await forget(edge, owner, conversation_id)
    return Response(status_code=204)


@router.post("/conversations/{conversation_id}/undo")
async def undo(site: str, conversation_id: ConversationId, caller: MayConverse, edge: TheEdge) -> ConversationDetail:
    """Take back the last question and its answer: later questions do not see them. Stops a running answer."""
    left, taken = await edge.conversations.undo(owner_of(caller, site), conversation_id)
    await _let_go(edge, site, taken)
    return left


@router.post(
    "/conversations/{conversation_id}/regenerate",
    response_model=ChatResponse,
    responses={200: event_stream("As for a question: whole, or with `Accept: text/event-stream` its events.")},
)
async def regenerate(
    site: str,
    conversation_id: ConversationId,
    caller: MayAsk,
    edge: TheEdge,
    request: Request,
    last_event_id: LastEventId = "",
) -> Response:
    """Ask the last question again, with the history before it. The new answer takes the place of the old one.

    The old one stays if the question cannot be asked or gets no answer. `Last-Event-ID` as for a question.
    """
    if last_event_id:
        return await come_back(edge, caller, site, last_event_id)
    with edge.admit(site, caller):
        last = await edge.conversations.last(owner_of(caller, site), conversation_id)
        question = new_question(edge, caller, site, last.question, last.lang)
        unwanted = {"replaced": (last.answer or "")[:MAX_HISTORY], "guessed": last.guessed, "labels": last.labels}
        question = question.model_copy(update={"conversation_id": conversation_id} | unwanted)
        question = await continue_conversation(edge, caller, question, replaces=last.request_id)
        return await ask(edge, request, caller, question)


async def forget(edge: Edge, owner: ConversationOwner, conversation_id: str) -> None:
    """Delete a conversation, the messages to a person that include it, and its words in the question log.
    Raises: UnknownConversation, Retryable."""
    site = owner.site
    # First: if this fails, the conversation still exists and can be deleted again.
    await edge.ports.notes.forgotten(
        site,
        edge.pseudonyms.of(site, conversation_id),
        await edge.conversations.requests(owner, conversation_id),
        edge.ports.now(),
    )
    await edge.ports.handovers.erase(owner, conversation_id)
    await _let_go(edge, site, await edge.conversations.delete(owner, conversation_id))


async def _let_go(edge: Edge, site: str, turn: StoredTurn | None) -> None:
    """Stop an answer that will not be read, so that no model is paid to its end."""
    if turn is not None and turn.state == "pending":
        with suppress(Retryable):  # its question is gone in any case
            await edge.ports.answers.stop(site, turn.request_id)


@router.delete("/visitors/me", status_code=204, response_class=Response)
async def forget_me(site: str, caller: MayErase, edge: TheEdge) -> Response:
    """Delete all your conversations and messages for good, feedback and their words in the question log included. A
    delivered message stays with its receiver.

    For visitors only: a program's key has the conversations of all its users.
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
    """Forget all listed conversations. Raises: Retryable: some may be left; a repeated call continues."""
    while ids := await edge.conversations.ids(owner):
        left = 0
        for conversation_id in ids:
            try:
                await forget(edge, owner, conversation_id)
            except UnknownConversation:  # deleted meanwhile in another window
                left += 1
        if left == len(ids):
            await sleep(LISTED_WITHIN)


FEEDBACK_LIMIT = 64 * 1024  # bytes: a comment or a message, escaped


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
    order = parse(FeedbackOrder, await read_body(request, FEEDBACK_LIMIT))
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
    order = parse(HandoverOrder, await read_body(request, FEEDBACK_LIMIT))
    owner = owner_of(caller, site)
    talk = await edge.conversations.get(owner, order.conversation_id) if order.conversation_id else None
    if caller.visitor is not None:
        edge.messages.count("handover", address_of(request), caller.visitor)
    reference = await edge.handovers.take(owner, order, order.lang or settings.languages[0], talk)
    HANDOVERS.labels(edge.settings.label(site), "kept").inc()
    return HandoverTaken(reference=reference)
