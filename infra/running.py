"""Finds the running servers of the local engine and the running gateway, by their state files.

`engine.json` and `gateway.json` are written atomically. Their entries only count if the processes are verified, since a
process id may belong to another process by now.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

HOST = "127.0.0.1"


def engine_root(home: Path) -> Path:
    """The engine's folder in a Pagewire home; absolute."""
    return home.resolve() / "engine"


STATE = "engine.json"
GATEWAY = "gateway.json"
EVERYWHERE = {"0.0.0.0": HOST, "::": "::1"}  # noqa: S104  # the loopback address of servers that listen at every address


@dataclass(frozen=True)
class ServerRecord:
    """The record of a started server."""

    pid: int
    port: int
    version: str
    run_file: str

    def process(self) -> psutil.Process | None:
        """The server's process; None: it has ended.

        The process with the recorded id is verified by the run file in its command line. Start times, the usual proof,
        change when the clock is set, since psutil derives them from the wall clock.
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
        """Whether this server listens on its port, and not one of another engine."""
        process = self.process()
        try:
            return process is not None and _listens(process, self.port)
        except psutil.AccessDenied:
            return True  # another user's process, which its own starter has verified

    @property
    def alive(self) -> bool:
        """Whether the server's process is running."""
        return self.process() is not None


State = dict[str, ServerRecord]  # by Server.key


def read_state(root: Path) -> State:
    """The content of `engine.json`; empty if it is missing or malformed."""
    try:
        servers = json.loads((root / STATE).read_text(encoding="utf-8"))["servers"]
        return {key: ServerRecord(**record) for key, record in servers.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def discover(home: Path) -> tuple[str, str] | None:
    """Addresses (`host:port` of Kafka, `http://host:port` of Elasticsearch) of the engine in `home`.

    None unless both processes run. Does not check whether they answer.
    """
    root = engine_root(home)
    state = read_state(root)
    kafka, elasticsearch = state.get("kafka"), state.get("elasticsearch")
    if not (kafka and kafka.alive and elasticsearch and elasticsearch.alive):
        return None
    return url("kafka", kafka.port), url("elasticsearch", elasticsearch.port)


@contextmanager
def gateway_noted(home: Path, host: str, port: int) -> Iterator[None]:
    """Record this process meanwhile as the gateway of `home` at this address, so that commands find it.

    Does nothing if the file cannot be written. Of two gateways of a home, the later one is found.
    """
    state, record = home / GATEWAY, {"host": EVERYWHERE.get(host, host), "pid": os.getpid(), "port": port}
    draft = state.with_name(f"{GATEWAY}.{os.getpid()}")
    with suppress(OSError):
        draft.write_text(json.dumps(record), encoding="utf-8")
        os.replace(draft, state)
    try:
        yield
    finally:
        with suppress(OSError, ValueError):
            if json.loads(state.read_text(encoding="utf-8")) == record:
                state.unlink()


def running_gateway(home: Path) -> str | None:
    """The URL of the gateway of `home`; None unless the recorded process listens there and belongs to our user.

    This must be verified, since commands send the admin key to it. The command line does not show it: a gateway of
    `up` is a fork (`infra/supervise.py`).
    """
    try:
        found = json.loads((home / GATEWAY).read_text(encoding="utf-8"))
        host, port = str(found["host"]), int(found["port"])
        if not _listens(psutil.Process(found["pid"]), port):
            return None
    except (OSError, ValueError, KeyError, TypeError, psutil.Error):
        return None
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _listens(process: psutil.Process, port: int) -> bool:
    try:
        return any(
            socket.status == psutil.CONN_LISTEN and socket.laddr.port == port
            for socket in process.net_connections("tcp")
        )
    except psutil.NoSuchProcess:
        return False


def url(key: str, port: int) -> str:
    """The address of a server of the engine."""
    return f"{HOST}:{port}" if key == "kafka" else f"http://{HOST}:{port}"
