"""A Kafka and an Elasticsearch of the storm's own: killed, paused and brought back on the same ports."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from infra.engine import EngineProgress, LocalEngineSettings, jars
from infra.engine.engine import SERVER_PROCESS
from infra.engine.servers import Server, elasticsearch_server, kafka_server, prepare_elasticsearch, prepare_kafka
from infra.engine.state import any_free, elasticsearch_serves, kafka_serves

START_LIMIT = 120.0  # seconds
LOOK = 0.2  # seconds


class OwnServer:
    """One of the local engine's two servers by itself; ends with this process in any case."""

    def __init__(self, server: Server, address: str, serves: Callable[[], Awaitable[bool]]) -> None:
        self._server = server
        self._serves = serves
        self._process: subprocess.Popen[bytes] | None = None
        self.name = server.name
        self.address = address

    def start(self) -> None:
        """Start the process; `serves` says when it can be used."""
        with self._server.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(SERVER_PROCESS), str(self._server.run_file), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._server.folder,
                start_new_session=True,
            )

    async def serves(self) -> None:
        """Wait until clients are served."""
        end = time.monotonic() + START_LIMIT
        while not await self._serves():
            assert self._running.poll() is None, self._server.log.read_text(errors="replace")[-2000:]
            assert time.monotonic() < end, f"{self.name} does not start"
            await asyncio.sleep(LOOK)

    def kill(self) -> None:
        """As a power cut would."""
        self._running.kill()
        self._running.wait()

    def stop(self) -> None:
        """In order; waits for the end."""
        self._running.terminate()
        self._running.wait()

    def pause(self) -> None:
        self._running.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._running.send_signal(signal.SIGCONT)

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.resume()
            self.kill()

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process


@dataclass(frozen=True)
class OwnEngine:
    """Both servers."""

    kafka: OwnServer
    elastic: OwnServer
    spare_elastics: tuple[str, ...] = ()  # URLs of the other nodes, where there are several


@asynccontextmanager
async def own_engine(home: Path) -> AsyncIterator[OwnEngine]:
    """Both servers, serving, as long as the context lasts."""
    settings = LocalEngineSettings(home=home)
    await jars.fetch(settings.cache, EngineProgress())
    kafka, elastic = kafka_server(settings.root), elasticsearch_server(settings.root)
    kafka_port = any_free(set())
    controller_port = any_free({kafka_port})
    elastic_port = any_free({kafka_port, controller_port})
    prepare_kafka(kafka, settings, kafka_port, controller_port)
    prepare_elasticsearch(elastic, settings, elastic_port)
    kafka.log.parent.mkdir(exist_ok=True)
    engine = OwnEngine(
        OwnServer(kafka, kafka.url(kafka_port), partial(kafka_serves, kafka_port)),
        OwnServer(elastic, elastic.url(elastic_port), partial(elasticsearch_serves, elastic_port)),
    )
    try:
        engine.kafka.start()
        engine.elastic.start()
        await asyncio.gather(engine.kafka.serves(), engine.elastic.serves())
        yield engine
    finally:
        engine.kafka.close()
        engine.elastic.close()
