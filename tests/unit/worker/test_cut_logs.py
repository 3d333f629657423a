"""What was deleted from a topic before a stage had read it is told, once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from aiokafka import TopicPartition
from structlog.testing import capture_logs

from pipelines.operate.status import REPAIR, SAVE_AGAIN
from pipelines.runtime.bus import Producer
from pipelines.runtime.errors import Retryable
from schemas.base import Message
from schemas.topics import PAUSES, Topic
from schemas.worker import CUTS_KEY, PauseNote
from tests.fakes.pages import FakeSender
from worker.cut_logs import Cut, CutLogs

CHANGES = TopicPartition("town.cms.changes", 2)
CHUNKS = TopicPartition("town.ingest.chunks", 0)
ASKED = TopicPartition("town.query.requests", 0)  # kept for a day: what is older nobody waits for


class Kept:
    """A broker that knows one group."""

    def __init__(self, committed: dict[TopicPartition, int], begins: dict[TopicPartition, int]) -> None:
        self.at, self.oldest = committed, begins

    async def committed(self, group: str) -> dict[TopicPartition, int]:
        return self.at

    async def begins(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {tp: self.oldest[tp] for tp in partitions}


def watching(bus: FakeSender | None = None) -> CutLogs:
    return CutLogs("town.", cast(Producer, bus or FakeSender()))


async def told(cuts: CutLogs, client: Kept) -> list[tuple[object, ...]]:
    with capture_logs() as lines:
        await cuts.look(client, ["pagewire-chunk"])  # type: ignore[arg-type]
    return [(line["topic"], line["partition"], line["gone"], line["do"]) for line in lines]


async def test_a_log_that_was_cut_in_front_of_a_stage_is_told_with_what_to_run() -> None:
    client = Kept({CHANGES: 62, CHUNKS: 5, ASKED: 1}, {CHANGES: 244, CHUNKS: 7, ASKED: 99})
    assert await told(watching(), client) == [
        ("town.cms.changes", 2, 182, SAVE_AGAIN),
        ("town.ingest.chunks", 0, 2, REPAIR),
    ]


async def test_it_is_told_once_and_again_when_more_is_gone() -> None:
    cuts, client = watching(), Kept({CHANGES: 62}, {CHANGES: 70})
    assert len(await told(cuts, client)) == 1
    assert await told(cuts, client) == []
    client.oldest[CHANGES] = 75
    assert [gone for _, _, gone, _ in await told(cuts, client)] == [5]


def test_what_was_read_may_be_deleted() -> None:
    assert watching().new_cuts("pagewire-chunk", {CHANGES: 244}, {CHANGES: 244}) == []
    assert watching().new_cuts("g", {CHANGES: 1}, {CHANGES: 2}) == [Cut("g", CHANGES, 1)]


async def test_it_is_noted_for_those_who_ask_for_the_status_also_when_the_broker_takes_it_later() -> None:
    class Away(FakeSender):
        away = True

        async def send(self, topic: Topic, key: str, message: Message, **more: str | None) -> None:  # type: ignore[override]
            if self.away:
                raise Retryable("no broker")
            await super().send(topic, key, message)

    sender = Away()
    cuts = watching(sender)
    other = TopicPartition(CHANGES.topic, 4)
    client = Kept({CHANGES: 62, other: 1, CHUNKS: 5}, {CHANGES: 244, other: 3, CHUNKS: 7})
    assert len(await told(cuts, client)) == 3
    sender.away = False
    assert await told(cuts, client) == []
    changes, chunks = [sent.message for sent in sender.sent]
    assert [(sent.topic, sent.key) for sent in sender.sent] == [(PAUSES, CUTS_KEY)] * 2
    assert isinstance(changes, PauseNote)
    assert isinstance(chunks, PauseNote)
    said = "up to 184 messages of town.cms.changes[2, 4] were deleted before pagewire-chunk had read them: what was"
    assert changes.reason.startswith(said)
    assert chunks.reason.endswith(REPAIR)
