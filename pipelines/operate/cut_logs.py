"""Cut logs: messages that were deleted from a topic before a stage had read them, and what to do about it.

Nothing waits any more, and the receipts of what is gone say `queued` for ever. It comes of a retention that somebody
has put on a topic of ours, or of `kafka-delete-records`.

While the stage's commit lies before the oldest message that is kept, anybody sees it. Once the stage goes on, only what
its worker has noted in `worker.pauses` tells of it, for the day that this topic keeps.
"""

from __future__ import annotations

from collections.abc import Mapping

from schemas.topics import CHANGES, TOPICS, Topic

# The others lose what is too old to be wanted.
KEPT = tuple(topic for topic in TOPICS if topic.retention_ms is None)

SAVE_AGAIN = (
    "what was saved then is not searchable, its receipts stay queued: `pagewire reconcile SITE` for every connector, "
    "`pagewire import` for what has none"
)
REPAIR = "`pagewire audit SITE --repair` sends what is missing through the stages again"


def what_to_do(topic: Topic) -> str:
    """The command that mends it."""
    return SAVE_AGAIN if topic is CHANGES else REPAIR


def gone(committed: Mapping[int, int], begins: Mapping[int, int]) -> dict[int, int]:
    """How many offsets a stage has not read and never will, by partition; of a compacted topic fewer messages."""
    return {p: begins[p] - at for p, at in sorted(committed.items()) if begins.get(p, 0) > at}


def sentence(group: str, topic: Topic, name: str, missed: Mapping[int, int]) -> str:
    """For people; `name`: the topic's at the broker."""
    partitions = ", ".join(map(str, sorted(missed)))
    return (
        f"up to {sum(missed.values()):,} messages of {name}[{partitions}] were deleted before {group} had read them: "
        f"{what_to_do(topic)}"
    )
