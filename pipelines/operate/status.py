"""Status: how far behind the stages are, how fresh the sites, what is dead. Asked of the servers, never guessed."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from time import monotonic

from adapters.elastic.bundle import Elastic
from adapters.elastic.indexes import IndexUnfit
from adapters.kafka import Broker, broker, group_id, lags, prefixed
from pipelines.operate.letters.open_letters import OpenLetters
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import Lane
from schemas.http import SiteStatus, StageStatus, SystemStatus
from schemas.topics import CHANGES, CHUNKS, EMBEDDINGS, RECEIPTS, REPHRASED, REQUESTS, RETRIEVED, Topic, all_topics
from wiring.settings import Settings

# What each stage reads, in which lane (wiring/stages.py).
STAGES: dict[tuple[str, Lane | None], tuple[Topic, ...]] = {
    ("chunk", "save"): (CHANGES,),
    ("embed", "save"): (CHUNKS,),
    ("index", "save"): (EMBEDDINGS, RECEIPTS),
    ("chunk", "bulk"): (CHANGES,),
    ("embed", "bulk"): (CHUNKS,),
    ("index", "bulk"): (EMBEDDINGS, RECEIPTS),
    ("rephrase", None): (REQUESTS,),
    ("retrieve", None): (REPHRASED,),
    ("answer", None): (RETRIEVED,),
}
RATE_SECONDS = 60.0  # over which a rate is taken
FIRST_LOOK = 1.0  # seconds between the two looks a first rate needs


class StatusReader:
    """Looks at Kafka and Elasticsearch. One per process; close it last."""

    def __init__(self, settings: Settings, elastic: Elastic, letters: OpenLetters) -> None:
        self._settings = settings
        self._groups = {key: group_id(settings, *key) for key in STAGES}
        self._elastic = elastic
        self._letters = letters
        self._stack = AsyncExitStack()
        self._broker: Broker | None = None
        self._connecting = asyncio.Lock()
        self._looks: deque[tuple[float, dict[str, int]]] = deque()

    async def aclose(self) -> None:
        await self._stack.aclose()

    async def status(self) -> SystemStatus:
        """What can be said now; a service that does not answer shows as false, with nothing of it."""
        looks = (self._stages(), self._sites(), self._missing_topics())
        stages, sites, missing = await asyncio.gather(*looks, return_exceptions=True)
        for part in (stages, sites, missing):
            if isinstance(part, BaseException) and not isinstance(part, Retryable):
                raise part
        return SystemStatus(
            at=datetime.now(UTC),
            kafka=not isinstance(stages, BaseException),
            elasticsearch=not isinstance(sites, BaseException),
            stages=() if isinstance(stages, BaseException) else stages,
            sites=() if isinstance(sites, BaseException) else sites,
            problems=() if isinstance(missing, BaseException) else missing,
        )

    async def ready(self) -> tuple[bool, dict[str, str]]:
        """Whether Kafka and Elasticsearch answer, and what is wrong with each that does not."""
        wrong: dict[str, str] = {}
        try:
            await (await self._connected()).topics()
        except Retryable as err:
            wrong["kafka"] = str(err)
        try:
            await self._elastic.ping()
        except Retryable as err:
            wrong["elasticsearch"] = str(err)
        return not wrong, wrong

    async def _connected(self) -> Broker:
        async with self._connecting:
            if self._broker is None:
                self._broker = await self._stack.enter_async_context(broker(self._settings))
            return self._broker

    async def _stages(self) -> tuple[StageStatus, ...]:
        client = await self._connected()
        if not self._looks:
            await self._look(client)
            await asyncio.sleep(FIRST_LOOK)
        await self._look(client)
        behind = await lags(client, self._settings, {self._groups[key]: topics for key, topics in STAGES.items()})
        await self._letters.look()
        dead = self._letters.counts()
        (then, before), (now, after) = self._looks[0], self._looks[-1]
        stages = []
        for (stage, lane), topics in STAGES.items():
            group = self._groups[stage, lane]
            # A topic's dead letters are of both lanes: told once.
            buried = () if lane == "bulk" else topics
            stages.append(
                StageStatus(
                    stage=stage,
                    lane=lane,
                    topic=topics[0].name,
                    lag=behind[group].lag,
                    rate=round(max(0, after[group] - before[group]) / max(now - then, 1e-3), 2),
                    members=behind[group].members,
                    dead_letters=sum(letters.count for letters in dead if letters.topic in {t.name for t in buried}),
                )
            )
        return tuple(stages)

    async def _look(self, client: Broker) -> None:
        """Remember how far every stage is."""
        done = {group: sum((await client.committed(group)).values()) for group in self._groups.values()}
        self._looks.append((monotonic(), done))
        while self._looks[0][0] < monotonic() - RATE_SECONDS and len(self._looks) > 2:
            self._looks.popleft()

    async def _sites(self) -> tuple[SiteStatus, ...]:
        return tuple(await asyncio.gather(*map(self._site, self._settings.sites)))

    async def _site(self, site: str) -> SiteStatus:
        try:
            return await self._elastic.pages.site_status(site)
        except IndexUnfit as err:
            return SiteStatus(
                site=site,
                pages=0,
                chunks=0,
                freshness_p50_ms=None,
                freshness_p95_ms=None,
                embedder=None,
                problem=str(err),
            )

    async def _missing_topics(self) -> tuple[str, ...]:
        """Nothing waits in a topic that is not there, so its stage would look well."""
        there = await (await self._connected()).topics()
        names = [prefixed(self._settings, topic) for topic in all_topics()]
        return tuple(f"topic {name} is not there; `pagewire topics` makes it" for name in names if name not in there)
