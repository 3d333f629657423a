"""The unit ring opens no socket: what a test would say to a server it says to a fake. Nothing is excepted."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from unittest.mock import patch

import pytest
import structlog
import urllib3.util.connection  # noqa: F401  # tries a socket of IPv6 while it is imported

# What leads out of the process or lets others in, as https://docs.python.org/3/library/audit_events.html names it.
# The pair of sockets that every event loop has raises none of these.
OUTSIDE = frozenset({"socket.bind", "socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"})


class SocketRefused(PermissionError):
    """The unit ring opens no socket."""


class SocketGuard:
    """An audit hook: hears of every thread's and every library's sockets. Python cannot take one back."""

    def __init__(self) -> None:
        self.tried: list[str] | None = None  # by the test that runs; None: it is of another ring
        sys.addaudithook(self)

    def __call__(self, event: str, args: tuple[object, ...]) -> None:
        if self.tried is not None and event in OUTSIDE:
            where = tuple(arg for arg in args if not isinstance(arg, socket.socket))
            self.tried.append(f"{event}{where}")
            raise SocketRefused(self.tried[-1])


@pytest.fixture(scope="session")
def socket_guard() -> SocketGuard:
    return SocketGuard()


@pytest.fixture(scope="session", autouse=True)
def unsynced() -> Iterator[None]:
    """No test cuts the power: what is written is read again at once. A thousand gateways each sync a new secret."""
    with patch("os.fsync"):
        yield


@pytest.fixture(scope="session", autouse=True)
def plain_logs() -> None:
    """Lines of logs without colours, columns and drawn tracebacks, which cost more than most steps that log."""
    processors = structlog.processors
    plain = [processors.add_log_level, processors.format_exc_info, processors.KeyValueRenderer()]
    structlog.configure([structlog.contextvars.merge_contextvars, *plain])


@pytest.fixture(autouse=True)
def no_socket(socket_guard: SocketGuard) -> Iterator[None]:
    """Fails a test that tried, also where the code took the refusal for a server that is away."""
    socket_guard.tried = []
    yield
    tried, socket_guard.tried = socket_guard.tried, None
    assert not tried, f"the unit ring opens no socket; this test tried {', '.join(tried)}"
