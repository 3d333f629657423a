"""How large a world is on the cluster, and which answers it may give to a save."""

from __future__ import annotations

from tests.faults.storm.history import Answer, History, Sent
from tests.faults.storm.world import Shape

# Topics begin with one copy: the command that raises them is the first thing to happen.
SETTINGS = {"PAGEWIRE_REPLICATION": "1", "PAGEWIRE_SHARDS": "2", "PAGEWIRE_REPLICAS": "1"}
# What may be answered besides: "not now"; or nothing, before the editor gave up or found an idle connection closed.
CLEAR = ("503 ", "-1 ")


def shape(pages: int = 60, rate: float = 6.0) -> Shape:
    """Two workers and two gateways; editors wait longer than a gateway waits for Kafka (30 s)."""
    return Shape(pages=pages, rate=rate, patience=45.0, settings=SETTINGS)


def unclear(history: History) -> list[Sent]:
    """Saves that were answered, but neither as accepted nor with 503."""
    return [sent for sent in history.sent if sent.answer is Answer.UNKNOWN and not sent.detail.startswith(CLEAR)]
