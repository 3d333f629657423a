"""What can break where there are several servers; strikes and heals as the storm's faults do (tests/faults/storm)."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Collection, Mapping
from functools import partial
from random import Random
from typing import Any, ClassVar

import aiohttp
from aiokafka import TopicPartition
from aiokafka.admin import NewPartitions, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from adapters.kafka.repair import reassign, reassignments
from pipelines.runtime.errors import Retryable
from schemas.topics import ANSWERS, CHANGES, CHUNKS, EMBEDDINGS, Topic
from tests.faults.cluster.broker_proxy import Way
from tests.faults.cluster.servers import BROKERS, Cluster
from tests.faults.rig import until
from tests.faults.storm import topics
from tests.faults.storm.commands import pagewire
from tests.faults.storm.faults import DiskFull, Fault, IndexReadOnly, WorkerFrozen, WorkerKilled
from tests.faults.storm.readback import said_of
from tests.faults.storm.storm import Kind, Lanes
from tests.faults.storm.world import World

WANTED = 3  # copies
MIN_IN_SYNC = "min.insync.replicas"
TOPIC_CONFIG_SOURCE = 1  # DescribeConfigs: set on the topic itself
REPLICATION = {"PAGEWIRE_REPLICATION": str(WANTED)}
IN_SYNC_LIMIT = 300.0  # seconds; on a machine with much else to do a replica takes two minutes
NAMED_LIMIT = 120.0  # seconds
REPAIR_LIMIT = 600.0  # seconds; an audit waits for the pipeline
FLOOD_LIMIT = 60.0  # seconds


class ClusterFault(Fault):
    """A fault of these servers."""

    def __init__(self, cluster: Cluster, random: Random) -> None:
        super().__init__(random)
        self.cluster = cluster


class TopicsRepaired(ClusterFault):
    """Topics made with one copy get three, by the command, under saves; the second time there is nothing to do."""

    needs = ("kafka",)
    hold = (0.0, 0.0)

    async def strike(self, world: World) -> None:
        before = await _copies(world)
        assert set(before.values()) == {1}, before
        world.crew.environment = {**world.crew.environment, **REPLICATION}
        repaired = await self._repair(world)
        assert {one["topic"] for one in repaired} == set(before)
        assert {(one["copies_before"], one["copies"], one["min_in_sync"]) for one in repaired} == {(1, WANTED, 2)}
        assert set((await _copies(world)).values()) == {WANTED}
        assert set((await _least_in_sync(world)).values()) == {"2"}
        assert await self._repair(world) == []

    async def _repair(self, world: World) -> Any:
        ended = await pagewire(world, "topics", "--repair", "--json")
        assert ended is not None
        assert ended.code == 0, ended.said
        said = json.loads(ended.said[ended.said.index("{\n") :])  # bars and logs come before it
        assert said["wanted"] == WANTED
        return said["repaired"]


class BrokerKilled(ClusterFault):
    """The one that leads most; every broker is a controller, too."""

    needs = ("kafka",)
    hold = (3.0, 8.0)

    async def strike(self, world: World) -> None:
        self.number = await _leads_most(world)
        world.note(f"broker {self.number} is killed")
        self.cluster.brokers[self.number].kill()

    async def heal(self, world: World) -> None:
        self.cluster.brokers[self.number].start()
        await self.cluster.brokers[self.number].serves()
        await _in_sync(world)


class BrokerFrozen(ClusterFault):
    """Until others have taken over; then it goes on as if nothing had been."""

    needs = ("kafka",)
    hold = (8.0, 14.0)

    async def strike(self, world: World) -> None:
        self.number = await _leads_most(world)
        world.note(f"broker {self.number} is frozen")
        self.cluster.brokers[self.number].pause()

    async def heal(self, world: World) -> None:
        self.cluster.brokers[self.number].resume()
        await _in_sync(world)


class TooFewInSync(BrokerKilled):
    """One broker is dead, and all three copies would have to be in sync: Kafka refuses what is sent."""

    hold = (6.0, 10.0)

    async def strike(self, world: World) -> None:
        await super().strike(world)
        await until("somebody leads every partition", partial(_led, world, but=self.number), IN_SYNC_LIMIT)
        await _set_least_in_sync(world, WANTED)

    async def heal(self, world: World) -> None:
        await _set_least_in_sync(world, WANTED - 1)
        await super().heal(world)


class TooFewInSyncForLong(TooFewInSync):
    """Longer than a save waits for Kafka: 503."""

    hold = (35.0, 45.0)


class TwoBrokersKilled(ClusterFault):
    """Nobody is left to decide who leads."""

    needs = ("kafka",)
    hold = (10.0, 40.0)

    async def strike(self, world: World) -> None:
        self.numbers = self.random.sample(BROKERS, 2)
        world.note(f"brokers {self.numbers} are killed")
        for number in self.numbers:
            self.cluster.brokers[number].kill()

    async def heal(self, world: World) -> None:
        for number in self.numbers:
            self.cluster.brokers[number].start()
        for number in self.numbers:
            await self.cluster.brokers[number].serves()
        await _in_sync(world)


class BrokersRestarted(ClusterFault):
    """One after the other, as for an upgrade."""

    needs = ("kafka",)
    hold = (0.0, 0.0)

    async def strike(self, world: World) -> None:
        for broker in self.cluster.brokers.values():
            await asyncio.to_thread(broker.stop)
            broker.start()
            await broker.serves()
            await _in_sync(world)


class BrokersRestartedTwice(BrokersRestarted):
    """Clients are still finding their coordinators when these go again."""

    async def strike(self, world: World) -> None:
        await super().strike(world)
        await super().strike(world)


class Reassigned(ClusterFault):
    """Every partition of ours moves to two or three brokers of a new order, again and again, and back to three."""

    needs = ("kafka",)
    hold = (0.0, 0.0)

    async def strike(self, world: World) -> None:
        for copies in (*self.random.choices((2, WANTED), k=3), WANTED):
            async with topics.admin(world) as admin:
                there = await _described(world, admin)
                await reassign(
                    admin,
                    {
                        topic["topic"]: {
                            p["partition"]: self.random.sample(BROKERS, copies) for p in topic["partitions"]
                        }
                        for topic in there
                    },
                )

            async def moved() -> bool:
                try:
                    async with topics.admin(world) as admin:
                        return not await reassignments(admin)
                except (Retryable, KafkaError):
                    return False

            await until("partitions are where they were sent", moved, IN_SYNC_LIMIT)


class PartitionsAdded(ClusterFault):
    """A running topic gets one more: keys move, and their older records stay where they were."""

    needs = ("kafka",)
    hold = (0.0, 0.0)
    MOST: ClassVar[int] = 6
    topics: ClassVar[tuple[Topic, ...]] = (CHUNKS, EMBEDDINGS, ANSWERS)

    async def strike(self, world: World) -> None:
        for topic in self.topics:
            name = world.prefix + topic.name
            count = world.partitions[name] + 1
            if count > self.MOST:
                self.struck = False
                return
            async with topics.admin(world) as admin:
                await admin.create_partitions({name: NewPartitions(count)})
            world.partitions[name] = count

            async def there(name: str = name, count: int = count) -> bool:
                async with topics.admin(world) as admin:
                    [described] = await admin.describe_topics([name])
                    return len(described["partitions"]) == count and all(
                        p["leader"] >= 0 for p in described["partitions"]
                    )

            await until(f"{name} has {count} partitions", there)


class PartitionsAddedToTheLog(PartitionsAdded):
    """Two gateways may send one page's changes into two partitions until both have heard of it."""

    topics = (CHANGES, *PartitionsAdded.topics)


