"""How large a world is on the cluster, and which answers it may give to a save."""

from __future__ import annotations

from tests.faults.storm.history import Answer, History, Sent
from tests.faults.storm.world import Shape

# Topics begin with one copy: the command that raises them is the first thing to happen.
SETTINGS = {"PAGEWIRE_REPLICATION": "1", "PAGEWIRE_SHARDS": "2", "PAGEWIRE_REPLICAS": "1"}
CLEAR = "503 "
GAVE_UP = "-1 TimeoutError"  # the editor, before there was an answer


def shape(pages: int = 60, rate: float = 6.0) -> Shape:
    """Two workers and two gateways; editors wait longer than a gateway waits for Kafka (30 s)."""
    return Shape(pages=pages, rate=rate, patience=45.0, settings=SETTINGS)


def unclear(history: History) -> list[Sent]:
    """Saves that were neither accepted nor refused with 503, though somebody waited for the answer."""
    return [
        sent for sent in history.sent if sent.answer is Answer.UNKNOWN and not sent.detail.startswith((CLEAR, GAVE_UP))
    ]
