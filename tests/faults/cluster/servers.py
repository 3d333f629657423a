"""Three Kafka brokers, each a controller, too, and two Elasticsearch nodes, from the local engine's packages.

Whoever talks to a broker, Pagewire, this test, another broker, does so through a proxy; controllers talk directly.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from infra.engine import EngineProgress, LocalEngineSettings, jars
from infra.engine.servers import Server, elasticsearch_server, kafka_server, prepare_elasticsearch, prepare_kafka
from infra.engine.state import any_free, elasticsearch_serves, kafka_serves
from infra.running import HOST
from tests.faults.cluster.broker_proxy import BrokerProxy
from tests.faults.storm.own_engine import OwnEngine, OwnServer

BROKERS = (1, 2, 3)
NODES = (1, 2)
CLUSTER_ID = "pagewirepagewirefaultA"  # a UUID in Base64
KAFKA_HEAP = "256m"
ELASTIC_HEAP = "512m"
COPIES = str(len(BROKERS))
# As in production, but for some times.
BROKER_PROPERTIES = {
    "default.replication.factor": COPIES,
    "min.insync.replicas": "1",  # topics have their own
    "unclean.leader.election.enable": "false",
    "offsets.topic.replication.factor": COPIES,
    "transaction.state.log.replication.factor": COPIES,
    "transaction.state.log.min.isr": "2",
    # Leaders go back to where they are preferred (Kafka: looked at every 300 s, above 10 %).
    "leader.imbalance.check.interval.seconds": "5",
    "leader.imbalance.per.broker.percentage": "0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
    "replica.lag.time.max.ms": "15000",  # Kafka: 30 s; what cannot be reached for so long is in sync no more
}


@dataclass(frozen=True)
class Cluster:
    """All servers, by number."""

    brokers: Mapping[int, OwnServer]
    nodes: Mapping[int, OwnServer]
    to_clients: Mapping[int, BrokerProxy]  # before each broker, for all but ...
    to_brokers: Mapping[int, BrokerProxy]  # ... the other ones

    @property
    def proxies(self) -> tuple[BrokerProxy, ...]:
        return (*self.to_clients.values(), *self.to_brokers.values())

    @property
    def engine(self) -> OwnEngine:
        """As the storm knows its servers; it is not to damage these itself."""
        first, *others = self.nodes.values()
        return OwnEngine(self.brokers[1], first, tuple(node.address for node in others))


@asynccontextmanager
async def running_cluster(home: Path) -> AsyncIterator[Cluster]:
    """All servers, serving, as long as the context lasts."""
    await jars.fetch(LocalEngineSettings(home=home).cache, EngineProgress())
    ports = _Ports()
    to_clients = {number: BrokerProxy(ports.take(), ports.take()) for number in BROKERS}
    to_brokers = {number: BrokerProxy(ports.take(), ports.take()) for number in BROKERS}
    cluster = Cluster(_brokers(home, ports, to_clients, to_brokers), _nodes(home, ports), to_clients, to_brokers)
    servers = (*cluster.brokers.values(), *cluster.nodes.values())
    async with AsyncExitStack() as stack:
        for proxy in cluster.proxies:
            await stack.enter_async_context(proxy)
        for server in servers:
            stack.callback(server.close)
            server.start()
        await asyncio.gather(*(server.serves() for server in servers))
        yield cluster


def _brokers(
    home: Path, ports: _Ports, to_clients: Mapping[int, BrokerProxy], to_brokers: Mapping[int, BrokerProxy]
) -> dict[int, OwnServer]:
    controllers = {number: ports.take() for number in BROKERS}
    voters = ",".join(f"{number}@{HOST}:{port}" for number, port in controllers.items())
    bootstrap = ",".join(f"{HOST}:{proxy.port}" for proxy in to_clients.values())
    found = {}
    for number in BROKERS:
        settings = LocalEngineSettings(home=home / f"kafka-{number}", kafka_heap=KAFKA_HEAP)
        server = kafka_server(settings.root)
        clients, others, controller = to_clients[number], to_brokers[number], controllers[number]
        prepare_kafka(server, settings, clients.target, controller)
        listeners = {"PLAINTEXT": clients.target, "BROKERS": others.target, "CONTROLLER": controller}
        advertised = {"PLAINTEXT": clients.port, "BROKERS": others.port}
        own = {
            "node.id": str(number),
            "controller.quorum.voters": voters,
            "listeners": _listeners(listeners),
            "advertised.listeners": _listeners(advertised),
            **BROKER_PROPERTIES,
        }
        with (server.folder / "server.properties").open("a", encoding="ascii") as properties:
            properties.writelines(f"{name}={value}\n" for name, value in own.items())  # the last one counts
        _amend(server, {"cluster": CLUSTER_ID})
        found[number] = OwnServer(server, bootstrap, partial(kafka_serves, clients.target))
    return found


def _listeners(ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items())


def _nodes(home: Path, ports: _Ports) -> dict[int, OwnServer]:
    """The first is the master, also while the other one is away; with two that may be, none could be without both."""
    http = {number: ports.take() for number in NODES}
    transport = {number: ports.take() for number in NODES}
    found = {}
    for number in NODES:
        settings = LocalEngineSettings(home=home / f"elasticsearch-{number}", es_heap=ELASTIC_HEAP)
        server = elasticsearch_server(settings.root)
        prepare_elasticsearch(server, settings, http[number])
        _amend(
            server,
            {
                "discovery.type": "multi-node",
                "node.name": f"node-{number}",
                "node.roles": "master,data,ingest" if number == 1 else "data,ingest",
                "transport.port": str(transport[number]),
                "discovery.seed_hosts": f"{HOST}:{transport[1]}",
                # How long a node may not answer before it is taken for gone (Elasticsearch: three times 10 s).
                "cluster.fault_detection.follower_check.timeout": "3s",
                **({"cluster.initial_master_nodes": "node-1"} if number == 1 else {}),
            },
        )
        found[number] = OwnServer(server, server.url(http[number]), partial(elasticsearch_serves, http[number]))
    return found


def _amend(server: Server, settings: Mapping[str, str]) -> None:
    """Other settings for its process, beside those that the local engine gives it."""
    run = json.loads(server.run_file.read_text(encoding="utf-8"))
    run["settings"] |= settings
    server.run_file.write_text(json.dumps(run, indent=1), encoding="utf-8")
    server.log.parent.mkdir(exist_ok=True)


class _Ports:
    def __init__(self) -> None:
        self._taken: set[int] = set()

    def take(self) -> int:
        port = any_free(self._taken)
        self._taken.add(port)
        return port
