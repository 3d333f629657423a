"""Status: lag of the stages, freshness of the sites, open dead letters; read from the servers.

Cut logs: messages that were deleted from a topic before a stage had read them, and the remedy.

No message waits any more, but the receipts of the deleted ones stay `queued`. The cause is a retention that was set on
one of our topics, or `kafka-delete-records`.

While the stage's commit lies before the oldest kept message, the broker shows the loss. Once the stage goes on, only
its worker's note in `worker.pauses` shows it, which that topic keeps for a day.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Protocol

from pipelines.operate.dead_letters.open_letters import OpenLetters
from pipelines.runtime.bus import BrokerView, Bus
from pipelines.runtime.errors import Retryable
from pipelines.runtime.stage import StageGroup, all_groups
from schemas.base import WireError
from schemas.http import SiteStatus, StageStatus, SystemStatus
from schemas.letters import OpenLetterCount
from schemas.topics import CHANGES, PAUSES, TOPICS, Topic, all_topics
from schemas.worker import CUTS_KEY, PAUSES_KEY, PauseNote

# The other topics lose only messages that are too old to matter.
KEPT = tuple(topic for topic in TOPICS if topic.retention_ms is None)

SAVE_AGAIN = (
    "what was saved then is not searchable, its receipts stay queued: `pagewire reconcile SITE` for every connector, "
    "`pagewire import` for what has none"
)
REPAIR = "`pagewire index audit SITE --repair` sends what is missing through the stages again"


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


RATE_SECONDS = 60.0  # over which a rate is taken
NOTE_TTL = 75.0  # seconds; a paused worker repeats its note every 30, unless it died
CUT_TTL = timedelta(days=1)  # as long as the topic keeps the note
FIRST_LOOK = 0.5  # seconds between the first two looks for a rate: workers commit as often


class StatusIndex(Protocol):
    """Elasticsearch for the status (adapters.elastic.bundle.Elastic). Both methods raise Retryable."""

    async def ping(self) -> None:
        """Return when it answers and all its primaries are there."""

    async def site_statuses(self, sites: Sequence[str]) -> Sequence[SiteStatus]:
        """The status of each site, in this order; a fault is its `problem`."""


class StatusReader:
    """Looks at Kafka and Elasticsearch. One per process; close it last."""

    def __init__(self, sites: Iterable[str], bus: Bus, index: StatusIndex, letters: OpenLetters) -> None:
        self._sites = tuple(sites)
        self._bus = bus
        self._index = index
        self._letters = letters
        self._stack = AsyncExitStack()
        self._broker: BrokerView | None = None
        self._connecting = asyncio.Lock()
        self._looks: deque[tuple[float, dict[StageGroup, int]]] = deque()

    async def aclose(self) -> None:
        await self._stack.aclose()

    async def status(self, sites: Sequence[str] | None = None) -> SystemStatus:
        """The status now; a service that does not answer is false, and its part is empty.

        Args:
            sites: only these, because each costs time; default: all.
        """
        looks = (
            self._stages(),
            self._index.site_statuses(self._sites if sites is None else sites),
            self._unfit_topics(),
            self._paused(),
            self._cut(),
        )
        stages, looked, *wrong = await asyncio.gather(*looks, return_exceptions=True)
        problems = [line for lines in wrong if not isinstance(lines, BaseException) for line in lines]
        if isinstance(looked, Retryable):
            problems.append(f"Elasticsearch: {looked}")  # away, or it refuses our key
        for part in (stages, looked, *wrong):
            if isinstance(part, BaseException) and not isinstance(part, Retryable):
                raise part
        return SystemStatus(
            at=datetime.now(UTC),
            kafka=not isinstance(stages, BaseException),
            elasticsearch=not isinstance(looked, BaseException),
            stages=() if isinstance(stages, BaseException) else stages,
            sites=() if isinstance(looked, BaseException) else self._with_parked(looked),
            problems=tuple(problems),
        )

    async def ready(self) -> tuple[bool, dict[str, str]]:
        """Whether Kafka and Elasticsearch answer, and the error of each that does not."""
        wrong: dict[str, str] = {}
        try:
            await (await self._connected()).partitions(())
        except Retryable as err:
            wrong["kafka"] = str(err)
        try:
            await self._index.ping()
        except Retryable as err:
            wrong["elasticsearch"] = str(err)
        return not wrong, wrong

    async def _connected(self) -> BrokerView:
        async with self._connecting:
            if self._broker is None:
                self._broker = await self._stack.enter_async_context(self._bus.view())
            return self._broker

    async def _stages(self) -> tuple[StageStatus, ...]:
        client = await self._connected()
        looks = await asyncio.gather(self._moved(client), self._letters.look(), return_exceptions=True)
        if error := next((error for error in looks if error is not None), None):
            raise error
        behind = await client.lags([group for group, _ in all_groups()])
        dead = self._letters.counts()
        (then, before), (now, after) = self._looks[0], self._looks[-1]
        stages = []
        for group, entry in all_groups():
            # A topic's dead letters belong to both lanes, and are listed once.
            buried = () if group.lane == "bulk" else entry.reads
            stages.append(
                StageStatus(
                    stage=group.stage,
                    lane=group.lane,
                    topic=entry.reads[0].name,
                    lag=behind[group].lag,
                    rate=round(max(0, after[group] - before[group]) / max(now - then, 1e-3), 2),
                    members=behind[group].members,
                    dead_letters=_count(dead, buried, parked=False),
                    parked=_count(dead, buried, parked=True),
                )
            )
        return tuple(stages)

    async def _paused(self) -> tuple[str, ...]:
        """The paused stages, from their workers' notes."""
        newest = {(n.worker, n.stage, n.lane): n for n in await self._notes(PAUSES_KEY, timedelta(seconds=NOTE_TTL))}
        return tuple(
            f"stage {note.stage}{' (bulk)' if note.lane == 'bulk' else ''} of {note.worker} is paused since "
            f"{note.since:%Y-%m-%d %H:%M:%S} UTC: {note.code}: {note.reason}"
            for note in newest.values()
            if not note.over
        )

    async def _cut(self) -> tuple[str, ...]:
        """Messages deleted before a stage had read them: from the broker, and from workers' notes."""
        client, found = await self._connected(), dict[str, str]()
        begins = {
            topic: {number: begin for number, (begin, _) in spans.items()}
            for topic, spans in (await client.spans(KEPT)).items()
        }
        groups = [group for group, _ in all_groups()]
        for group, offsets in zip(groups, await asyncio.gather(*map(client.committed, groups)), strict=True):
            committed: dict[Topic, dict[int, int]] = {}
            for (topic, number), offset in offsets.items():
                committed.setdefault(topic, {})[number] = offset
            for topic, oldest in begins.items():
                if missed := gone(committed.get(topic, {}), oldest):
                    name = self._bus.name(topic)
                    said = sentence(group.name(name.removesuffix(topic.name)), topic, name, missed)
                    found[said] = said
        for note in await self._notes(CUTS_KEY, CUT_TTL):
            found[note.reason] = f"{note.reason} (seen at {note.at:%Y-%m-%d %H:%M} UTC)"
        return tuple(found.values())

    async def _notes(self, key: str, age: timedelta) -> list[PauseNote]:
        """The workers' notes, oldest first."""
        since = datetime.now(UTC) - age
        if PAUSES not in await (await self._connected()).partitions([PAUSES]):
            return []
        async with self._bus.reader(PAUSES) as log:
            records = await log.of_key(key, round(since.timestamp() * 1000))
        notes = []
        for record in records:
            with suppress(WireError):
                notes.append(PauseNote.decode(record.value))
        return notes

    def _with_parked(self, sites: Iterable[SiteStatus]) -> tuple[SiteStatus, ...]:
        """The sites with their parked messages, as of the look of `_stages`, and the reasons."""
        counts: defaultdict[str | None, list[OpenLetterCount]] = defaultdict(list)
        for letters in self._letters.counts():
            if letters.parked:
                counts[letters.site].append(letters)
        found = []
        for site in sites:
            if own := counts.get(site.site):
                why = ", ".join(sorted({f"{letters.stage}: {letters.code}" for letters in own}))
                said = f"{sum(letters.count for letters in own):,} messages are parked ({why}); see `pagewire dlq list`"
                problem = f"{site.problem}; {said}" if site.problem else f"site {site.site}: {said}"
                site = site.model_copy(update={"parked": sum(letters.count for letters in own), "problem": problem})
            found.append(site)
        return tuple(found)

    async def _moved(self, client: BrokerView) -> None:
        """Look, at least twice, so that there is a rate."""
        if not self._looks:
            await self._look(client)
            await asyncio.sleep(FIRST_LOOK)
        await self._look(client)

    async def _look(self, client: BrokerView) -> None:
        """Store the progress of every stage."""
        groups = [group for group, _ in all_groups()]
        offsets = await asyncio.gather(*map(client.committed, groups))
        done = {group: sum(its.values()) for group, its in zip(groups, offsets, strict=True)}
        self._looks.append((monotonic(), done))
        while self._looks[0][0] < monotonic() - RATE_SECONDS and len(self._looks) > 2:
            self._looks.popleft()

    async def _unfit_topics(self) -> list[str]:
        """Missing topics, topics with too few copies, and those with fewer partitions than wanted.

        A stage with a missing topic has no lag, so its status would look good.
        """
        topics, broker = list(all_topics()), await self._connected()
        there = await broker.partitions(topics)
        missing = [self._bus.name(topic) for topic in topics if topic not in there]
        short = [*await broker.short_of_copies(topics), *await broker.short_of_partitions(topics)]
        return [*(f"topic {name} is not there; `pagewire topics` makes it" for name in missing), *short]


def _count(letters: Iterable[OpenLetterCount], topics: Iterable[Topic], *, parked: bool) -> int:
    names = {topic.name for topic in topics}
    return sum(some.count for some in letters if some.topic in names and some.parked == parked)
