"""Files, settings and Java options of the engine's Kafka and Elasticsearch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.engine.jars import (
    ELASTICSEARCH_HOME,
    ELASTICSEARCH_VERSION,
    FOLDERS,
    KAFKA_JARS,
    KAFKA_VERSION,
    pinned_jars,
)
from infra.engine.java import find
from infra.engine.settings import LocalEngineSettings
from infra.engine.state import write_atomically
from infra.running import HOST, url
from schemas.topics import MAX_MESSAGE_BYTES, RECORD_OVERHEAD_BYTES

NODE = "pagewire"
MIB = 2**20


@dataclass(frozen=True)
class Server:
    """The names and paths of one server."""

    key: str  # in file names and in the state file
    name: str
    version: str
    root: Path  # of the engine

    @property
    def folder(self) -> Path:
        """The folder of all its files except the log."""
        return self.root / self.key

    @property
    def data(self) -> Path:
        """The data folder, which a restart keeps and a reset deletes."""
        return self.folder / "data"

    @property
    def run_file(self) -> Path:
        """The file that tells server_process.py what to run."""
        return self.folder / "run.json"

    @property
    def log(self) -> Path:
        """The server's log since its last start. The previous one ends in `.1`."""
        return self.root / "logs" / f"{self.key}.log"

    def url(self, port: int) -> str:
        """The address for clients: `host:port` for Kafka, `http://host:port` for Elasticsearch."""
        return url(self.key, port)


def kafka_server(root: Path) -> Server:
    """Kafka of the engine in `root`."""
    return Server("kafka", "Kafka", KAFKA_VERSION, root)


def elasticsearch_server(root: Path) -> Server:
    """Elasticsearch of the engine in `root`."""
    return Server("elasticsearch", "Elasticsearch", ELASTICSEARCH_VERSION, root)


def prepare_kafka(server: Server, settings: LocalEngineSettings, port: int, controller_port: int) -> None:
    """Write the files that Kafka's process reads."""
    server.folder.mkdir(parents=True, exist_ok=True)
    properties = server.folder / "server.properties"
    # Java reads these files as Latin-1, and supports JSON's escapes.
    lines = (
        f"{name}={json.dumps(value)[1:-1]}\n"
        for name, value in kafka_properties(server.data, port, controller_port).items()
    )
    properties.write_text("".join(lines), encoding="ascii")
    jars = [str(jar.path(settings.cache)) for jar in pinned_jars() if jar.folder == KAFKA_JARS]
    options = [
        *_java_options(server, settings.kafka_heap),
        f"-Djava.class.path={':'.join(jars)}",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS",
        # Otherwise every start prints 300 lines of settings.
        "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.config=warn",
    ]
    _write_run(server, options, {"properties": str(properties), "data": str(server.data)})


def kafka_properties(data: Path, port: int, controller_port: int) -> dict[str, str]:
    """A broker that is its own controller, on loopback, with threads and buffers for a laptop."""
    max_bytes = MAX_MESSAGE_BYTES + RECORD_OVERHEAD_BYTES
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(data),
        # A missing topic must be an error, not a new topic with wrong settings.
        "auto.create.topics.enable": "false",
        "message.max.bytes": str(max_bytes),
        "replica.fetch.max.bytes": str(max_bytes),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        # A laptop may be off for weeks, and must keep its workers' offsets (Kafka: 7 days).
        "offsets.retention.minutes": str(365 * 24 * 60),
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        # A rebalance need not wait for further workers: they start and stop one by one here (Kafka: 3 s).
        "group.initial.rebalance.delay.ms": "0",
        # A broker that starts serves from a heartbeat on (Kafka: every 2 s). Its session stays Kafka's 9 s, though a
        # restart after a SIGKILL waits for that: on a busy machine a shorter one expires again and again, and each time
        # every partition loses its leader, which is work, too.
        "broker.heartbeat.interval.ms": "500",
        # Compaction never touches the current segment, so small segments keep compacted topics short.
        "log.segment.bytes": str(32 * MIB),
        "log.index.size.max.bytes": str(MIB),  # allocated in full for each segment
        "log.cleaner.threads": "1",
        "log.cleaner.dedupe.buffer.size": str(16 * MIB),  # 600,000 keys a pass; Kafka's 128 MiB fill the heap
        "log.cleaner.backoff.ms": "15000",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "background.threads": "2",
        "group.coordinator.threads": "1",
        # An idle broker writes a record into its metadata log this often (Kafka: 0.5 s).
        "metadata.max.idle.interval.ms": "5000",
    }


