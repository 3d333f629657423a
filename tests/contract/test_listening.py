"""What listens on this machine, with real sockets: the local engine's servers and the gateway."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import psutil
import pytest
from typer.testing import CliRunner

from cli.main import app
from infra.checks import bound, refused
from infra.engine.errors import EngineProgress, PlainProgress
from infra.engine.state import any_free, choose, is_free
from infra.running import EVERYWHERE, ServerRecord, gateway_noted, running_gateway
from pipelines.runtime import logs
from pipelines.runtime.errors import SettingsError


def test_a_free_port_is_taken_as_wanted() -> None:
    port = any_free(set())
    assert choose("Kafka", port, set(), EngineProgress()) == port


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
    assert choose("Elasticsearch", port, {port}, EngineProgress()) != port


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


LISTENS = "import socket, sys; other = socket.create_server(('', int(sys.argv[1]))); print('up', flush=True); input()"


def test_the_gateway_of_a_home_is_found_while_that_very_process_listens(tmp_path: Path) -> None:
    """Whoever has its port afterwards must not be sent the admin key."""
    port = any_free(set())
    assert running_gateway(tmp_path) is None
    with subprocess.Popen(
        [sys.executable, "-c", LISTENS, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as gateway:
        assert gateway.stdout is not None
        assert gateway.stdout.readline() == "up\n"
        for host, url in (
            ("127.0.0.1", f"http://127.0.0.1:{port}"),
            ("0.0.0.0", f"http://127.0.0.1:{port}"),
            ("::", f"http://[::1]:{port}"),
        ):
            state = {"host": EVERYWHERE.get(host, host), "pid": gateway.pid, "port": port}
            (tmp_path / "gateway.json").write_text(json.dumps(state))
            assert running_gateway(tmp_path) == url
        for wrong in ({"port": any_free({port})}, {"pid": os.getpid()}, {"pid": "x"}):
            (tmp_path / "gateway.json").write_text(json.dumps({"host": "127.0.0.1", "pid": gateway.pid} | wrong))
            assert running_gateway(tmp_path) is None
        # Another user's process, of which nothing can be seen.
        (tmp_path / "gateway.json").write_text(json.dumps({"host": "127.0.0.1", "pid": gateway.pid, "port": port}))
        with patch.object(psutil.Process, "net_connections", side_effect=psutil.AccessDenied):
            assert running_gateway(tmp_path) is None
        gateway.communicate("\n")
    (tmp_path / "gateway.json").write_text(json.dumps({"host": "127.0.0.1", "pid": gateway.pid, "port": port}))
    with socket.create_server(("127.0.0.1", port)):
        assert running_gateway(tmp_path) is None


def test_a_gateway_notes_where_it_is_and_takes_back_its_own_word_alone(tmp_path: Path) -> None:
    state = tmp_path / "gateway.json"
    with gateway_noted(tmp_path, "0.0.0.0", 8000):
        assert json.loads(state.read_text()) == {"host": "127.0.0.1", "pid": os.getpid(), "port": 8000}
    assert not state.exists()
    with gateway_noted(tmp_path, "127.0.0.1", 8000):
        state.write_text('{"host": "127.0.0.1", "pid": 1, "port": 8001}')
    assert state.exists()
    with gateway_noted(tmp_path / "not there", "127.0.0.1", 8000):
        pass  # nobody can note anything: commands do without


def test_a_port_that_is_taken_is_told_with_its_holder_and_a_free_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        busy = other.getsockname()[1]
        with pytest.raises(SettingsError) as caught:
            bound("127.0.0.1", busy, "port")
    said = re.fullmatch(
        rf"port \(PAGEWIRE_PORT\): 127\.0\.0\.1:{busy} is taken by .+ \(process {os.getpid()}\); end it, or take "
        r"another port: PAGEWIRE_PORT=(\d+)",
        str(caught.value),
    )
    assert said is not None, caught.value
    bound("127.0.0.1", int(said[1]), "port").close()
    bound("127.0.0.1", busy, "port").close()


@pytest.mark.parametrize("host", ["192.0.2.1", "nowhere.invalid", "2001:db8::1"])
def test_an_address_of_another_machine_is_told(host: str) -> None:
    with pytest.raises(SettingsError, match=rf"host \(PAGEWIRE_HOST\): {host} is no address of this machine"):
        bound(host, 0, "port")


def test_who_may_not_have_a_port_is_told_from_where_on_they_may() -> None:
    denied = refused("127.0.0.1", 80, "metrics_port", PermissionError(errno.EACCES, "Permission denied"))
    assert str(denied).endswith("from 1024 on anybody may: PAGEWIRE_METRICS_PORT=8000")


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without settings, and no servers."""
    monkeypatch.chdir(tmp_path)
    for name in ("KAFKA", "ELASTICSEARCH", "CONFIG"):
        monkeypatch.delenv(f"PAGEWIRE_{name}", raising=False)
    monkeypatch.setenv("PAGEWIRE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(logs, "configure", lambda settings: None)
    return tmp_path


@pytest.mark.parametrize("command", ["up", "demo", "gateway"])
def test_a_busy_port_is_told_before_anything_starts(alone: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        monkeypatch.setenv("PAGEWIRE_PORT", str(port))
        result = CliRunner().invoke(app, [command], catch_exceptions=False)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error port (PAGEWIRE_PORT): 127.0.0.1:{port} is taken by")
    assert result.stdout == ""
    assert not (alone / "home" / "engine").exists()


@pytest.mark.usefixtures("alone")
def test_a_busy_port_of_metrics_is_told_before_a_gateway_connects(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        monkeypatch.setenv("PAGEWIRE_METRICS_PORT", str(port))
        taken = CliRunner().invoke(app, ["gateway", "--port", "0"], catch_exceptions=False)
    same = CliRunner().invoke(app, ["gateway", "--port", str(port)], catch_exceptions=False)
    assert (taken.exit_code, same.exit_code) == (2, 2)
    assert f"metrics_port (PAGEWIRE_METRICS_PORT): 127.0.0.1:{port} is taken by" in taken.stderr
    assert f"metrics_port (PAGEWIRE_METRICS_PORT): {port} is the gateway's own" in same.stderr


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ({"KAFKA": "127.0.0.1:{port}"}, "Kafka: nothing answers at 127.0.0.1:{port} (PAGEWIRE_KAFKA)"),
        (
            {"ELASTICSEARCH": "http://127.0.0.1:{port}"},
            "http://127.0.0.1:{port} (PAGEWIRE_ELASTICSEARCH): asking for the time: Elasticsearch does not answer "
            "(ConnectionError); is it started, and the address right?",
        ),
    ],
    ids=str,
)
def test_a_configured_server_that_is_away_is_told_before_anything_starts(
    alone: Path, monkeypatch: pytest.MonkeyPatch, server: dict[str, str], said: str
) -> None:
    port = str(any_free(set()))
    monkeypatch.setenv("PAGEWIRE_PORT", "0")
    for name, value in server.items():
        monkeypatch.setenv(f"PAGEWIRE_{name}", value.format(port=port))
    result = CliRunner().invoke(app, ["up"], catch_exceptions=False)
    assert result.exit_code == 3
    assert said.format(port=port) in result.stderr
    assert "Traceback" not in result.stderr
    assert not (alone / "home" / "engine").exists()


@pytest.mark.usefixtures("alone")
def test_a_gateway_without_servers_tells_how_to_start_them() -> None:
    """It listens before it looks for them, so it is not among the commands of tests/unit/cli/test_commands.py."""
    result = CliRunner().invoke(app, ["gateway", "--port", "0"], catch_exceptions=False)
    assert result.exit_code == 3
    assert "pagewire engine start --detach" in result.stderr
    assert result.stdout == ""
