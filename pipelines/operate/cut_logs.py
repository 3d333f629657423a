"""Cut logs: messages that were deleted from a topic before a stage had read them, and the remedy.

No message waits any more, but the receipts of the deleted ones stay `queued`. The cause is a retention that was set on
one of our topics, or `kafka-delete-records`.

While the stage's commit lies before the oldest kept message, the broker shows the loss. Once the stage goes on, only
its worker's note in `worker.pauses` shows it, which that topic keeps for a day.
"""

from __future__ import annotations

from collections.abc import Mapping

from schemas.topics import CHANGES, TOPICS, Topic

# The other topics lose only messages that are too old to matter.
KEPT = tuple(topic for topic in TOPICS if topic.retention_ms is None)

SAVE_AGAIN = (
    "what was saved then is not searchable, its receipts stay queued: `pagewire reconcile SITE` for every connector, "
    "`pagewire import` for what has none"
)
REPAIR = "`pagewire audit SITE --repair` sends what is missing through the stages again"


def what_to_do(topic: Topic) -> str:
    """The command that repairs it."""
    return SAVE_AGAIN if topic is CHANGES else REPAIR


def gone(committed: Mapping[int, int], begins: Mapping[int, int]) -> dict[int, int]:
    """Deleted offsets that a stage has not read, by partition; a compacted topic has fewer messages than offsets."""
    return {p: begins[p] - at for p, at in sorted(committed.items()) if begins.get(p, 0) > at}


def sentence(group: str, topic: Topic, name: str, missed: Mapping[int, int]) -> str:
    """The report in words; `name`: of the topic at the broker."""
    partitions = ", ".join(map(str, sorted(missed)))
    return (
        f"up to {sum(missed.values()):,} messages of {name}[{partitions}] were deleted before {group} had read them: "
        f"{what_to_do(topic)}"
    )
