"""Which answers are judged, by chance and the same ones at every replay; and how many of a day still may be.

The topic of verdicts is the only book: it survives restarts, all processes read it, and an answer that has its verdict
is not judged again. One that is judged twice counts twice. Processes that judge at the same moment may together go
beyond the limit by an answer each.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal

from cachetools import LRUCache

from pipelines.runtime.bus import LogReader
from schemas.base import WireError
from schemas.outcome import Outcome, OutcomeEvent, VerdictEvent

CLOCK_SKEW = timedelta(minutes=1)  # between the machines that write the topics
DAYS = 1_000  # of sites, that are known to be spent
DIGITS = 16  # hexadecimal, of a hash: 64 bits
# An answer that cites no page cannot be unfaithful to one, and it is unknown whether a better page was there.
JUDGED = frozenset({"answered", "page"})


def chosen(event: OutcomeEvent, share: float) -> bool:
    """Whether an answer is one of the share: its id alone decides."""
    return _place("judge", event) < share * float(16**DIGITS)


def chosen_again(event: OutcomeEvent, share: float) -> bool:
    """Whether one that is judged is judged twice: the same, and of all shares of the others alike."""
    return _place("judge again", event) < share * float(16**DIGITS)


def _place(what: str, event: OutcomeEvent) -> int:
    digest = hashlib.sha256(f"{what} {event.site} {event.request_id}".encode()).hexdigest()
    return int(digest[:DIGITS], 16)


def readable(outcome: Outcome) -> bool:
    """Whether it has something for a judge to read: the words of some are not kept, and some are broken off."""
    words = (outcome.question or "").strip() and (outcome.answer or "").strip()
    return outcome.became in JUDGED and bool(words) and not outcome.stopped


Admission = Literal["once", "twice", "done", "over-budget"]
SiteDay = tuple[str, date]


class SampleAllowance:
    """One per process."""

    def __init__(self, verdicts: LogReader) -> None:
        self._verdicts = verdicts
        self._open: dict[SiteDay, dict[str, int]] = {}  # answers that this process judges, and how often
        self._spent: LRUCache[SiteDay, int] = LRUCache(DAYS)  # the limit that was reached

    async def admit(self, event: OutcomeEvent, asked_at: datetime, limit: int, *, twice: bool = False) -> Admission:
        """Whether an answer may be judged, and as often as is wanted; then it is counted until it is `left`.

        Raises: Retryable.
        """
        place = event.site, asked_at.astimezone(UTC).date()
        if self._spent.get(place, 0) >= limit:
            return "over-budget"
        # Of one that ends while the verdicts are read, neither they nor what is open afterwards may tell.
        before = dict(self._open.get(place, {}))
        done = await self._done(place)
        if event.request_id in done:
            return "done"
        spent = sum((before | self._open.get(place, {}) | done).values())
        if spent >= limit:
            if sum(done.values()) >= limit:  # what is open may be given up yet, and its place be free again
                self._spent[place] = limit
            return "over-budget"
        twice = twice and limit - spent > 1
        self._open.setdefault(place, {})[event.request_id] = 1 + twice
        return "twice" if twice else "once"

    def left(self, event: OutcomeEvent, asked_at: datetime) -> None:
        """It is judged, or will not be: from now on the verdicts say which."""
        place = event.site, asked_at.astimezone(UTC).date()
        held = self._open.get(place, {})
        held.pop(event.request_id, None)
        if not held:
            self._open.pop(place, None)

    async def _done(self, place: SiteDay) -> dict[str, int]:
        begins = datetime.combine(place[1], time(), UTC) - CLOCK_SKEW  # nothing of the day was said before it
        found: dict[str, int] = {}
        for record in await self._verdicts.since(_ms(begins)):
            with suppress(WireError):  # the log stage makes a dead letter of it
                said = VerdictEvent.decode(record.value)
                if (said.site, said.asked_at.astimezone(UTC).date()) == place:
                    found[said.request_id] = 1 if said.verdict.again is None else 2
        return found


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)
