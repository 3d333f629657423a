"""A corrected value for a dead letter: it must be a message of its topic, and about the same page."""

from __future__ import annotations

from pipelines.runtime.errors import WrongUse
from schemas.base import Message, WireError
from schemas.ingest import PageChunks, PageEmbeddings, ReceiptEvent
from schemas.keys import ahead_key, part_key
from schemas.page import PageChange
from schemas.query import Question, Rephrased, Retrieved
from schemas.topics import Topic


class BadValue(WrongUse):
    """The corrected value is no message of the letter's topic and key."""

    code = "bad-value"


def checked(topic: Topic, key: bytes | None, value: bytes) -> bytes:
    """The bytes of a corrected value.

    Raises:
        BadValue: not a message of `topic`, or not of this key.
    """
    assert topic.value
    try:
        message = topic.value.decode(value, strict=True)
    except WireError as err:
        raise BadValue(str(err)) from err
    if _key_of(message).encode() != key:
        ours = (key or b"").decode(errors="replace")
        raise BadValue(f"the value's key is {_key_of(message)!r}, the letter's is {ours!r}: another page or part")
    return message.encode()


def _key_of(message: Message) -> str:
    """The key of a message in its topic (docs/reference/topics.md)."""
    match message:
        case PageChange():
            return message.page_key
        case PageEmbeddings():
            key = message.change.page_key
            return ahead_key(key) if message.ahead else part_key(key, message.part)
        case PageChunks() | ReceiptEvent():
            return message.change.page_key
        case Question():
            return message.conversation_id
        case Rephrased() | Retrieved():
            return message.request.conversation_id
        case _:
            raise TypeError(f"no topic with dead letters carries {type(message).__name__}")
