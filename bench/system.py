"""The whole system, started for a benchmark in a folder of its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import yaml

from cli.up import System, running
from gateway.edge.auth import admin_key
from wiring.settings import Settings
from wiring.settings_file import load

CLOCK = "clock"  # of the folder: the time that answers take for now


@contextmanager
def home(
    sites: Sequence[str], languages: Sequence[str] = ("en",), more: Mapping[str, Any] | None = None
) -> Iterator[Settings]:
    """Settings of a fresh instance with these sites; an engine that is configured in the environment is used.

    Args:
        more: settings of each site.
    """
    with tempfile.TemporaryDirectory(prefix="pagewire-bench-") as folder:
        config = Path(folder) / "pagewire.yaml"
        site = {"languages": list(languages)} | dict(more or {})
        config.write_text(yaml.safe_dump({"sites": dict.fromkeys(sites, site)}))
        clock = Path(folder) / CLOCK
        clock.touch()  # empty: the machine's
        os.environ |= {
            "PAGEWIRE_HOME": folder,
            "PAGEWIRE_CONFIG": str(config),
            "PAGEWIRE_PORT": "0",
            "PAGEWIRE_LOG_LEVEL": "error",
            "PAGEWIRE_TOPIC_PREFIX": f"bench{os.getpid()}-",
            "PAGEWIRE_VISITOR_RATE": "100000/minute",
            "PAGEWIRE_CLOCK": str(clock),
        }
        yield load()


@asynccontextmanager
async def system(
    sites: Sequence[str], languages: Sequence[str] = ("en",), more: Mapping[str, Any] | None = None
) -> AsyncIterator[tuple[System, httpx.AsyncClient]]:
    """A running system and a client that may do everything."""
    with home(sites, languages, more) as settings:
        async with running(settings) as started:
            key, _ = admin_key(started.settings)
            headers = {"Authorization": f"Bearer {key.get_secret_value()}"}
            async with httpx.AsyncClient(base_url=f"{started.url}/v1", headers=headers, timeout=120) as client:
                yield started, client


def resident(pid: int) -> int:
    """Bytes of memory of a process and its children, shared pages counted once."""
    processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return sum(process.memory_full_info().pss for process in processes)
