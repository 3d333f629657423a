"""What was deleted from a topic before a stage had read it is told, once."""

from __future__ import annotations

from collections.abc import Iterable

from aiokafka import TopicPartition
from structlog.testing import capture_logs

from pipelines.worker.cut_logs import REPAIR, SAVE_AGAIN, Cut, CutLogs

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


async def told(cuts: CutLogs, client: Kept) -> list[tuple[object, ...]]:
    with capture_logs() as lines:
        await cuts.look(client, ["pagewire-chunk"])  # type: ignore[arg-type]
    return [(line["topic"], line["partition"], line["gone"], line["do"]) for line in lines]


async def test_a_log_that_was_cut_in_front_of_a_stage_is_told_with_what_to_run() -> None:
    client = Kept({CHANGES: 62, CHUNKS: 5, ASKED: 1}, {CHANGES: 244, CHUNKS: 7, ASKED: 99})
    assert await told(CutLogs("town."), client) == [
        ("town.cms.changes", 2, 182, SAVE_AGAIN),
        ("town.ingest.chunks", 0, 2, REPAIR),
    ]


async def test_it_is_told_once_and_again_when_more_is_gone() -> None:
    cuts, client = CutLogs("town."), Kept({CHANGES: 62}, {CHANGES: 70})
    assert len(await told(cuts, client)) == 1
    assert await told(cuts, client) == []
    client.oldest[CHANGES] = 75
    assert [gone for _, _, gone, _ in await told(cuts, client)] == [5]


def test_what_was_read_may_be_deleted() -> None:
    assert CutLogs("town.").looked("pagewire-chunk", {CHANGES: 244}, {CHANGES: 244}) == []
    assert CutLogs("town.").looked("g", {CHANGES: 1}, {CHANGES: 2}) == [Cut("g", CHANGES, 1)]
