"""That the unit ring opens no socket is refused and noticed, whoever asks for one."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest

from tests.unit.conftest import SocketGuard, SocketRefused


def connects() -> None:
    with socket.socket() as made:
        made.connect(("127.0.0.1", 9))


def listens() -> None:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))


def sends() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as made:
        made.sendto(b"", ("127.0.0.1", 9))


@pytest.mark.parametrize("tries", [connects, listens, sends, lambda: socket.gethostbyname("localhost")])
def test_every_way_out_is_refused(tries: Callable[[], object], socket_guard: SocketGuard) -> None:
    with pytest.raises(SocketRefused):
        tries()
    assert socket_guard.tried
    socket_guard.tried.clear()  # else this test fails at its end, as it should


async def test_libraries_and_threads_are_refused_too(socket_guard: SocketGuard) -> None:
    with pytest.raises(SocketRefused):
        await asyncio.open_connection("localhost", 9)  # resolves the name in a thread
    assert socket_guard.tried
    socket_guard.tried.clear()
