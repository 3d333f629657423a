"""Who runs: the engine's state file, the look whether that is still true, and the lock of starters.

`engine.json` is written whole or not at all, and believed only as far as the processes are there: a
process id may by now belong to anyone.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

import psutil

from infra.engine.files import write_atomically
from infra.engine.progress import Progress
from infra.engine.servers import elasticsearch_server, kafka_server
from infra.engine.settings import engine_root

LOCK_LOOK_INTERVAL = 0.2  # seconds
STATE = "engine.json"
LOCK = "engine.lock"


@dataclass(frozen=True)
class ServerRecord:
    """A server as it was started."""

    pid: int
    port: int
    version: str
    run_file: str

    def process(self) -> psutil.Process | None:
        """The server's process, None when it is gone.

        The process with our id is ours if its command line names our run file. Start times, the usual
        proof, move when the clock is set: psutil derives them from the wall clock.
        """
        try:
            process = psutil.Process(self.pid)
            if self.run_file in process.cmdline():  # a zombie has none
                return process
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            pass
        return None

    @property
    def listens(self) -> bool:
        """Whether it is this server that listens on its port: who answers there may be another instance's."""
        process = self.process()
        try:
            return process is not None and any(
                socket.status == psutil.CONN_LISTEN and socket.laddr.port == self.port
                for socket in process.net_connections("tcp")
            )
        except psutil.AccessDenied:
            return True  # another user's process; its own starter has looked
        except psutil.NoSuchProcess:
            return False

    @property
    def alive(self) -> bool:
        """Whether the server's process is there."""
        return self.process() is not None


State = dict[str, ServerRecord]  # by Server.key


def read_state(root: Path) -> State:
    """What `engine.json` says; empty when there is none or it is not one of ours."""
    try:
        servers = json.loads((root / STATE).read_text(encoding="utf-8"))["servers"]
        return {key: ServerRecord(**record) for key, record in servers.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def write_state(root: Path, state: State) -> None:
    """Replace `engine.json`; remove it when nothing is left to say."""
    if not state:
        (root / STATE).unlink(missing_ok=True)
        return
    servers = {key: asdict(record) for key, record in state.items()}
    write_atomically(root / STATE, json.dumps({"servers": servers}, indent=1) + "\n")


def discover(home: Path) -> tuple[str, str] | None:
    """Addresses (`host:port` of Kafka, `http://host:port` of Elasticsearch) of the engine in `home`.

    None unless both processes are there. No network: whether they answer is another question.
    """
    root = engine_root(home)
    state = read_state(root)
    addresses = [
        server.url(record.port)
        for server in (kafka_server(root), elasticsearch_server(root))
        if (record := state.get(server.key)) and record.alive
    ]
    return (addresses[0], addresses[1]) if len(addresses) == 2 else None


def living(root: Path) -> State:
    """The records whose process is there."""
    return {key: record for key, record in read_state(root).items() if record.alive}


@asynccontextmanager
async def starter_lock(root: Path, progress: Progress) -> AsyncIterator[None]:
    """One at a time starts or stops this engine; the kernel drops the lock when its holder dies."""
    with _open_lock(root) as lock:
        if not _try_lock(lock):
            progress.note(f"another process is starting or stopping the engine in {root}: waiting for it")
            while not _try_lock(lock):  # noqa: ASYNC110 (another process sets no event)
                await asyncio.sleep(LOCK_LOOK_INTERVAL)
        yield


def delete_files(root: Path) -> bool:
    """Delete all the engine's files; False, and nothing is deleted, when it runs or is being started."""
    if not root.exists():
        return True
    with _open_lock(root) as lock:
        if not _try_lock(lock) or living(root):
            return False
        for path in root.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != LOCK:  # whoever waits for it must get the same one as whoever comes
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
