"""Chooses a free loopback port for a server."""

from __future__ import annotations

import socket

from infra.engine.progress import EngineProgress
from infra.running import HOST


def is_free(port: int) -> bool:
    """Whether a server could listen on `port` now."""
    with socket.socket() as probe:
        # Like Java's server sockets: a port in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def any_free(taken: set[int]) -> int:
    """A free port that is not in `taken`."""
    while True:
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            port: int = probe.getsockname()[1]
        if port not in taken:
            return port


def choose(server: str, wanted: int, taken: set[int], progress: EngineProgress) -> int:
    """`wanted` if it is free, else another one, with a note to `progress`."""
    if wanted not in taken and is_free(wanted):
        return wanted
    port = any_free(taken)
    progress.note(f"port {wanted} is busy: {server} takes {port}")
    return port