class BrokerCutOff(ClusterFault):
    """Pagewire cannot reach the broker that leads most; the other brokers can, so it goes on leading."""

    needs = ("kafka",)
    hold = (10.0, 40.0)

    async def strike(self, world: World) -> None:
        self.number = await _leads_most(world)
        self.ways = self.chosen(self.number)
        world.note(f"broker {self.number} is cut off")
        for way in self.ways:
            way.cut()

    def chosen(self, number: int) -> list[Way]:
        return list(self.cluster.to_clients[number].ways)

    async def heal(self, world: World) -> None:
        for way in self.ways:
            way.mend()
        await _in_sync(world)


class BrokerCutOffFromBrokers(BrokerCutOff):
    """Others do not get what it has: accepted is nothing until they are in sync no more, and then refused."""

    hold = (20.0, 40.0)

    def chosen(self, number: int) -> list[Way]:
        return list(self.cluster.to_brokers[number].ways)


class BrokerCutOffFromAll(BrokerCutOff):
    """But for the controllers, to whom it is as well as ever."""

    def chosen(self, number: int) -> list[Way]:
        return [*self.cluster.to_clients[number].ways, *self.cluster.to_brokers[number].ways]


class OneWayCut(BrokerCutOff):
    """What the broker answers is lost, or what it is asked."""

    def chosen(self, number: int) -> list[Way]:
        asked = self.random.random() < 0.5
        proxies = (self.cluster.to_clients[number], self.cluster.to_brokers[number])
        some = self.random.choice([proxies[:1], proxies])
        return [proxy.to_broker if asked else proxy.from_broker for proxy in some]


