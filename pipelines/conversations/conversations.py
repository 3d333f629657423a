"""Conversations: stores a visitor's questions and answers, so that they can be read, continued and undone.

    question ─▶ pending ─▶ log ─▶ answer.events ─▶ answer, seen by a reader ─▶ answered
                   └─ no reader until the end: completed from answer.events at the next read

The log is the truth, the store a copy of it: each step may be done twice, by any gateway, and another gateway completes
the work of one that dies. A conversation is found by its site and owner only, so its id alone gives no access.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Protocol

import structlog
from cachetools import LRUCache

from pipelines.conversations.ask import Asker, BadPosition, Followed, UnknownAnswer
from pipelines.conversations.titles import Titles
from pipelines.conversations.turns import (
    ConversationOwner,
    TurnOutcome,
    begun,
    by_day,
    changed_turn,
    completed,
    continued,
    history,
    is_open,
    last_turn,
    may_read,
    readable,
    shown,
    untitled,
    wants_title,
    with_language_of,
    without_turn,
)
from pipelines.runtime.errors import Permanent, Retryable
from schemas.answer import Accepted, AnswerEvent, Failed
from schemas.conversation import (
    Conversation,
    ConversationDetail,
    ConversationList,
    ConversationSummary,
    Feedback,
    StoredTurn,
)
from schemas.query import Question

log = structlog.get_logger(__name__)

NOTE_TIMEOUT = 2.0  # seconds to store the end of an answer before it is passed on
TRIES = 5  # of a write that conflicts with others
GRACE = timedelta(seconds=30)  # after a deadline, in which a stage may still report that it has passed
LISTED = 200  # conversations
ASKED = 200  # conversations with a question that was stored and whose answer is not followed yet


class UnknownConversation(Permanent):
    """No such conversation of this visitor."""

    code = "unknown-conversation"


class AnswerUnderWay(Permanent):
    """The conversation's last question is still being answered."""

    code = "answer-under-way"

    def __init__(self, request_id: str) -> None:
        super().__init__("the last question is still being answered: wait for its answer, or stop it")
        self.request_id = request_id


class NoTurn(Permanent):
    """The conversation has no question to undo or to repeat."""

    code = "no-turn"


class ConversationChanged(Retryable):
    """Another process has written the conversation meanwhile."""

    code = "conversation-changed"


@dataclass(frozen=True)
class VersionedConversation:
    """A conversation and its version in the store; None: a new one."""

    conversation: Conversation
    version: tuple[int, int] | None = None


class ConversationStore(Protocol):
    """Stores conversations (adapters.elastic.conversations). All methods raise Retryable."""

    async def get(self, owner: ConversationOwner, conversation_id: str) -> VersionedConversation | None: ...

    async def of_answer(self, owner: ConversationOwner, request_id: str) -> VersionedConversation | None:
        """The owner's conversation with this answer."""

    async def with_answer(self, site: str, request_id: str) -> VersionedConversation | None:
        """The site's conversation with this answer, of any owner: for operators."""

    async def put(self, kept: VersionedConversation, *, at_once: bool = False) -> VersionedConversation:
        """Write if the stored version is still the one that was read; returns it with its new version.

        Args:
            at_once: lists show the change when this returns, otherwise within a second.

        Raises: ConversationChanged: the stored version is another one.
        """

    async def delete(self, owner: ConversationOwner, conversation_id: str) -> bool:
        """Delete it; returns whether it existed."""

    async def list(self, owner: ConversationOwner, limit: int) -> list[ConversationSummary]:
        """The owner's conversations, newest first."""


