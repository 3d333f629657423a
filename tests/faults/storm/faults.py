"""The catalogue: what can break, one small class each. `strike` breaks, `heal` makes good; both return when it is so.

Faults that work on the same thing share a lock (`needs`) and come one after the other; the others overlap.
"""

from __future__ import annotations

import asyncio
import signal
from random import Random
from typing import ClassVar, Literal

from tests.faults.rig import until
from tests.faults.storm import elastic_proxy, scripted_embedder, topics
from tests.faults.storm.crew import READY_LIMIT
from tests.faults.storm.die_at import POINTS, VARIABLE
from tests.faults.storm.poison import POISONS
from tests.faults.storm.world import World

SESSION = 10.0  # seconds until the broker gives a silent worker's partitions to others (worker)
DIES_WITHIN = 20.0  # seconds that a worker gets to come to the point where it dies
DIE_AT = "tests.faults.storm.die_at"

Thing = Literal["workers", "kafka", "elastic", "embedder", "gateways"]


class Fault:
    """One thing that goes wrong. `random` decides what is left open; the same seed decides the same."""

    needs: ClassVar[tuple[Thing, ...]]
    hold: ClassVar[tuple[float, float]] = (1.0, 4.0)  # seconds between strike and heal

    def __init__(self, random: Random) -> None:
        self.random = random
        self.struck = True
        self.seconds = random.uniform(*self.hold)

    async def strike(self, world: World) -> None:
        raise NotImplementedError

    async def heal(self, world: World) -> None:
        """What heals by itself has nothing to do here."""

    def __str__(self) -> str:
        return type(self).__name__

    def one_worker(self, world: World) -> str:
        return self.random.choice(world.workers)


class WorkerKilled(Fault):
    needs = ("workers",)
    hold = (0.0, 4.0)

    async def strike(self, world: World) -> None:
        self.name = self.one_worker(world)
        await world.crew.kill(self.name)

    async def heal(self, world: World) -> None:
        world.crew.start(self.name)
        await world.crew.ready(self.name)


class WorkerDiesAt(Fault):
    """At a chosen point of its work (die_at.py)."""

    needs = ("workers",)
    hold = (0.0, 0.0)
    point: ClassVar[str]

    async def strike(self, world: World) -> None:
        self.name = self.one_worker(world)
        await world.crew.stop(self.name)
        times = self.random.randint(1, 6)
        world.crew.start(self.name, program=DIE_AT, extra={VARIABLE: f"{self.point}:{times}"})
        member = world.crew.members[self.name]
        await until(f"{self.name} is ready or gone", lambda: member.ready or not member.alive, READY_LIMIT)
        try:
            await world.crew.ended(self.name, limit=DIES_WITHIN)
        except AssertionError:  # no work came its way
            self.struck = False
            await world.crew.kill(self.name)

    async def heal(self, world: World) -> None:
        world.crew.start(self.name)
        await world.crew.ready(self.name)

    def __str__(self) -> str:
        return f"WorkerDiesAt {self.point}"


def _dies_at(point: str) -> type[WorkerDiesAt]:
    return type(f"WorkerDiesAt {point}", (WorkerDiesAt,), {"point": point})


class WorkerFrozen(Fault):
    """Longer than its session lasts: others take over, then it goes on as if nothing had been."""

    needs = ("workers",)
    hold = (SESSION + 1.5, SESSION + 4.0)

    async def strike(self, world: World) -> None:
        self.name = self.one_worker(world)
        world.crew.signal(self.name, signal.SIGSTOP)

    async def heal(self, world: World) -> None:
        world.crew.signal(self.name, signal.SIGCONT)


class WorkerHiccup(WorkerFrozen):
    """Shorter than its session lasts."""

    hold = (1.0, 6.0)


class RollingRestart(Fault):
    needs = ("workers",)
    hold = (0.0, 0.0)

    async def strike(self, world: World) -> None:
        for name in world.workers:
            await world.crew.stop(name)
            world.crew.start(name)
            await world.crew.ready(name)


class JoinLeave(Fault):
    """One more worker comes and goes, again and again."""

    needs = ("workers",)
    hold = (0.0, 0.0)
    NAME = "worker-extra"

    async def strike(self, world: World) -> None:
        if self.NAME not in world.crew.members:
            world.crew.add(self.NAME, "worker", "ingest", program=world.shape.program, extra=world.shape.extra)
        for _ in range(self.random.randint(2, 3)):
            world.crew.start(self.NAME)
            await world.crew.ready(self.NAME)
            await asyncio.sleep(self.random.uniform(0, 1))
            await (world.crew.stop if self.random.random() < 0.7 else world.crew.kill)(self.NAME)


class WholeReplay(Fault):
    """Every group reads its topics again from the beginning."""

    needs = ("workers", "kafka")
    hold = (0.0, 0.0)

    async def strike(self, world: World) -> None:
        await asyncio.gather(*map(world.crew.stop, world.workers))
        world.note(f"rewound over {await topics.rewind(world)} messages")

    async def heal(self, world: World) -> None:
        for name in world.workers:
            world.crew.start(name)
        await world.crew.ready(*world.workers)


class KafkaKilled(Fault):
    needs = ("kafka",)

    async def strike(self, world: World) -> None:
        world.engine.kafka.kill()

    async def heal(self, world: World) -> None:
        world.engine.kafka.start()
        await world.engine.kafka.serves()


class KafkaFrozen(Fault):
    needs = ("kafka",)
    hold = (2.0, 12.0)

    async def strike(self, world: World) -> None:
        world.engine.kafka.pause()

    async def heal(self, world: World) -> None:
        world.engine.kafka.resume()
        await world.engine.kafka.serves()


