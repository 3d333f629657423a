"""docker-compose.yml, really started: a project of its own, seen through Docker's and Pagewire's own commands.

Commands of the documentation run as they stand there: what they need to find the project is in their environment.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

import httpx

from infra.engine.state import any_free, is_free

ROOT = Path(__file__).parents[2]
STAND_INS = ROOT / "tests/containers/stand_ins"
COMMAND_TIMEOUT = 1800.0  # seconds; all that is started at once, or imported, on a machine that is shared
STANDSTILL = 300.0  # seconds without one more page
STATUS = "docker compose exec gateway pagewire status"
ADMIN_KEY = "admin-key-of-the-ring"


class Stack:
    """One compose project, of docker-compose.yml and what goes `over` it.

    `home` is the folder that commands run in, with the project's `.env`.
    """

    def __init__(self, home: Path, *over: Path) -> None:
        self.home = home
        self.name = f"pagewire-{uuid4().hex[:8]}"
        ports: set[int] = set()
        for _ in range(3):
            ports.add(any_free(ports))
        self.port, self.prometheus, grafana = sorted(ports)
        self.settings = {
            "PAGEWIRE_ADMIN_KEY": ADMIN_KEY,
            "PAGEWIRE_TOKEN_SECRET": uuid4().hex * 2,
            "ELASTIC_PASSWORD": uuid4().hex,
            "PAGEWIRE_ELASTICSEARCH_PASSWORD": uuid4().hex,
            "GRAFANA_ADMIN_PASSWORD": uuid4().hex,
            "PAGEWIRE_VERSION": f"{self.name}.1",
            "PAGEWIRE_PORT": str(self.port),
            "PROMETHEUS_PORT": str(self.prometheus),
            "GRAFANA_PORT": str(grafana),
            # The sample site is small, and so may the machine be.
            "KAFKA_HEAP": "512m",
            "KAFKA_MEMORY": "1g",
            "ELASTIC_HEAP": "768m",
            "ELASTIC_MEMORY": "1536m",
        }
        files = (ROOT / "docker-compose.yml", *over)
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PAGEWIRE_", "OPENAI_"))},
            "COMPOSE_PROJECT_NAME": self.name,
            "COMPOSE_FILE": os.pathsep.join(map(str, files)),
            "COMPOSE_ENV_FILES": str(home / ".env"),
        }
        self.set()

    @property
    def image(self) -> str:
        """Tag of the image that is started next."""
        return f"pagewire:{self.settings['PAGEWIRE_VERSION']}"

    def set(self, **settings: str) -> None:
        """Write `.env` anew, with these changed."""
        self.settings |= settings
        text = "".join(f"{name}={value}\n" for name, value in self.settings.items())
        (self.home / ".env").write_text(text, encoding="utf-8")

    def run(self, command: str, timeout: float = COMMAND_TIMEOUT) -> str:
        """What a command line prints; raises AssertionError, with its last words, unless it exits with 0."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self.home,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        said = f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        assert done.returncode == 0, f"{command}\nexit code {done.returncode}\n{said}"
        return done.stdout

    def up(self, more: str = "") -> None:
        """As deploy.md starts and upgrades; returns when everybody is healthy."""
        try:
            self.run(f"docker compose up --detach --wait {more}")
        except AssertionError:
            print(self.run("docker compose ps --all; docker compose logs --tail 20 2>&1"), file=sys.stderr)
            raise

    def containers(self) -> dict[str, dict[str, Any]]:
        """Service -> what `docker inspect` says of its container."""
        ids = self.run("docker compose ps --all --quiet").split()
        found = json.loads(self.run(f"docker inspect {' '.join(ids)}"))
        return {one["Config"]["Labels"]["com.docker.compose.service"]: one for one in found}

    def client(self, bearer: str = ADMIN_KEY, gateway: str | None = None) -> httpx.Client:
        """Paths start below the sample site; `gateway`: another address than that of the first."""
        return httpx.Client(
            base_url=f"{gateway or f'http://127.0.0.1:{self.port}'}/v1/sites/demo",
            headers={"Authorization": f"Bearer {bearer}"},
            timeout=120,
            trust_env=False,
        )

    def pages(self) -> list[dict[str, Any]]:
        """All pages of the sample site."""
        listed = "docker compose exec gateway pagewire pages demo --json || test $? = 1"  # 1: there are none
        found: list[dict[str, Any]] = json.loads(self.run(listed))["pages"]
        return found

    def wait_for(self, pages: list[dict[str, Any]]) -> None:
        """Until the sample site has these pages, however long it takes, as long as it goes on.

        The bulk lane gives way to everybody: on a machine that is shared, its 42 pages have taken twelve minutes.
        """
        seen: list[dict[str, Any]] = []
        since = monotonic()
        while (found := self.pages()) != pages:
            if found != seen:
                seen, since = found, monotonic()
            assert monotonic() - since < STANDSTILL, f"{len(found)} of {len(pages)} pages: {self.run(STATUS)}"
            sleep(2)


def two_free_ports() -> tuple[int, int]:
    """One after the other, as Compose's ranges want them."""
    port = any_free(set())
    while not is_free(port + 1):
        port = any_free(set())
    return port, port + 1


def documented(page: str, before: str) -> str:
    """The first block of commands below a text in a page of docs/howto."""
    text = (ROOT / "docs/howto" / page).read_text(encoding="utf-8")
    _, _, rest = text.partition(before)
    block = re.search(r"^```sh\n(.*?)^```$", rest, re.M | re.S)
    assert block, f"{page}: no commands below {before!r}"
    return block[1]