class NetworkSlow(ClusterFault):
    """As between continents: everything that goes to a broker or comes from one takes 200 ms."""

    needs = ("kafka",)
    hold = (15.0, 30.0)
    DELAY = 0.2  # seconds

    async def strike(self, world: World) -> None:
        self._set(self.DELAY)

    async def heal(self, world: World) -> None:
        self._set(0.0)
        await _in_sync(world)

    def _set(self, delay: float) -> None:
        for proxy in self.cluster.proxies:
            for way in proxy.ways:
                way.delay = delay


class ChunksDeleted(ClusterFault):
    """The embedder is away, and what waits for it is deleted from the topic: named by `status`, mended as that says."""

    needs = ("kafka", "elastic", "embedder", "workers")
    hold = (0.0, 0.0)
    BACKLOG = 8  # seconds of traffic

    async def strike(self, world: World) -> None:
        await world.embedder.down()
        name = world.prefix + CHUNKS.name
        await asyncio.sleep(self.BACKLOG)
        # Each lane reads all messages, and works on its own.
        groups = (f"{world.prefix}pagewire-embed", f"{world.prefix}pagewire-embed-bulk")
        waiting = [record for group in groups for record in await topics.waiting(world, group, name)]
        ends = dict.fromkeys(topics.partitions(world, [name]), 0)
        for record in waiting:
            tp = TopicPartition(name, record.partition)
            ends[tp] = max(ends[tp], record.offset + 1)
        await _configure(world, {"cleanup.policy": "compact,delete"}, name)  # else Kafka deletes nothing
        async with topics.admin(world) as admin:
            await admin.delete_records({tp: RecordsToDelete(end) for tp, end in ends.items() if end})
        await _configure(world, {"cleanup.policy": "compact"}, name)
        said = [said_of(CHUNKS.name, record.value) for record in waiting]
        world.unread |= {(one["page"], one["order"]) for one in said if one}
        world.note(f"{len(waiting)} messages of {name} waited, and are deleted")
        self.struck = bool(waiting)
        if self.struck:
            await until("status names what is gone", partial(self._named, world, name), NAMED_LIMIT)

    async def _named(self, world: World, name: str) -> bool:
        ended = await pagewire(world, "status", "--json")
        assert ended is not None
        try:
            problems = json.loads(ended.said[ended.said.index("{") :])["problems"]
        except ValueError:
            return False
        return any(f"messages of {name}[" in line and "--repair" in line for line in problems)

    async def heal(self, world: World) -> None:
        await world.embedder.up()

        async def repaired() -> bool:
            ended = await pagewire(world, "audit", world.site, "--repair", limit=REPAIR_LIMIT)
            assert ended is not None
            world.note(f"pagewire index audit --repair: exit code {ended.code}")
            return ended.code == 0

        await until("an audit finds nothing more to repair", repaired, REPAIR_LIMIT)


