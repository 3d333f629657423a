"""A Kafka broker for these tests alone: it is killed, paused and brought back."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from infra.engine import EngineProgress, LocalEngineSettings, jars
from infra.engine.engine import SERVER_PROCESS
from infra.engine.servers import kafka_server, prepare_kafka
from infra.engine.state import any_free, kafka_serves

START_LIMIT = 120.0  # seconds


class OwnKafka:
    """The local engine's Kafka, without its Elasticsearch; ends with this process in any case."""

    def __init__(self, home: Path) -> None:
        settings = LocalEngineSettings(home=home)
        asyncio.run(jars.fetch(settings.cache, EngineProgress()))
        self._server = kafka_server(settings.root)
        self._port = any_free(set())
        prepare_kafka(self._server, settings, self._port, any_free({self._port}))
        self._server.log.parent.mkdir(exist_ok=True)
        self._process: subprocess.Popen[bytes] | None = None
        self.bootstrap = f"127.0.0.1:{self._port}"

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
        while not await kafka_serves(self._port):
            assert self._running.poll() is None, self._server.log.read_text(errors="replace")[-2000:]
            assert time.monotonic() < end, "Kafka does not start"
            await asyncio.sleep(0.1)

    def kill(self) -> None:
        """As a power cut would."""
        self._running.kill()
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
