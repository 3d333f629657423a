"""What listens on this machine, with real sockets: the local engine's servers and the gateway."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from cli.main import app
from infra.engine.free_ports import any_free, choose, is_free
from infra.engine.progress import PlainProgress, SilentProgress
from infra.running import ServerRecord
from pipelines.runtime import logs


def test_a_free_port_is_taken_as_wanted() -> None:
    port = any_free(set())
    assert choose("Kafka", port, set(), SilentProgress()) == port


def test_a_busy_port_is_passed_over_and_said() -> None:
    said = io.StringIO()
    with socket.create_server(("127.0.0.1", 0)) as other:
        busy = other.getsockname()[1]
        assert not is_free(busy)
        port = choose("Kafka", busy, set(), PlainProgress(said))
    assert port != busy
    assert is_free(port)
    assert said.getvalue() == f"port {busy} is busy: Kafka takes {port}\n"


def test_a_port_all_interfaces_share_is_busy_too() -> None:
    with socket.create_server(("0.0.0.0", 0)) as other:
        assert not is_free(other.getsockname()[1])


def test_the_other_servers_port_is_not_taken() -> None:
    port = any_free(set())
    assert choose("Elasticsearch", port, {port}, SilentProgress()) != port


def test_a_port_counts_only_when_the_server_itself_listens_on_it() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as ours,
        subprocess.Popen([sys.executable, "-c", "input()", "run.json"], stdin=subprocess.PIPE) as stranger,
    ):
        port = ours.getsockname()[1]
        assert not ServerRecord(stranger.pid, port, "4.1.0", "run.json").listens
        own = ServerRecord(os.getpid(), port, "4.1.0", psutil.Process().cmdline()[-1])
        assert own.listens
        assert not ServerRecord(os.getpid(), port, "4.1.0", "gone").listens
        stranger.kill()
    assert not own.listens


def test_a_gateway_without_servers_tells_how_to_start_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It listens before it looks for them, so it is not among the commands of tests/unit/cli/test_commands.py."""
    monkeypatch.chdir(tmp_path)
    for name in ("KAFKA", "ELASTICSEARCH", "CONFIG"):
        monkeypatch.delenv(f"PAGEWIRE_{name}", raising=False)
    monkeypatch.setenv("PAGEWIRE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(logs, "configure", lambda settings: None)
    result = CliRunner().invoke(app, ["gateway", "--port", "0"], catch_exceptions=False)
    assert result.exit_code == 3
    assert "pagewire engine start --detach" in result.stderr
    assert result.stdout == ""