class NodeKilled(ClusterFault):
    """An Elasticsearch node with shards; its copies on the other one take over."""

    needs = ("elastic",)
    hold = (4.0, 8.0)
    number: ClassVar[int] = 2

    async def strike(self, world: World) -> None:
        self.cluster.nodes[self.number].kill()

    async def heal(self, world: World) -> None:
        self.cluster.nodes[self.number].start()
        await self.cluster.nodes[self.number].serves()
        await _green(world, self.cluster)


class MasterKilled(NodeKilled):
    """The other node goes on, but decides nothing."""

    number = 1


class FloodStage(ClusterFault):
    """The nodes think that their disks are full: Elasticsearch itself blocks every index, and takes the blocks away."""

    needs = ("elastic",)
    hold = (10.0, 25.0)
    ROOM = "9000tb"  # free, below which a disk is full
    WATERMARKS: ClassVar[tuple[str, ...]] = ("low", "high", "flood_stage")

    async def strike(self, world: World) -> None:
        await self._set(world, threshold=True)
        await until("every index is blocked", partial(self._blocked, world, True), FLOOD_LIMIT)

    async def heal(self, world: World) -> None:
        await self._set(world, threshold=True, room="1b")  # as if somebody had made room
        await until("no index is blocked", partial(self._blocked, world, False), FLOOD_LIMIT)
        await self._set(world, threshold=False)

    async def _set(self, world: World, *, threshold: bool, room: str = ROOM) -> None:
        disk = {f"watermark.{name}": room if threshold else None for name in self.WATERMARKS}
        settings = {f"cluster.routing.allocation.disk.{name}": value for name, value in disk.items()}
        settings["cluster.routing.allocation.disk.threshold_enabled"] = True if threshold else None
        settings["cluster.info.update.interval"] = "10s" if threshold else None  # Elasticsearch: 30 s
        await world.ask_elastic("PUT", "/_cluster/settings", {"persistent": settings})

    async def _blocked(self, world: World, wanted: bool) -> bool:
        try:
            said = await world.ask_elastic("GET", "/pagewire*/_settings/index.blocks.*")
        except (AssertionError, aiohttp.ClientError, TimeoutError):
            return False
        blocked = {name for name, index in said.items() if "read_only_allow_delete" in json.dumps(index)}
        return blocked == set(await world.ask_elastic("GET", "/pagewire*/_alias")) if wanted else not blocked


class NodeFrozen(ClusterFault):
    needs = ("elastic",)
    hold = (5.0, 20.0)

    async def strike(self, world: World) -> None:
        self.number = self.random.choice(list(self.cluster.nodes))
        self.cluster.nodes[self.number].pause()

    async def heal(self, world: World) -> None:
        self.cluster.nodes[self.number].resume()
        await _green(world, self.cluster)


def lanes(cluster: Cluster, *, long: bool) -> Lanes:
    """By lane: within a lane one after the other, the lanes side by side."""

    def ours(*kinds: type[ClusterFault]) -> tuple[Kind, ...]:
        return tuple(partial(kind, cluster) for kind in kinds)

    if not long:
        return {
            "brokers": ours(TooFewInSync, BrokerFrozen),  # the first kills one, too
            "elastic": ours(NodeKilled),
            "topics": ours(PartitionsAdded),
            "workers": (WorkerFrozen,),
        }
    return {
        "brokers": ours(
            BrokerKilled,
            BrokerFrozen,
            TooFewInSync,
            TooFewInSyncForLong,
            TwoBrokersKilled,
            BrokersRestarted,
            BrokersRestartedTwice,
            Reassigned,
            PartitionsAddedToTheLog,
            BrokerCutOff,
            BrokerCutOffFromBrokers,
            BrokerCutOffFromAll,
            OneWayCut,
            NetworkSlow,
        ),
        "elastic": (*ours(NodeKilled, MasterKilled, NodeFrozen, FloodStage), IndexReadOnly, DiskFull),
        "topics": ours(ChunksDeleted),
        "workers": (WorkerFrozen, WorkerKilled),
    }


