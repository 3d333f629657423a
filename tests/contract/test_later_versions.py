"""What a later minor version writes: fields more, in every message and in every value inside it.

An older reader works on such a message as on its own, and what it passes on still has them: so versions can be
upgraded and rolled back one process at a time.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipelines.ingest import handlers
from pipelines.ingest.requeue import Requeuer
from pipelines.runtime.record import Record
from schemas.base import Message
from schemas.ingest import Chunker
from schemas.page import PageDocument
from schemas.topics import CHUNKS, TOPICS
from tests.contract.messages import MESSAGES, STORED
from tests.fakes.pages import FakePages, FakeSender
from tests.making import NOON, change, newest, no_attachments, parts_of

LATER = {"of_a_later_version": {"deep": [1, None]}}
NAMED = ("counts", "timings_ms", "signals", "offsets", "left_out", "labels", "sparse")  # objects with data as names
CHUNKER = Chunker(mode="content", size=1000, overlap=0.2)

SAVE = MESSAGES["save"]


def grown(value: Any) -> Any:
    """With a field more in each object."""
    if isinstance(value, list):
        return [grown(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: one if name in NAMED else grown(one) for name, one in value.items()} | LATER


def later(message: Message) -> bytes:
    return json.dumps(grown(json.loads(message.encode()))).encode()


def record(value: bytes) -> Record:
    return Record("any", 0, 3, change().page_key.encode(), value)


@pytest.mark.parametrize("name", MESSAGES)
def test_every_message_is_read_and_goes_on_with_all_of_its_fields(name: str) -> None:
    """But for chunks, which no stage passes on: each makes them anew."""
    kind = type(MESSAGES[name])
    sent = json.loads(later(MESSAGES[name]))
    read = kind.decode(json.dumps(sent).encode())
    assert {name: getattr(read, name) for name in kind.model_fields if name not in ("chunks", "v")}
    written = json.loads(read.encode())
    for body in (sent, written):
        body.pop("chunks", None)
    assert written == sent


def test_there_is_one_of_each_message() -> None:
    assert {type(message) for message in MESSAGES.values()} == {topic.value for topic in TOPICS}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_without_them_is_what_it_was(name: str) -> None:
    message = MESSAGES[name]
    assert type(message).decode(message.encode()).encode() == message.encode()


async def test_a_page_of_a_later_version_is_worked_on_like_any_other() -> None:
    async def as_now(site: str) -> Chunker:
        return CHUNKER

    pages, sender = FakePages(), FakeSender()
    plain = SAVE.model_copy(update={"page": PageDocument(id="fees", lang="en", content="<p>Free.</p>")})
    await handlers.chunk_handler(as_now, no_attachments, newest)(record(later(plain)), sender)
    [cut] = sender.sent
    assert cut.topic == CHUNKS
    sender.sent.clear()
    await handlers.index_handler(pages, NoLog())(record(later(parts_of(change(5))[0])), sender)
    [told] = sender.sent
    assert json.loads(told.message.encode())["change"].items() >= LATER.items()


async def test_a_winner_of_a_later_version_is_sent_again_as_it_stands_in_the_log() -> None:
    class Log:
        async def read(self, partition: int, start: int, end: int | None = None) -> list[Record]:
            return [record(later(SAVE))]

    sender = FakeSender()
    await Requeuer(Log()).send_again(change(5, offset=3), sender)
    [again] = sender.sent
    assert json.loads(again.message.encode()) == json.loads(later(SAVE))


class NoLog:
    async def read(self, partition: int, start: int, end: int | None = None) -> list[Record]:
        raise AssertionError("nothing is to be healed")


@pytest.mark.parametrize("one", STORED.values(), ids=STORED)
def test_what_a_later_version_stored_is_read_and_stored_again_with_all_of_its_fields(one: Any) -> None:
    stored = grown(one.dumped())
    read = type(one).stored(stored)
    assert read.dumped() == stored
    assert read.model_copy(update={"settled_at": NOON}).dumped().items() >= LATER.items()
    assert type(one).stored(one.dumped()) == one
