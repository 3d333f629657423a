"""What runs of the local engine, and which gateway, as their state files say: all that others need to know of them.

`engine.json` and `gateway.json` are written whole or not at all, and believed only as far as the processes are there:
a process id may by now belong to anyone.
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
GATEWAY_COMMAND = "gateway"  # by which its process is known: a part of its command line
EVERYWHERE = {"0.0.0.0": HOST, "::": "::1"}  # noqa: S104  # where those are reached that listen at every address


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
        try:
            return self.surely_listens()
        except psutil.AccessDenied:
            return True  # another user's process; its own starter has looked

    def surely_listens(self) -> bool:
        """The same, seen by ourselves. Raises: psutil.AccessDenied: another user's process."""
        process = self.process()
        try:
            return process is not None and any(
                socket.status == psutil.CONN_LISTEN and socket.laddr.port == self.port
                for socket in process.net_connections("tcp")
            )
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


def discover(home: Path) -> tuple[str, str] | None:
    """Addresses (`host:port` of Kafka, `http://host:port` of Elasticsearch) of the engine in `home`.

    None unless both processes are there. No network: whether they answer is another question.
    """
    root = engine_root(home)
    state = read_state(root)
    kafka, elasticsearch = state.get("kafka"), state.get("elasticsearch")
    if not (kafka and kafka.alive and elasticsearch and elasticsearch.alive):
        return None
    return url("kafka", kafka.port), url("elasticsearch", elasticsearch.port)


@contextmanager
def gateway_noted(home: Path, host: str, port: int) -> Iterator[None]:
    """While the block runs, commands find this process: the gateway of `home` at this address.

    Where nothing can be written they do without. Of two gateways of a home the later one is found.
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
    """The URL of the gateway of `home`; None unless that very process listens there, and is our user's.

    The admin key is sent to it, so nothing is believed that cannot be seen.
    """
    try:
        found = json.loads((home / GATEWAY).read_text(encoding="utf-8"))
        host, record = str(found["host"]), ServerRecord(found["pid"], found["port"], "", GATEWAY_COMMAND)
        if not record.surely_listens():
            return None
    except (OSError, ValueError, KeyError, TypeError, psutil.AccessDenied):
        return None
    return f"http://[{host}]:{record.port}" if ":" in host else f"http://{host}:{record.port}"


def url(key: str, port: int) -> str:
    """How a server of the engine is reached."""
    return f"{HOST}:{port}" if key == "kafka" else f"http://{HOST}:{port}"