def chosen(cluster: Cluster, names: Collection[str]) -> Lanes:
    """Of the long form's lanes those faults that are named."""
    kinds = {lane: [kind for kind in own if _name(kind) in names] for lane, own in lanes(cluster, long=True).items()}
    if unknown := set(names) - {_name(kind) for own in kinds.values() for kind in own}:
        raise SystemExit(f"no such fault: {', '.join(sorted(unknown))}")
    return {lane: own for lane, own in kinds.items() if own}


def _name(kind: Kind) -> str:
    return (kind.func if isinstance(kind, partial) else kind).__name__


def repair(cluster: Cluster) -> Kind:
    """Comes before all others, which need the copies."""
    return partial(TopicsRepaired, cluster)


async def _described(world: World, admin: Any) -> list[Any]:
    return [topic for topic in await admin.describe_topics(None) if topic["topic"].startswith(world.prefix)]


async def _copies(world: World) -> dict[str, int]:
    """By topic the fewest copies of a partition that are in sync."""
    async with topics.admin(world) as admin:
        return {
            topic["topic"]: min(len(p["isr"]) for p in topic["partitions"]) for topic in await _described(world, admin)
        }


async def _leads_most(world: World) -> int:
    async with topics.admin(world) as admin:
        counts = Counter(p["leader"] for topic in await _described(world, admin) for p in topic["partitions"])
    return int(max(BROKERS, key=lambda number: counts[number]))


async def _led(world: World, but: int) -> bool:
    try:
        async with topics.admin(world) as admin:
            there = await admin.describe_topics(None)
    except (KafkaError, OSError):
        return False
    return all(p["leader"] not in (-1, but) for topic in there for p in topic["partitions"])


async def _in_sync(world: World) -> None:
    """Until every partition has all its copies in sync, Kafka's own, too."""

    async def all_in_sync() -> bool:
        try:
            async with topics.admin(world) as admin:
                there = await admin.describe_topics(None)
        except (KafkaError, OSError):
            return False
        return all(
            len(p["isr"]) == len(p["replicas"]) and p["leader"] >= 0 for topic in there for p in topic["partitions"]
        )

    await until("every copy is in sync", all_in_sync, IN_SYNC_LIMIT)


async def _settings(world: World, admin: Any) -> dict[str, dict[str, str]]:
    """What is set on each topic of ours itself."""
    names = [topic["topic"] for topic in await _described(world, admin)]
    answers = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name) for name in names])
    return {
        name: {entry[0]: entry[1] for entry in entries if entry[3] == TOPIC_CONFIG_SOURCE}
        for answer in answers
        for _, _, _, name, entries in answer.resources
    }


async def _least_in_sync(world: World) -> dict[str, str]:
    async with topics.admin(world) as admin:
        return {name: own.get(MIN_IN_SYNC, "") for name, own in (await _settings(world, admin)).items()}


async def _set_least_in_sync(world: World, least: int) -> None:
    await _configure(world, {MIN_IN_SYNC: str(least)})
    world.note(f"{MIN_IN_SYNC}={least}")


async def _configure(world: World, update: Mapping[str, str], *names: str) -> None:
    """These topics, or every one of ours; the request replaces all settings of a topic, so the others go along."""
    async with topics.admin(world) as admin:
        settings = await _settings(world, admin)
        await admin.alter_configs(
            [
                ConfigResource(ConfigResourceType.TOPIC, name, own | dict(update))
                for name, own in settings.items()
                if not names or name in names
            ]
        )


async def _green(world: World, cluster: Cluster) -> None:
    async def green() -> bool:
        try:
            said = await world.ask_elastic("GET", "/_cluster/health")
        except (AssertionError, aiohttp.ClientError, OSError, TimeoutError):
            return False
        return bool(said["status"] == "green" and said["number_of_nodes"] == len(cluster.nodes))

    await until("every shard has its replica", green, IN_SYNC_LIMIT)