def prepare_elasticsearch(server: Server, settings: LocalEngineSettings, port: int) -> None:
    """Write the files that Elasticsearch's process reads."""
    config = server.folder / "config"
    for folder in (config, server.data):
        folder.mkdir(parents=True, exist_ok=True)
    (config / "log4j2.properties").write_text(ELASTICSEARCH_LOGGING, encoding="utf-8")
    module = settings.cache / FOLDERS["transport-netty4"] / "plugin-descriptor.properties"
    if not module.exists():
        write_atomically(module, NETTY_MODULE)
    lib = settings.cache / FOLDERS["elasticsearch"]
    options = [
        *_java_options(server, settings.es_heap),
        f"--module-path={lib}",
        "--add-modules=ALL-MODULE-PATH",
        "--add-exports=org.elasticsearch.server/org.elasticsearch.bootstrap=ALL-UNNAMED",
        "--add-opens=org.apache.lucene.core/org.apache.lucene.store=org.elasticsearch.server",
        "--enable-native-access=org.elasticsearch.nativeaccess,org.apache.lucene.core",
        # From Elasticsearch's own jvm.options for a heap of this size.
        "-Dio.netty.allocator.type=unpooled",
        "-Dio.netty.noUnsafe=true",
        "-Dio.netty.noKeySetOptimization=true",
        "-Dio.netty.recycler.maxCapacityPerThread=0",
        "-Dlog4j.shutdownHookEnabled=false",
        "-Dlog4j2.disable.jmx=true",
    ]
    _write_run(server, options, elasticsearch_settings(server, settings.cache / ELASTICSEARCH_HOME, port))


def elasticsearch_settings(server: Server, home: Path, port: int) -> dict[str, str]:
    """A single node on loopback. `home` is the unpacked distribution; server_process.py reads `path.conf`."""
    return {
        "path.home": str(home),
        "path.conf": str(server.folder / "config"),
        "path.data": str(server.data),
        "path.logs": str(server.log.parent),
        "cluster.name": NODE,
        "node.name": NODE,
        "discovery.type": "single-node",
        "http.host": HOST,
        "http.port": str(port),
        "transport.host": HOST,
        "transport.port": "0",
        # Elasticsearch would make every index read-only at 95 % of the disk, though 50 GB may be free then. Our start
        # requires free bytes instead.
        "cluster.routing.allocation.disk.threshold_enabled": "false",
        "action.destructive_requires_name": "true",
    }


NETTY_MODULE = f"""\
# Elasticsearch's HTTP server is a module of its distribution; this file is what makes its jars one.
name=transport-netty4
description=Netty based transport
classname=org.elasticsearch.transport.netty4.Netty4Plugin
modulename=org.elasticsearch.transport.netty4
version={ELASTICSEARCH_VERSION}
elasticsearch.version={ELASTICSEARCH_VERSION}
java.version=17
has.native.controller=false
"""

ELASTICSEARCH_LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yyyy-MM-dd HH:mm:ss.SSS} %-5p [%c{1.}] %m%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
logger.deprecation.name = org.elasticsearch.deprecation
logger.deprecation.level = error
# Its native libraries are not published as jars: it says so, at length, at every start.
logger.native.name = org.elasticsearch.nativeaccess
logger.native.level = error
logger.vectors.name = org.apache.lucene.internal.vectorization
logger.vectors.level = error
"""


# Java compiles frequent code twice: quickly, then optimized. With ten times the default of the second threshold, a
# start needs a third less CPU (17 -> 11 s for both), and hot code is still optimized later.
COMPILE_LATE = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)


def _java_options(server: Server, heap: str) -> list[str]:
    return [
        f"-Xmx{heap}",
        "-XX:+UseSerialGC",  # the smallest footprint, and not slower with two cores
        *COMPILE_LATE,
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:-UsePerfData",  # would write to /tmp
        f"-XX:ErrorFile={server.log.with_suffix('.crash')}",
        f"-Djava.io.tmpdir={server.folder / 'tmp'}",
        "-Djava.awt.headless=true",
        "--enable-native-access=ALL-UNNAMED",  # JPype, and Kafka's compression
        "-Dfile.encoding=UTF-8",
    ]


def _write_run(server: Server, options: list[str], settings: dict[str, str]) -> None:
    (server.folder / "tmp").mkdir(exist_ok=True)
    run: dict[str, Any] = {
        "server": server.key,
        "java": str(find().library),
        "jvm": options,
        "settings": settings,
    }
    server.run_file.write_text(json.dumps(run, indent=1), encoding="utf-8")