class Conversations:
    """One per process.

    Args:
        messages: how many of a conversation the stages read.
        titles: writes titles; None without a model.
    """

    def __init__(
        self,
        store: ConversationStore,
        answers: Asker,
        messages: int,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        titles: Titles | None = None,
    ) -> None:
        self._titles = titles
        self._store = store
        self._answers = answers
        self._messages = messages
        self._clock = clock
        # By request. The end of an answer is written over this version without a read, for which the visitor would
        # wait: a read of what was just written makes Elasticsearch refresh the index.
        self._asked: LRUCache[str, VersionedConversation] = LRUCache(ASKED)

    async def begin(self, owner: ConversationOwner, question: Question, position: str) -> None:
        """Store the first question of a conversation. If that fails, the question is answered all the same."""
        try:
            kept = await self._store.put(VersionedConversation(begun(owner, question, position)))
            self._asked[question.request_id] = kept
        except Retryable as err:
            log.warning("a conversation is not kept", error=str(err))

    async def go_on(
        self,
        owner: ConversationOwner,
        question: Question,
        position: str,
        *,
        replaces: str | None = None,
        languages: Sequence[str] = (),
    ) -> Question:
        """Store a further question; returns it with the history.

        Args:
            replaces: the request whose question this one repeats.
            languages: the site's, if the visitor's program has named no language. A question whose words do not show
                its language ("sauna?") gets that of the conversation.

        Raises:
            UnknownConversation, AnswerUnderWay. Retryable: without its conversation a question cannot be understood.
        """
        for _ in range(TRIES):
            kept = await self._settled(await self._get(owner, question.conversation_id))
            now = self._clock()
            if (last := last_turn(kept.conversation)) and last.state == "pending" and now < last.deadline:
                raise AnswerUnderWay(last.request_id)
            if languages and last is not None:
                question = with_language_of(last, question, languages)
            conversation = continued(kept.conversation, question, position, replaces=replaces)
            try:
                kept = await self._store.put(replace(kept, conversation=conversation))
            except ConversationChanged:
                continue  # most likely by another question, which the next read finds
            self._asked[question.request_id] = kept
            return question.model_copy(update={"history": history(conversation, self._messages, question.groups)})
        raise ConversationChanged("the conversation is written by others all the time; try again")

    async def follow(
        self,
        owner: ConversationOwner,
        question: Question,
        events: AsyncGenerator[Followed, None],
        *,
        titled: bool = False,
    ) -> AsyncGenerator[Followed, None]:
        """Pass on the events; the end of the answer is stored before it is passed on.

        If the log does not take the question, the turn is removed, because it gets no answer.

        Args:
            titled: whether a new conversation gets a title, in the background.
        """
        outcome, heard, kept = TurnOutcome(), False, self._asked.pop(question.request_id, None)
        async with aclosing(events):
            try:
                async for followed in events:
                    heard = True
                    if isinstance(followed.event, AnswerEvent):  # else it is one token of many
                        before, outcome = outcome, outcome.after(followed.event.event)
                        if outcome.end is not None and outcome.end is not before.end:
                            noted = await self._note(owner, question, partial(completed, outcome=outcome), kept)
                            if titled and noted is not None and not outcome.courteous:
                                self._entitle(owner, noted, question.request_id)
                    yield followed
            except Retryable:
                if not heard:
                    await self._note(owner, question, partial(changed_turn, removed=True), kept)
                raise

    async def _note(
        self,
        owner: ConversationOwner,
        question: Question,
        change: Callable[[Conversation, str], Conversation],
        kept: VersionedConversation | None,
    ) -> Conversation | None:
        """Change the question's turn if possible; the log has the answer anyway. `kept`: as with the question."""
        name = question.conversation_id
        try:
            async with asyncio.timeout(NOTE_TIMEOUT):
                return await self._change(owner, name, lambda it: change(it, question.request_id), kept=kept)
        except UnknownConversation:
            pass  # never stored, or deleted meanwhile
        except (Retryable, TimeoutError) as err:
            log.warning("an answer is kept later, from the log", error=str(err))
        return None

    def _entitle(self, owner: ConversationOwner, conversation: Conversation, request_id: str) -> None:
        turn = wants_title(conversation, request_id)
        if self._titles is None or turn is None:
            return

        def keep(title: str) -> Awaitable[Conversation]:
            def named(now: Conversation) -> Conversation:
                return now.model_copy(update={"title": title}) if untitled(now) else now

            return self._change(owner, conversation.conversation_id, named)

        self._titles.begin(conversation.site, turn, keep)

    async def get(self, owner: ConversationOwner, conversation_id: str) -> ConversationDetail:
        """Raises: UnknownConversation, Retryable."""
        return shown((await self._settled(await self._get(owner, conversation_id))).conversation, owner.groups)

    async def list(self, owner: ConversationOwner, utc_offset: timedelta) -> ConversationList:
        """The conversations by day, for a clock `utc_offset` ahead of UTC. Raises: Retryable."""
        summaries = await self._store.list(owner, LISTED)
        return by_day(summaries, self._clock(), utc_offset)

    async def ids(self, owner: ConversationOwner) -> Sequence[str]:
        """Ids of the newest conversations, also of those without a visible turn. Raises: Retryable."""
        return [one.conversation_id for one in await self._store.list(owner, LISTED)]

    async def rename(self, owner: ConversationOwner, conversation_id: str, title: str) -> ConversationDetail:
        """Raises: UnknownConversation, Retryable."""
        renamed = await self._change(
            owner, conversation_id, lambda it: it.model_copy(update={"title": title}), at_once=True
        )
        return shown(renamed, owner.groups)

    async def requests(self, owner: ConversationOwner, conversation_id: str) -> tuple[str, ...]:
        """Request ids of all its questions, also of hidden ones. Raises: UnknownConversation, Retryable."""
        conversation = (await self._get(owner, conversation_id)).conversation
        return tuple(turn.request_id for turn in conversation.turns)

    async def delete(self, owner: ConversationOwner, conversation_id: str) -> StoredTurn | None:
        """Delete it; returns its last visible turn. Raises: UnknownConversation, Retryable."""
        turn = last_turn((await self._get(owner, conversation_id)).conversation)
        if not await self._store.delete(owner, conversation_id):
            raise UnknownConversation("no such conversation")
        return turn

    async def last(self, owner: ConversationOwner, conversation_id: str) -> StoredTurn:
        """The last visible turn, with the answer if the owner may read it.

        Raises: UnknownConversation, NoTurn, Retryable.
        """
        turn = last_turn((await self._get(owner, conversation_id)).conversation)
        if turn is None:
            raise NoTurn("this conversation has no question")
        return readable(turn, owner.groups)

    async def undo(self, owner: ConversationOwner, conversation_id: str) -> tuple[ConversationDetail, StoredTurn]:
        """Remove the last question and its answer; returns the rest, and the removed turn.

        Raises: UnknownConversation, NoTurn, Retryable.
        """
        turn = await self.last(owner, conversation_id)
        rest = await self._change(owner, conversation_id, lambda it: without_turn(it, turn.request_id), at_once=True)
        return shown(rest, owner.groups), turn

    async def rate(
        self, owner: ConversationOwner, request_id: str, feedback: Feedback, conversation_id: str | None = None
    ) -> str:
        """Store the visitor's rating of an answer; returns the conversation's id.

        Args:
            conversation_id: of the answer, as for `stopped` and `accepted`; None: it is searched for.

        Raises: UnknownAnswer, Retryable.
        """
        kept = await self._with_answer(owner, request_id, conversation_id)
        return await self._change_answer(owner, kept, lambda it: changed_turn(it, request_id, feedback=feedback))

    async def stopped(self, owner: ConversationOwner, request_id: str, conversation_id: str | None = None) -> None:
        """The visitor has stopped the answer: the next question is allowed. Raises: UnknownAnswer, Retryable."""

        def without_waiting(conversation: Conversation) -> Conversation:
            turn = next(turn for turn in conversation.turns if turn.request_id == request_id)
            return changed_turn(conversation, request_id, state="stopped") if turn.state == "pending" else conversation

        await self._change_answer(owner, await self._with_answer(owner, request_id, conversation_id), without_waiting)

    async def accepted(
        self, owner: ConversationOwner, request_id: str, conversation_id: str | None = None
    ) -> tuple[Accepted, str]:
        """The answer's first event, which is not in the log, and the position of the others.

        Raises: UnknownAnswer, Retryable.
        """
        conversation = (await self._with_answer(owner, request_id, conversation_id)).conversation
        turn = next(turn for turn in conversation.turns if turn.request_id == request_id)
        if not may_read(turn, owner.groups):
            raise UnknownAnswer("this answer is for access groups that you do not have now")
        return Accepted(request_id=request_id, conversation_id=conversation.conversation_id), turn.position

    async def whose(self, site: str, request_id: str) -> tuple[ConversationOwner, str] | None:
        """The owner and the id of the conversation with this answer; None: it is not stored (any more)."""
        kept = await self._store.with_answer(site, request_id)
        if kept is None:
            return None
        return ConversationOwner(site, kept.conversation.owner), kept.conversation.conversation_id

    async def _change_answer(
        self, owner: ConversationOwner, kept: VersionedConversation, change: Callable[[Conversation], Conversation]
    ) -> str:
        return (await self._change(owner, kept.conversation.conversation_id, change, kept=kept)).conversation_id

    async def _with_answer(
        self, owner: ConversationOwner, request_id: str, conversation_id: str | None
    ) -> VersionedConversation:
        if conversation_id is None:
            kept = await self._store.of_answer(owner, request_id)
        else:
            kept = await self._store.get(owner, conversation_id)
        if kept is None or all(turn.request_id != request_id for turn in kept.conversation.turns):
            raise UnknownAnswer("no such answer in your conversations")
        return kept

    async def _get(self, owner: ConversationOwner, conversation_id: str) -> VersionedConversation:
        kept = await self._store.get(owner, conversation_id)
        if kept is None:
            raise UnknownConversation("no such conversation")
        return kept

    async def _change(
        self,
        owner: ConversationOwner,
        conversation_id: str,
        change: Callable[[Conversation], Conversation],
        *,
        at_once: bool = False,
        kept: VersionedConversation | None = None,
    ) -> Conversation:
        """Apply a change and write it. `kept`: as it was just read or written."""
        for _ in range(TRIES):
            kept = kept or await self._get(owner, conversation_id)
            changed = change(kept.conversation)
            if changed == kept.conversation:
                return changed
            try:
                await self._store.put(replace(kept, conversation=changed), at_once=at_once)
            except ConversationChanged:
                kept = None
                continue
            return changed
        raise ConversationChanged("the conversation is written by others all the time; try again")

    async def _settled(self, kept: VersionedConversation) -> VersionedConversation:
        """Complete turns whose answer no reader followed to its end."""
        conversation = kept.conversation
        for turn in conversation.turns:
            if is_open(turn):
                outcome = await self._outcome(conversation.site, turn)
                conversation = completed(conversation, turn.request_id, outcome)
        if conversation == kept.conversation:
            return kept
        with suppress(ConversationChanged):  # the next read completes it from the log
            return await self._store.put(replace(kept, conversation=conversation))
        return await self._get(ConversationOwner(conversation.site, conversation.owner), conversation.conversation_id)

    async def _outcome(self, site: str, turn: StoredTurn) -> TurnOutcome:
        outcome = TurnOutcome()
        # The position is from another log (the conversation was restored, or partitions were added).
        with suppress(BadPosition):
            async with aclosing(self._answers.recorded(site, turn.request_id, turn.position)) as events:
                async for followed in events:
                    outcome = outcome.after(followed.event.event)
        if outcome.end is None and self._clock() > turn.deadline + GRACE:
            # No event will follow, so the log is not searched again.
            return replace(outcome, end=Failed(code="timeout", message=""))
        return outcome
