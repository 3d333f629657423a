"""Real `pagewire` processes for tests: started as a user starts them, seen from the outside only."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

import httpx
import yaml

from schemas.page import PageDocument
from tests.engine_fixture import Servers
from wiring.settings import sample_site

START_TIMEOUT = 240.0  # seconds; CI machines are shared
PAGEWIRE = Path(sys.executable).with_name("pagewire")


class Instance:
    """One home: its own sites, topics and state. Several processes may run in it."""

    def __init__(self, home: Path, servers: Servers | None, *, sites: int = 1, **settings: str) -> None:
        self.home = home
        self.sites = [f"t{uuid4().hex[:10]}" for _ in range(sites)]
        self.site = self.sites[0]
        config = home / "pagewire.yaml"
        glossary = sample_site()["demo"].model_dump(mode="json")["glossary"]  # for the sample site's own questions
        site = {"languages": ["en", "de"], "glossary": glossary, "agents": ["pages", "mcp", "nlweb"]}
        config.write_text(yaml.safe_dump({"sites": dict.fromkeys(self.sites, site)}, allow_unicode=True), "utf-8")
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PAGEWIRE_", "OPENAI_"))},
            "PAGEWIRE_HOME": str(home / "state"),
            "PAGEWIRE_CONFIG": str(config),
            "PAGEWIRE_ADMIN_KEY": "key-of-the-acceptance-ring",
            "PAGEWIRE_PORT": "0",
            "PAGEWIRE_LOG_LEVEL": "warning",
            "PAGEWIRE_NICE": "0",  # whoever gives way to everybody does nothing beside other tests
            "PAGEWIRE_TOPIC_PREFIX": f"{self.site}-",
            **settings,
        }
        if servers is not None:
            self.environment |= {"PAGEWIRE_KAFKA": servers.kafka, "PAGEWIRE_ELASTICSEARCH": servers.elasticsearch}

    def run(self, *arguments: str, timeout: float = START_TIMEOUT) -> subprocess.CompletedProcess[str]:
        """A command that ends by itself."""
        return subprocess.run(
            [PAGEWIRE, *arguments], env=self.environment, capture_output=True, text=True, timeout=timeout, check=False
        )

    @contextmanager
    def started(self, *arguments: str, program: Sequence[str | Path] = (PAGEWIRE,)) -> Iterator[Started]:
        """A command that serves until it is stopped; ready when it says so."""
        log = (self.home / f"{'-'.join(arguments)}-{uuid4().hex[:4]}.log").open("w+b")
        process = subprocess.Popen(
            [*program, *arguments], env=self.environment, stdout=subprocess.PIPE, stderr=log, start_new_session=True
        )
        started = Started(process, Path(log.name))
        try:
            started.wait_ready()
            yield started
        finally:
            started.stop()
            log.close()

    def client(self, url: str, site: str = "") -> httpx.Client:
        """A client that may do everything with a site (default: the first); paths start below /v1/sites/{site}."""
        return httpx.Client(
            base_url=f"{url}/v1/sites/{site or self.site}",
            headers={"Authorization": "Bearer key-of-the-acceptance-ring"},
            timeout=60,
        )


class Started:
    """A running process."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.log = log
        self.url = ""
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._lines.put(line.decode(errors="replace").strip())
        self._lines.put(None)

    def wait_ready(self) -> None:
        end = monotonic() + START_TIMEOUT
        while True:
            try:
                line = self._lines.get(timeout=max(0.1, end - monotonic()))
            except queue.Empty:
                raise AssertionError(f"not ready within {START_TIMEOUT:.0f} s:\n{self.log.read_text()}") from None
            assert line is not None, f"ended before it was ready:\n{self.log.read_text()}"
            if line.startswith("ready"):
                self.url = line.removeprefix("ready").strip()
                return

    def kill(self) -> None:
        """As kill -9 does it; its children must end by themselves."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """As Ctrl-C does it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        code = self.process.wait(timeout=60)
        if self.process.stdout:
            self.process.stdout.close()
        return code


def eventually(look: object, timeout: float = 120.0, every: float = 0.1) -> None:
    """Wait until `look()` is true; what it last said is in the failure."""
    assert callable(look)
    end = monotonic() + timeout
    while not (last := look()):
        assert monotonic() < end, f"not within {timeout} s: {last!r}"
        sleep(every)


def save(site: httpx.Client, page: PageDocument) -> None:
    """Save a page, and wait until it is searchable."""
    saved = site.put(
        f"/pages/{page.id}?wait=searchable&timeout=120",
        content=page.model_dump_json(exclude_none=True),
        headers={"Content-Type": "application/json"},
    )
    assert saved.status_code == 200, saved.text


def events(response: httpx.Response) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(id, event, data) of a streamed answer."""

    fields: dict[str, str] = {}
    for line in response.iter_lines():
        if not line and "event" in fields:
            yield fields.get("id", ""), fields["event"], json.loads(fields["data"])
            fields = {}
        elif line and not line.startswith(":"):
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")


def streamed(site: httpx.Client, question: str, stop_after: int = 0) -> list[tuple[str, dict[str, Any]]]:
    """Names and data of a whole streamed answer; stopped after so many tokens."""
    got: list[tuple[str, dict[str, Any]]] = []
    accept = {"Accept": "text/event-stream"}
    with site.stream("POST", "/chat", json={"question": question}, headers=accept) as response:
        for _, event, data in events(response):
            got.append((event, data))
            if stop_after and event == "token" and sum(name == "token" for name, _ in got) == stop_after:
                stopped = site.delete(f"/answers/{got[0][1]['request_id']}")
                assert stopped.status_code == 202, stopped.text
    return got