class ElasticKilled(Fault):
    needs = ("elastic",)

    async def strike(self, world: World) -> None:
        world.engine.elastic.kill()

    async def heal(self, world: World) -> None:
        world.engine.elastic.start()
        await world.engine.elastic.serves()


class ElasticFrozen(Fault):
    needs = ("elastic",)
    hold = (2.0, 8.0)

    async def strike(self, world: World) -> None:
        world.engine.elastic.pause()

    async def heal(self, world: World) -> None:
        world.engine.elastic.resume()
        await world.engine.elastic.serves()


class ElasticMoody(Fault):
    """Answers as the proxy scripts them."""

    needs = ("elastic",)
    hold = (3.0, 8.0)
    mood: ClassVar[elastic_proxy.Mood]

    async def strike(self, world: World) -> None:
        world.proxy.mood = self.mood

    async def heal(self, world: World) -> None:
        world.proxy.mood = elastic_proxy.CALM


class ElasticRefuses(ElasticMoody):
    mood = elastic_proxy.Mood(refuse=0.4)


class BulkPartlyRefused(ElasticMoody):
    mood = elastic_proxy.Mood(refuse_items=0.3)


class BulkPartlyDisowned(ElasticMoody):
    """Items are applied although the answer says 429 or 503."""

    mood = elastic_proxy.Mood(disown_items=0.3)


class AnswerLost(ElasticMoody):
    """Applied, and the connection breaks before the answer."""

    mood = elastic_proxy.Mood(lose_answers=0.3)


class ElasticSlow(ElasticMoody):
    mood = elastic_proxy.Mood(delay=3.0)


class ElasticCrawls(ElasticMoody):
    """Slower than clients wait: what they gave up on is applied later, behind their next tries."""

    hold = (10.0, 25.0)
    mood = elastic_proxy.Mood(delay=28.0)


class IndexBlocked(Fault):
    """A block on the site's index, by hand or by a disk that is full."""

    needs = ("elastic",)
    block: ClassVar[str]

    async def strike(self, world: World) -> None:
        await self._set(world, True)

    async def heal(self, world: World) -> None:
        await self._set(world, None)

    async def _set(self, world: World, value: bool | None) -> None:
        await world.ask_elastic("PUT", f"/pagewire-{world.site}/_settings", {f"index.blocks.{self.block}": value})


class IndexReadOnly(IndexBlocked):
    block = "write"


class DiskFull(IndexBlocked):
    block = "read_only_allow_delete"


class EmbedderMoody(Fault):
    needs = ("embedder",)
    hold = (3.0, 8.0)
    mood: ClassVar[scripted_embedder.Mood]

    async def strike(self, world: World) -> None:
        world.embedder.mood = self.mood

    async def heal(self, world: World) -> None:
        world.embedder.mood = scripted_embedder.CALM


class EmbedderUnavailable(EmbedderMoody):
    mood = scripted_embedder.Mood(status=503)


class EmbedderRateLimits(EmbedderMoody):
    mood = scripted_embedder.Mood(status=429)


class EmbedderSlow(EmbedderMoody):
    mood = scripted_embedder.Mood(delay=2.0)


class WrongDimensions(EmbedderMoody):
    """Pauses who embeds. A worker that starts meanwhile parks what it meets, which comes back by itself afterwards."""

    mood = scripted_embedder.Mood(dims=8)
    hold = (10.0, 20.0)  # long enough that pages meet it again and again


class EmbedderDown(Fault):
    needs = ("embedder",)
    hold = (2.0, 6.0)

    async def strike(self, world: World) -> None:
        await world.embedder.down()

    async def heal(self, world: World) -> None:
        await world.embedder.up()


class GatewayKilled(Fault):
    """With requests open: those that wait for a receipt, those that are just being accepted."""

    needs = ("gateways",)
    hold = (0.0, 2.0)

    async def strike(self, world: World) -> None:
        self.name = self.random.choice(list(world.gateways))
        await world.crew.kill(self.name)

    async def heal(self, world: World) -> None:
        world.crew.start(self.name)
        await world.crew.ready(self.name)


class Poisoned(Fault):
    """Bytes that no stage can work on, straight into a topic."""

    needs = ()
    hold = (0.0, 0.0)

    async def strike(self, world: World) -> None:
        poison = self.random.choice(POISONS)(world, self.random)
        # Not while there is no Kafka to poison.
        async with world.locks["kafka"], topics.writer(world) as producer:
            await asyncio.wait_for(producer.send_and_wait(world.prefix + poison.topic, poison.value, poison.key), 60.0)
        world.history.poison.append(poison)


# By lane: within a lane one after the other, the lanes side by side.
CATALOGUE: dict[str, tuple[type[Fault], ...]] = {
    "workers": (
        WorkerKilled,
        *map(_dies_at, POINTS),
        WorkerFrozen,
        WorkerHiccup,
        RollingRestart,
        JoinLeave,
        WholeReplay,
    ),
    "servers": (KafkaKilled, KafkaFrozen),
    "elastic": (
        ElasticKilled,
        ElasticFrozen,
        ElasticRefuses,
        BulkPartlyRefused,
        BulkPartlyDisowned,
        AnswerLost,
        ElasticSlow,
        ElasticCrawls,
        IndexReadOnly,
        DiskFull,
    ),
    "embedder": (EmbedderUnavailable, EmbedderRateLimits, EmbedderSlow, WrongDimensions, EmbedderDown),
    "edge": (GatewayKilled, Poisoned),
}
