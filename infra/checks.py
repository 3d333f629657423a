"""Checks before a start: the folder of all local state can be used, and the ports can be bound.

Errors name the setting, the program that has the port, and a free port.
"""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

import psutil

from pipelines.runtime.errors import Retryable, SettingsError, named

TRIED = 100  # ports after a taken one
UNPRIVILEGED = 1024  # the first port for ordinary users


def bound(host: str, port: int, setting: str) -> socket.socket:
    """A socket that is bound to the port, and does not listen yet; port 0 takes a free one.

    Args:
        setting: the port's setting, for errors.

    Raises:
        SettingsError: the port cannot be bound; says what to do.
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
    """The error for a port that could not be bound."""
    said, variable = named(setting), f"PAGEWIRE_{setting.upper()}"
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
    """The process that listens at a port, as `python (process 123)`; None: unknown, such as another user's."""
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


def usable(home: Path) -> None:
    """Create the folder if it is missing, and test that it is writable.

    Raises:
        SettingsError: one of both fails; says why. Retryable: the disk is full.
    """
    try:
        if home.exists() and not home.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "it is no folder")
        home.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=home) as file:
            file.write(b"x")
            file.flush()
    except OSError as err:
        if err.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Retryable(
                f"home (PAGEWIRE_HOME): no space is left for {home}; free some, or take another disk"
            ) from None
        there = next(
            folder for folder in (home, *home.absolute().parents) if os.path.exists(folder)
        )  # which is False without access
        owner = ""
        with suppress(KeyError, NotImplementedError, OSError):
            owner = f"; {there} belongs to {there.owner()}"
        raise SettingsError(
            f"home (PAGEWIRE_HOME): nothing can be kept in {home} ({err.strerror}){owner}; another folder: "
            "PAGEWIRE_HOME=~/.pagewire"
        ) from None
