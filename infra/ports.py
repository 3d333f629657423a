"""Listening at a port, and where that cannot be: which setting says so, who has the port, and which one is free."""

from __future__ import annotations

import errno
import socket
from contextlib import suppress

import psutil

from pipelines.runtime.errors import SettingsError

TRIED = 100  # ports after the one that is taken
UNPRIVILEGED = 1024  # the first port that anybody may listen at


def bound(host: str, port: int, setting: str) -> socket.socket:
    """A socket that has the port, and does not listen yet; port 0 takes a free one.

    Args:
        setting: that of the port.

    Raises:
        SettingsError: it cannot be; says what would do.
    """
    made = socket.socket(_family(host), socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except OSError as err:
        made.close()
        raise refused(host, port, setting, err) from None
    return made


def refused(host: str, port: int, setting: str, err: OSError) -> SettingsError:
    """Why nobody can listen there, after it was tried."""
    said, variable = f"{setting} (PAGEWIRE_{setting.upper()})", f"PAGEWIRE_{setting.upper()}"
    match err.errno:
        case errno.EADDRINUSE:
            other = f", or take another port: {variable}={free}" if (free := _free_after(host, port)) else ""
            return SettingsError(
                f"{said}: {host}:{port} is taken by {holder(port) or 'another program'}; end it{other}"
            )
        case errno.EACCES | errno.EPERM:
            return SettingsError(
                f"{said}: this user may not listen at port {port}; from {UNPRIVILEGED} on anybody may: {variable}=8000"
            )
        case _:
            return SettingsError(
                f"host (PAGEWIRE_HOST): {host} is no address of this machine ({err.strerror}); for example 127.0.0.1, "
                "or 0.0.0.0 for all that it has"
            )


def holder(port: int) -> str | None:
    """Who listens at a port, as `python (process 123)`; None: it is hidden, as other users' processes are."""
    with suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr[1:2] == (port,) and connection.pid:
                return f"{psutil.Process(connection.pid).name()} (process {connection.pid})"
    return None


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _free_after(host: str, port: int) -> int | None:
    for other in range(port + 1, min(port + TRIED, 65536)):
        with socket.socket(_family(host)) as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, other))
            return other
    return None
