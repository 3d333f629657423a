"""The unit ring opens no socket: its tests use fakes of all servers, without exception."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from unittest.mock import patch

import pytest
import structlog
import urllib3.util.connection  # noqa: F401  # tries a socket of IPv6 while it is imported

# Audit events of connections out of and into the process (https://docs.python.org/3/library/audit_events.html). An
# event loop's own pair of sockets raises none of these.
OUTSIDE = frozenset({"socket.bind", "socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"})


class SocketRefused(PermissionError):
    """The unit ring opens no socket."""


class SocketGuard:
    """An audit hook for the sockets of all threads and libraries. Python cannot remove a hook."""

    def __init__(self) -> None:
        self.tried: list[str] | None = None  # sockets of the running test; None outside of this ring
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
    """Skip fsync, since no test cuts the power: a thousand gateways each sync a new secret."""
    with patch("os.fsync"):
        yield


@pytest.fixture(scope="session", autouse=True)
def plain_logs() -> None:
    """Log without colours, columns and drawn tracebacks, which take longer than most logging steps."""
    processors = structlog.processors
    plain = [processors.add_log_level, processors.format_exc_info, processors.KeyValueRenderer()]
    structlog.configure([structlog.contextvars.merge_contextvars, *plain])


@pytest.fixture(autouse=True)
def no_socket(socket_guard: SocketGuard) -> Iterator[None]:
    """Fail a test that opened a socket, even if the code under test handled the refusal."""
    socket_guard.tried = []
    yield
    tried, socket_guard.tried = socket_guard.tried, None
    assert not tried, f"the unit ring opens no socket; this test tried {', '.join(tried)}"
