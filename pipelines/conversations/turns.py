"""Turns: pure functions that change and show a conversation's questions and answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone

from schemas.answer import Answered, AnswerMarks, Event, Failed, QuestionRephrased, SourcesFound
from schemas.conversation import (
    AskedTurn,
    CitedSource,
    Conversation,
    ConversationDetail,
    ConversationList,
    ConversationSummary,
    StoredTurn,
)
from schemas.keys import page_key
from schemas.query import MAX_HISTORY, MAX_QUESTION, Question, Turn
from text.language import language_of, tells_language
from text.sentences import cut

KEPT_TURNS = 100  # of a conversation; older ones are dropped
TITLE_CHARS = 80  # of the first question
TITLED_WITHIN = 3  # turns whose answers may give the title
CITED_PAGES = 3  # of an answer, to which a further question may refer


@dataclass(frozen=True)
class ConversationOwner:
    """The owner of conversations, a visitor or a program with a key, and the access groups of now."""

    site: str
    name: str
    groups: tuple[str, ...] = field(default=(), compare=False)  # access groups


@dataclass(frozen=True)
class TurnOutcome:
    """The result of an answer's events so far."""

    rephrased: str | None = None
    grade: int | None = None
    end: Answered | Failed | None = None

    @property
    def courteous(self) -> bool:
        """Whether the message was a courtesy and no question."""
        return isinstance(self.end, Answered) and self.end.strategy == "courtesy"

    def after(self, event: Event) -> TurnOutcome:
        match event:
            case QuestionRephrased(question=question):
                return replace(self, rephrased=question)
            case SourcesFound(grade=grade):
                return replace(self, grade=grade)
            case Answered() | Failed():
                return replace(self, end=event)
        return self


def begun(owner: ConversationOwner, question: Question, position: str) -> Conversation:
    """A conversation of one question."""
    return Conversation(
        conversation_id=question.conversation_id,
        site=owner.site,
        owner=owner.name,
        title=first_title(question.question),
        created_at=question.asked_at,
        updated_at=question.asked_at,
        turns=(open_turn(question, position),),
    )


def first_title(question: str) -> str:
    """The title that a conversation gets from its first question."""
    return " ".join(question.split())[:TITLE_CHARS]


def untitled(conversation: Conversation) -> bool:
    return conversation.title == first_title(conversation.turns[0].question)


def wants_title(conversation: Conversation, request_id: str) -> StoredTurn | None:
    """The turn of this request, if a title is wanted and can be made from it.

    The first answer gives the title; if it is of no use ("Hello", or a model that was away), one of the next two.
    """
    if len(conversation.turns) > TITLED_WITHIN or not untitled(conversation):
        return None
    turn = next((turn for turn in conversation.turns if turn.request_id == request_id), None)
    return turn if turn is not None and turn.state == "answered" and turn.answer else None


def continued(
    conversation: Conversation, question: Question, position: str, *, replaces: str | None = None
) -> Conversation:
    """The conversation with one more question, or (`replaces`: a request) with one asked again."""
    turn = open_turn(question, position).model_copy(update={"replaces": replaces})
    turns = (*conversation.turns, turn)[-KEPT_TURNS:]
    return conversation.model_copy(update={"turns": turns, "updated_at": question.asked_at})


def open_turn(question: Question, position: str) -> StoredTurn:
    """A turn without an answer yet."""
    return StoredTurn(
        request_id=question.request_id,
        question=question.question,
        lang=question.lang,
        guessed=question.guessed,
        asked_at=question.asked_at,
        deadline=question.deadline,
        position=position,
        groups=question.groups,
        labels=question.labels,
        state="pending",
    )


def with_language_of(last: StoredTurn, question: Question, languages: Sequence[str]) -> Question:
    """A further question without a language: if its words do not show one, it gets that of the last turn.

    Args:
        languages: the site's.
    """
    shown_by_words = tells_language(question.question, languages)
    lang = language_of(question.question, (last.lang, *languages))
    return question.model_copy(update={"lang": lang, "guessed": not shown_by_words and last.guessed})


def is_open(turn: StoredTurn) -> bool:
    """Whether its answer may still come from the log. A stopped one ends with the text written until then."""
    return not turn.removed and (turn.state == "pending" or (turn.state == "stopped" and turn.rephrased is None))


def completed(conversation: Conversation, request_id: str, outcome: TurnOutcome) -> Conversation:
    """The conversation with an answer's end, if there is one. The first end stays, but an answer replaces an error."""
    turn = next((turn for turn in conversation.turns if turn.request_id == request_id), None)
    if turn is None or outcome.end is None or turn.state == "answered":
        return conversation
    found = {"rephrased": outcome.rephrased or turn.question, "grade": outcome.grade}
    if isinstance(outcome.end, Failed):
        if turn.state != "pending":
            return changed_turn(conversation, request_id, **found)
        return changed_turn(conversation, request_id, **found, state="failed", error=outcome.end.code)
    answered = outcome.end
    return changed_turn(
        conversation,
        request_id,
        **found,
        state="stopped" if answered.stopped else "answered",
        error=None,
        answer=answered.text,
        citations=answered.citations,
        sources=tuple(
            CitedSource.model_validate(each, from_attributes=True) for each in answered.sources if each.cited
        ),
        extractive=answered.extractive,
        pending=answered.pending,
        **{name: getattr(answered, name) for name in AnswerMarks.model_fields},
    )


