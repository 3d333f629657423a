"""The wanted port when it is free, another, said aloud, when it is not."""

from __future__ import annotations

import io
import socket

from infra.engine.ports import any_free, choose, is_free
from infra.engine.progress import PlainProgress, SilentProgress


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
