"""Writes the engine's state file, which infra.running reads, and locks starts and stops. Chooses free ports, and checks
whether the servers on them are ready.

A restarted server listens for seconds before it is ready: Kafka's broker is not registered yet, or Elasticsearch's
shards are not recovered. Clients would get errors then.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO

import httpx
from aiokafka.conn import create_conn
from aiokafka.errors import KafkaError
from aiokafka.protocol.metadata import MetadataRequest

from infra.engine.errors import EngineProgress
from infra.running import HOST, STATE, State, read_state

LOCK_POLL_INTERVAL = 0.2  # seconds
LOCK = "engine.lock"


def write_atomically(path: Path, text: str) -> None:
    """Write `path` so that readers see the old or the new text, never a part, even after a crash."""
    scratch = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with scratch.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)


def write_state(root: Path, state: State) -> None:
    """Replace `engine.json`; delete it for an empty state."""
    if not state:
        (root / STATE).unlink(missing_ok=True)
        return
    servers = {key: asdict(record) for key, record in state.items()}
    write_atomically(root / STATE, json.dumps({"servers": servers}, indent=1) + "\n")


def living(root: Path) -> State:
    """The records of running processes."""
    return {key: record for key, record in read_state(root).items() if record.alive}


@asynccontextmanager
async def starter_lock(root: Path, progress: EngineProgress) -> AsyncIterator[None]:
    """Lock the engine for one start or stop at a time. The kernel releases the lock of a dead process."""
    with _open_lock(root) as lock:
        if not _try_lock(lock):
            progress.note(f"another process is starting or stopping the engine in {root}: waiting for it")
            while not _try_lock(lock):  # noqa: ASYNC110 (another process sets no event)
                await asyncio.sleep(LOCK_POLL_INTERVAL)
        yield


def delete_files(root: Path) -> bool:
    """Delete all files of the engine. False: it runs or is starting, and nothing is deleted."""
    if not root.exists():
        return True
    with _open_lock(root) as lock:
        if not _try_lock(lock) or living(root):
            return False
        for path in root.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != LOCK:  # waiting and new processes must lock the same file
                path.unlink()
    return True


def _open_lock(root: Path) -> IO[str]:
    root.mkdir(parents=True, exist_ok=True)
    return (root / LOCK).open("w")


def _try_lock(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


PROBE_TIMEOUT = 2.0  # seconds
NO_LEADER = -1


async def kafka_serves(port: int) -> bool:
    """Whether Kafka answers a metadata request, names a broker, and every partition has a leader."""
    try:
        async with asyncio.timeout(PROBE_TIMEOUT):
            connection = await create_conn(HOST, port, request_timeout_ms=int(PROBE_TIMEOUT * 1000))
            try:
                metadata = await connection.send(MetadataRequest(None, allow_auto_topic_creation=False))
            finally:
                connection.close()
    except (OSError, KafkaError, TimeoutError):
        return False
    leaders = [partition[2] for topic in metadata.topics for partition in topic[-1]]
    return bool(metadata.brokers) and NO_LEADER not in leaders


async def elasticsearch_serves(port: int) -> bool:
    """Whether Elasticsearch has a master and every primary shard is allocated (health yellow or green)."""
    try:
        # trust_env=False: a configured proxy cannot reach our loopback.
        async with httpx.AsyncClient(timeout=PROBE_TIMEOUT, trust_env=False) as client:
            answer = await client.get(f"http://{HOST}:{port}/_cluster/health")
    except httpx.HTTPError:
        return False
    return answer.status_code == httpx.codes.OK and answer.json()["status"] in ("yellow", "green")


def is_free(port: int) -> bool:
    """Whether a server could listen on `port` now."""
    with socket.socket() as probe:
        # Like Java's server sockets: a port in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def any_free(taken: set[int]) -> int:
    """A free port that is not in `taken`."""
    while True:
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            port: int = probe.getsockname()[1]
        if port not in taken:
            return port


def choose(server: str, wanted: int, taken: set[int], progress: EngineProgress) -> int:
    """`wanted` if it is free, else another one, with a note to `progress`."""
    if wanted not in taken and is_free(wanted):
        return wanted
    port = any_free(taken)
    progress.note(f"port {wanted} is busy: {server} takes {port}")
    return port
