"""Requeue: send the change that won through the pipeline again.

A late, older change that got into a compacted topic behind a newer one would outlive it there, since compaction keeps
the last record of a key. The index stage, which sees both, sends the winner again; its second pass changes nothing but
the topics. Until then `min.compaction.lag.ms` of `cms.changes` keeps the winner from being compacted away. If the
stages stood still for longer, a delete is made again from what the head knows of it, so no page comes back; of a text
that is gone the head knows nothing.

All copies of a winner take the bulk lane, so that none overtakes another: the last one comes to stand behind
everything. In two lanes each may overtake the other, and each would send the next, without end.

The same brings a page that was cut and embedded for another index back as the live one needs it, in its own lane: an
editor may be waiting for it.

A replay meets many losers of one winner. One copy answers for all: the head remembers where the losers stand, and when
the copy gets there and is not behind them all, it is sent again.
"""

from __future__ import annotations

import logging

from cachetools import FIFOCache

from pipelines.runtime.bus import LogReader
from pipelines.runtime.record import Lane
from pipelines.runtime.stage import Sender
from schemas.page import ChangeRef, PageChange
from schemas.topics import CHANGES

log = logging.getLogger(__name__)

REMEMBERED = 10_000  # pages


class Requeuer:
    """Sends changes again. One per process."""

    def __init__(self, changes: LogReader) -> None:
        self._changes = changes
        self._sent: FIFOCache[str, ChangeRef] = FIFOCache(REMEMBERED)  # the last one of each page

    async def send_again(self, winner: ChangeRef, sender: Sender, lane: Lane | None = "bulk") -> None:
        """Send a change again, as it stands in the log, unless its copy is on its way.

        Args:
            lane: None: that of the record at hand.
        """
        if self._sent.get(winner.page_key) == winner:
            return
        records = await self._changes.read(winner.partition, winner.offset, winner.offset + 1)
        change = PageChange.decode(records[0].value) if records else None
        if change is None or change.page_key != winner.page_key or change.revision != winner.revision:
            # Compacted away, so a later record of the page comes or came by; or another topic by now.
            if winner.op == "upsert":  # The head guards the index in any case, and the audit reports the log.
                log.error("cannot requeue %s: revision %d is not at %d/%d of %s any more", *_where(winner))
                return
            change = _deleted(winner)
        await sender.send(CHANGES, change.page_key, change, lane=lane)
        self._sent[winner.page_key] = winner


def _deleted(ref: ChangeRef) -> PageChange:
    return PageChange(
        op="delete",
        site=ref.site,
        lang=ref.lang,
        page_id=ref.page_id,
        revision=ref.revision,
        accepted_at=ref.accepted_at,
        source="requeue",
    )


def _where(winner: ChangeRef) -> tuple[str, int, int, int, str]:
    return winner.page_key, winner.revision, winner.partition, winner.offset, CHANGES.name
