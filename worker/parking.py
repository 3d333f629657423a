"""Parking: records of a failing site are stored among the dead letters and retried later; other sites go on.

```
 a record fails because of its site ─────▶ <topic>.dlq, marked as parked ──▶ finished: the partition goes on
   the site's later records of the stage ─▶ the same, untried, behind it
                                                    │ the oldest of each site is tried, with growing pauses
                                                    ▼
                            it succeeds ─▶ all of the site are tried again ─▶ a mark behind each: returned
```
Parking needs no order for correctness: a page's revisions decide which one is shown, and `index` drops an older one. So
a parked record may come back behind a newer one of its page. Records are still kept and retried in their order, so that
an older revision is rarely shown first.

Dead letters are durable, listed by `pagewire dlq`, counted by `status`, and can be dropped or redriven; a mark holds
the outcome. The process that owns the partition of the record's topic processes the parked copy with the stage's own
handler; the offset in the topic was committed before. A crash between the work and the mark repeats the work. Like
dead letters, parked records are kept for 14 days; the log of changes keeps the pages for ever.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from time import monotonic

import structlog

from pipelines.operate.dead_letters.open_letters import OpenLetters
from pipelines.runtime.bus import Bus
from pipelines.runtime.dead_letters import DeadLetter, entry, original_headers
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import Record
from pipelines.runtime.stage import Stage
from schemas.keys import page_of_part, parse_page_key
from schemas.topics import Topic, dead_letter_topic
from worker.in_flight import InFlight

log = structlog.get_logger(__name__)

LOOK_EVERY = 5.0  # seconds until records that an earlier owner of a partition parked are found
ROOM_POLL = 0.05  # seconds

Place = tuple[Topic, int, int]  # partition and offset among the dead letters of a topic


def site_of(record: Record) -> str | None:
    """The site of the page that the record's key names; None when it names none."""
    try:
        return parse_page_key(page_of_part((record.key or b"").decode())).site
    except ValueError:
        return None


@dataclass
class _SiteTrouble:
    error: Exception
    failures: int
    next: float  # monotonic seconds: when its oldest record is tried again


