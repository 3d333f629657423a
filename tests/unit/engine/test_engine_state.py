"""The state file is believed only where the processes are there, and one starter works at a time."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.engine.errors import EngineProgress
from infra.engine.state import LOCK, delete_files, living, starter_lock, write_state
from infra.running import STATE, ServerRecord, discover, read_state

WAIT_FOR_INPUT = "import sys; print('up', flush=True); sys.stdin.read()"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "engine"
    root.mkdir()
    return root


@pytest.fixture
def server_process(root: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that looks like a server of the engine in `root`: its command line names the run file."""
    with subprocess.Popen(
        [sys.executable, "-c", WAIT_FOR_INPUT, str(root / "run.json")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        yield process
        process.kill()


def record_of(process: subprocess.Popen[bytes], root: Path, port: int = 19092) -> ServerRecord:
    return ServerRecord(process.pid, port, "4.1.0", str(root / "run.json"))


def test_state_survives_a_round_trip_and_goes_when_empty(root: Path) -> None:
    state = {"kafka": ServerRecord(1, 19092, "4.1.0", "run.json")}
    write_state(root, state)
    assert read_state(root) == state
    assert [path.name for path in root.iterdir()] == [STATE]
    write_state(root, {})
    assert read_state(root) == {}
    assert list(root.iterdir()) == []


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"servers": []}', '{"servers": {"kafka": {"pid": 1}}}', '{"servers": {"a": 1}}']
)
def test_a_broken_state_file_is_as_good_as_none(root: Path, text: str) -> None:
    (root / STATE).write_text(text)
    assert read_state(root) == {}
    assert discover(root.parent) is None


def test_a_failed_write_leaves_the_old_state(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_state(root, {"kafka": ServerRecord(1, 19092, "4.1.0", "run.json")})

    def fail(*_: object) -> None:
        raise OSError("crash")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="crash"):
        write_state(root, {"kafka": ServerRecord(2, 19092, "4.1.0", "run.json")})
    assert read_state(root)["kafka"].pid == 1
    assert [path.name for path in root.iterdir()] == [STATE]


def test_a_server_is_alive_until_its_process_ends(root: Path, server_process: subprocess.Popen[bytes]) -> None:
    record = record_of(server_process, root)
    assert record.alive
    server_process.kill()
    # Ended and not yet waited for, as a container without an init leaves it: a zombie is not alive.
    os.waitid(os.P_PID, server_process.pid, os.WEXITED | os.WNOWAIT)
    assert not record.alive
    server_process.wait()
    assert not record.alive


def test_another_process_with_the_recorded_id_is_not_taken_for_the_server(
    root: Path, server_process: subprocess.Popen[bytes]
) -> None:
    stranger = ServerRecord(server_process.pid, 19092, "4.1.0", str(root / "another" / "run.json"))
    assert not stranger.alive
    write_state(root, {"kafka": stranger})
    assert living(root) == {}


def test_discover_wants_both_servers(root: Path, server_process: subprocess.Popen[bytes]) -> None:
    kafka = record_of(server_process, root, 20001)
    gone = ServerRecord(server_process.pid, 20002, "9.2.0", "not its run file")
    write_state(root, {"kafka": kafka, "elasticsearch": gone})
    assert discover(root.parent) is None
    write_state(root, {"kafka": kafka, "elasticsearch": record_of(server_process, root, 20002)})
    assert discover(root.parent) == ("127.0.0.1:20001", "http://127.0.0.1:20002")


class Notes(EngineProgress):
    """Keeps what was said."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.said = asyncio.Event()

    def note(self, line: str) -> None:
        self.lines.append(line)
        self.said.set()


async def test_a_second_starter_waits_for_the_first_and_says_so(root: Path) -> None:
    order: list[str] = []
    notes = Notes()

    async def second() -> None:
        async with starter_lock(root, notes):
            order.append("second")

    async with starter_lock(root, EngineProgress()):
        waiting = asyncio.create_task(second())
        await notes.said.wait()
        order.append("first")
    await waiting
    assert order == ["first", "second"]
    assert "waiting" in notes.lines[0]


async def test_files_are_deleted_unless_the_engine_runs_or_starts(
    root: Path, server_process: subprocess.Popen[bytes]
) -> None:
    (root / "kafka" / "data").mkdir(parents=True)
    write_state(root, {"kafka": record_of(server_process, root)})
    assert not delete_files(root)
    server_process.kill()
    server_process.wait()
    async with starter_lock(root, EngineProgress()):
        assert not delete_files(root)
    assert (root / "kafka" / "data").exists()
    assert delete_files(root)
    assert os.listdir(root) == [LOCK]
    assert delete_files(root / "never there")


def test_the_state_file_names_process_and_port(root: Path) -> None:
    write_state(root, {"kafka": ServerRecord(7, 19092, "4.1.0", "run.json")})
    assert json.loads((root / STATE).read_text())["servers"]["kafka"] == {
        "pid": 7,
        "port": 19092,
        "version": "4.1.0",
        "run_file": "run.json",
    }