def changed_turn(conversation: Conversation, request_id: str, **update: object) -> Conversation:
    turns = tuple(
        turn.model_copy(update=update) if turn.request_id == request_id else turn for turn in conversation.turns
    )
    return conversation.model_copy(update={"turns": turns})


def visible(conversation: Conversation) -> tuple[StoredTurn, ...]:
    """The visible turns, oldest first.

    A repeated question hides its earlier turn, also while the new answer is awaited. If the repetition fails, the
    earlier turn is visible again.
    """
    kept = [turn for turn in conversation.turns if not turn.removed]
    again = {turn.replaces for turn in kept}
    gave_way: set[str | None] = set()
    for turn in reversed(kept):
        if is_open(turn) or turn.answer or turn.request_id in gave_way:
            gave_way.add(turn.replaces)
    return tuple(
        turn for turn in kept if turn.request_id not in gave_way and (turn.answer or turn.request_id not in again)
    )


def without_turn(conversation: Conversation, request_id: str) -> Conversation:
    """The conversation without a turn and the earlier answers to its question."""
    for turn in reversed(conversation.turns):
        if turn.request_id == request_id:
            conversation = changed_turn(conversation, request_id, removed=True)
            request_id = turn.replaces or ""
    return conversation


def last_turn(conversation: Conversation) -> StoredTurn | None:
    """The last visible turn."""
    return next(reversed(visible(conversation)), None)


def may_read(turn: StoredTurn, groups: Iterable[str]) -> bool:
    """Whether a visitor with these access groups may read the answer; lost groups hide old answers, too."""
    return set(turn.groups) <= set(groups)


def readable(turn: StoredTurn, groups: Iterable[str]) -> StoredTurn:
    """The turn, without an answer for access groups that are not among these."""
    if may_read(turn, groups):
        return turn
    asked = turn.model_dump(include={"request_id", "question", "lang", "asked_at", "state", "feedback", "removed"})
    kept = turn.model_dump(include={"deadline", "position", "groups", "guessed", "replaces"})
    return StoredTurn(**asked, **kept, withheld=True)


def history(conversation: Conversation, messages: int, groups: Iterable[str] = ()) -> tuple[Turn, ...]:
    """The newest answered turns that these groups may read, as the stages read them."""
    allowed = tuple(groups)
    answered = [turn for turn in visible(conversation) if turn.answer and may_read(turn, allowed)]
    return newest([_turn(conversation.site, turn) for turn in answered], messages)


def _turn(site: str, turn: StoredTurn) -> Turn:
    pages = [source for source in turn.sources if source.kind == "page"]
    cited = dict.fromkeys(page_key(site, source.lang, source.page_id) for source in pages)
    return Turn(
        question=turn.question,
        answer=turn.answer,
        lang=turn.lang,
        pages=tuple(cited)[:CITED_PAGES],
        pending=turn.pending,
    )


def newest(turns: Sequence[Turn], messages: int) -> tuple[Turn, ...]:
    """The newest questions with their answers, oldest first, for rewriting and answering.

    At most `messages` messages and `MAX_HISTORY` characters; the oldest one may be cut at its end.
    """
    kept: list[Turn] = []
    left = MAX_HISTORY
    for turn in reversed(turns[-((messages + 1) // 2) :] if messages else []):
        asked = cut(turn.question, min(left, MAX_QUESTION))
        answered = cut(turn.answer, left - len(asked))
        if not asked:
            break
        kept.append(turn.model_copy(update={"question": asked, "answer": answered}))
        left -= len(asked) + len(answered)
        if answered != turn.answer:
            break
    return tuple(reversed(kept))


def shown(conversation: Conversation, groups: Iterable[str] = ()) -> ConversationDetail:
    """The conversation as a visitor with these access groups sees it."""
    allowed = tuple(groups)
    return ConversationDetail(
        **conversation.model_dump(include={"conversation_id", "title", "created_at", "updated_at"}),
        turns=tuple(
            AskedTurn.model_validate(readable(turn, allowed).model_dump(include=set(AskedTurn.model_fields)))
            for turn in visible(conversation)
        ),
    )


def summary(conversation: Conversation) -> ConversationSummary:
    return ConversationSummary(
        **conversation.model_dump(include={"conversation_id", "title", "created_at", "updated_at"}),
        turns=len(visible(conversation)),
    )


def by_day(summaries: Sequence[ConversationSummary], now: datetime, utc_offset: timedelta) -> ConversationList:
    """The conversations by today, yesterday and so on, in the visitor's time zone."""
    there = timezone(utc_offset)
    today = now.astimezone(there).date()
    groups: dict[str, list[ConversationSummary]] = {"today": [], "yesterday": [], "last_week": [], "older": []}
    for one in summaries:
        days = (today - one.updated_at.astimezone(there).date()).days
        name = "today" if days <= 0 else "yesterday" if days == 1 else "last_week" if days <= 7 else "older"
        groups[name].append(one)
    return ConversationList(**{name: tuple(group) for name, group in groups.items()})