class Parking:
    """One per stage and lane of a process. On one event loop, no locks."""

    def __init__(
        self,
        stage: Stage,
        letters: OpenLetters,
        bus: Bus,
        wait: Callable[[int], float],
        own: Callable[[], Collection[tuple[str, int]]],
    ) -> None:
        """
        Args:
            wait: seconds until a site is tried again, after so many failures.
            own: the partitions (topic by the broker's name) that this process owns now.
        """
        self._stage = stage
        self._letters = letters
        self._bus = bus
        self._wait = wait
        self._own = own
        self._troubles: dict[str, _SiteTrouble] = {}
        self._at_work: set[Place] = set()
        self._not_before: dict[Place, tuple[float, int]] = {}  # monotonic seconds, failures
        self._epoch = -1
        self._wake = asyncio.Event()
        self._topics = {bus.name(topic): topic for topic in stage.routes}

    def trouble(self, record: Record) -> Exception | None:
        """The error of its site, for which a record from the topic is parked untried; None: try it."""
        if record.letter is not None or not self._troubles:
            return None
        known = self._troubles.get(site_of(record) or "")
        return known.error if known else None

    def site_failed(self, site: str, error: Exception) -> None:
        """A record failed because of its site."""
        known = self._troubles.get(site)
        if known is None:
            log.warning("site parked", stage=self._stage.name, lane=self._stage.lane, site=site, error=str(error))
        elif monotonic() < known.next:  # its try began before the first failure
            return
        failures = known.failures + 1 if known else 1
        self._troubles[site] = _SiteTrouble(error, failures, monotonic() + self._wait(failures))

    def passed(self, record: Record) -> None:
        """A record succeeded, so its site works (again)."""
        site = site_of(record)
        if site is not None and self._troubles.pop(site, None) is not None:
            log.info("site goes on", stage=self._stage.name, lane=self._stage.lane, site=site)
            self._wake.set()

    def partition_for(self, record: Record) -> int | None:
        """The dead letters' partition: the record's own number, so that the owner finds it. None: by its key."""
        topic = self._topics[record.topic]
        return record.partition if record.partition in self._letters.partitions(topic) else None

    def left(self, record: Record, *, stays: bool) -> None:
        """A parked record was tried; `stays`: it is still parked."""
        if record.letter is None:
            return
        place = (self._topics[record.topic], *record.letter)
        self._at_work.discard(place)
        if stays:
            failures = self._not_before.get(place, (0.0, 0))[1] + 1
            self._not_before[place] = monotonic() + self._wait(failures), failures
        else:
            self._not_before.pop(place, None)

    async def attend(self, in_flight: InFlight) -> None:
        """Retry parked records, for ever; cancel it to end it."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._rest()):
                    await self._wake.wait()
            self._wake.clear()
            try:
                await self.look(in_flight)
            except Retryable as err:
                log.warning("parked records cannot be looked up", stage=self._stage.name, error=str(err))

    async def look(self, in_flight: InFlight) -> None:
        """Read the parked records and start due ones. Raises: Retryable: the broker does not answer."""
        if in_flight.epoch != self._epoch:  # a rebalance has dropped the records in flight
            self._epoch = in_flight.epoch
            self._at_work.clear()
        await self._letters.look(tuple(self._stage.routes))
        for topic in self._stage.routes:
            if due := self._due(topic):
                await self._work_on(topic, due, in_flight)

    def _rest(self) -> float:
        soonest = min((trouble.next - monotonic() for trouble in self._troubles.values()), default=LOOK_EVERY)
        return max(0.1, min(LOOK_EVERY, soonest))

    def _due(self, topic: Topic) -> dict[tuple[int, int], bool]:
        """Places of due records, and whether the record is a probe for its failing site."""
        own = {number for name, number in self._own() if name == self._bus.name(topic)}
        sites: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for site, place in self._letters.parked(topic, self._stage.name, self._stage.lane):
            if place[0] in own:
                sites[site].append(place)
        self._forget(topic)
        now = monotonic()
        due: dict[tuple[int, int], bool] = {}
        for site, places in sites.items():
            trouble = self._troubles.get(site)
            if trouble is not None and now < trouble.next:
                continue
            ready = [
                place
                for place in (places[:1] if trouble else places)
                if (topic, *place) not in self._at_work and now >= self._not_before.get((topic, *place), (0.0, 0))[0]
            ]
            due |= dict.fromkeys(ready, trouble is not None)
        return due

    def _forget(self, topic: Topic) -> None:
        """Drop letters that another process or an operator has settled."""
        for place in [place for place in self._not_before if place[0] == topic and not self._letters.is_open(*place)]:
            del self._not_before[place]

    async def _work_on(self, topic: Topic, due: Mapping[tuple[int, int], bool], in_flight: InFlight) -> None:
        since: dict[int, int] = {}
        until: dict[int, int] = {}
        for number, offset in due:
            since[number] = min(offset, since.get(number, offset))
            until[number] = max(offset + 1, until.get(number, 0))
        async with self._bus.scan(dead_letter_topic(topic)) as scan:
            async for batch in scan.read(since=since, until=until):
                for record in self._parked(topic, batch, due):
                    assert record.letter
                    if not due[record.letter] and self.trouble(replace(record, letter=None)) is not None:
                        continue  # its site has failed again meanwhile
                    while in_flight.full((record.topic, record.partition)):  # noqa: ASYNC110 - `room` is the fetcher's
                        await asyncio.sleep(ROOM_POLL)
                    if in_flight.epoch != self._epoch:
                        return
                    self._at_work.add((topic, *record.letter))
                    in_flight.put(record)

    def _parked(self, topic: Topic, batch: Sequence[Record], due: Collection[tuple[int, int]]) -> Iterator[Record]:
        for record in batch:
            letter = entry(record)
            place = (record.partition, record.offset)
            if place in due and isinstance(letter, DeadLetter) and letter.topic == self._bus.name(topic):
                yield replace(
                    record,
                    topic=letter.topic,
                    partition=letter.partition,
                    offset=letter.offset,
                    headers=original_headers(record.headers),
                    timestamp_ms=letter.timestamp_ms,
                    letter=place,
                )
