"""The session's Kafka and Elasticsearch: configured ones, or one local engine for all tests.

A pytest plugin: register it with `pytest_plugins = ["tests.engine_fixture"]`. The fixture `engine` has the addresses.
Each test uses topic and index names of its own, since all tests share the servers.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from infra.engine import LocalEngineSettings, PlainProgress, start
from infra.engine.state import any_free

T = TypeVar("T")


@dataclass(frozen=True)
class Servers:
    """Addresses: Kafka's `host:port`, Elasticsearch's URL."""

    kafka: str
    elasticsearch: str


@contextmanager
def running_engine() -> Iterator[Servers]:
    """Servers that answer, as long as the context lasts.

    PAGEWIRE_KAFKA and PAGEWIRE_ELASTICSEARCH win when both are set. Else a local engine starts in a new
    home on free ports; it and its home go at the end, and with this process in any case.
    """
    kafka, elasticsearch = (os.environ.get(f"PAGEWIRE_{name}") for name in ("KAFKA", "ELASTICSEARCH"))
    if kafka and elasticsearch:
        yield Servers(kafka, elasticsearch)
        return
    with tempfile.TemporaryDirectory(prefix="pagewire-test-", ignore_cleanup_errors=True) as home:
        kafka_port = any_free(set())
        settings = LocalEngineSettings(Path(home), kafka_port=kafka_port, es_port=any_free({kafka_port}))
        engine = _run(start(settings, detach=False, progress=PlainProgress(sys.stderr)))
        try:
            yield Servers(engine.kafka, engine.elasticsearch)
        finally:
            _run(engine.stop())


@pytest.fixture(scope="session")
def engine() -> Iterator[Servers]:
    """The session's servers."""
    with running_engine() as servers:
        yield servers


def _run(work: Coroutine[object, object, T]) -> T:
    """Run to the end in a thread: the tests' own event loop stays as it is."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
