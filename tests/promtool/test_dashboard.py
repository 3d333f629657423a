"""The dashboard over a real Prometheus that reads a real system: every panel has something to show."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from math import isnan
from pathlib import Path
from time import sleep

import httpx
import pytest
import yaml

from infra.engine.state import any_free
from tests.acceptance.system import Instance, eventually
from tests.engine_fixture import Servers

pytestmark = [pytest.mark.engine, pytest.mark.promtool]

ROOT = Path(__file__).parents[2]
WINDOW = "20s"  # of a rate, in place of Grafana's
ROUNDS = 20
# What only a fault fills.
OF_FAULTS = {"sum by (stage, code) (rate(pagewire_retries_total[$__rate_interval]))"}


def asked() -> list[str]:
    board = json.loads((ROOT / "infra/grafana/dashboards/pagewire.json").read_text(encoding="utf-8"))
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]]


@contextmanager
def prometheus(folder: Path, ports: list[int]) -> Iterator[httpx.Client]:
    """It looks at these ports every second."""
    config = folder / "prometheus.yml"
    targets = [{"targets": [f"127.0.0.1:{port}" for port in ports]}]
    scrape = {"job_name": "pagewire", "static_configs": targets}
    config.write_text(yaml.safe_dump({"global": {"scrape_interval": "1s"}, "scrape_configs": [scrape]}))
    own = any_free(set(ports))
    options = {
        "config.file": config,
        "storage.tsdb.path": folder / "data",
        "web.listen-address": f"127.0.0.1:{own}",
        "log.level": "error",
    }
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            ["prometheus", *(f"--{name}={value}" for name, value in options.items())], stdout=log, stderr=log
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{own}", timeout=10) as client:
            eventually(lambda: process.poll() is None and _ready(client))
            yield client
    finally:
        process.terminate()
        process.wait(timeout=30)


def _ready(client: httpx.Client) -> bool:
    try:
        return client.get("/-/ready").is_success
    except httpx.TransportError:
        return False


def has_data(client: httpx.Client, expression: str) -> bool:
    query = expression.replace("$__rate_interval", WINDOW)
    answer = client.get("/api/v1/query", params={"query": query}).json()
    assert answer["status"] == "success", (query, answer)
    return any(not isnan(float(one["value"][1])) for one in answer["data"]["result"])


def use(site: httpx.Client, price: int) -> None:
    """A save, an answer, a refusal and what a visitor says of it."""
    page = {"id": "ferry", "lang": "en", "title": "Lake ferry", "content": f"<p>A ticket costs {price} euros.</p>"}
    saved = site.put("/pages/ferry?wait=searchable&timeout=60", json=page)
    assert saved.is_success, saved.text
    for question in ("What does a ticket for the ferry cost?", "Who won the world cup in 1954?"):
        answer = site.post("/chat", json={"question": question, "lang": "en"}).json()
    rated = site.post(f"/answers/{answer['request_id']}/feedback", json={"rating": "down"})
    assert rated.is_success, rated.text


def test_every_panel_has_something_to_show(engine: Servers, tmp_path: Path) -> None:
    instance = Instance(tmp_path, engine)
    of_worker = any_free(set())
    of_gateway = any_free({of_worker})
    with ExitStack() as stack:
        instance.environment["PAGEWIRE_METRICS_PORT"] = str(of_worker)
        stack.enter_context(instance.started("worker", "all"))
        instance.environment["PAGEWIRE_METRICS_PORT"] = str(of_gateway)
        gateway = stack.enter_context(instance.started("gateway"))
        told = stack.enter_context(prometheus(tmp_path, [of_worker, of_gateway]))
        site = stack.enter_context(instance.client(gateway.url))
        left = [one for one in asked() if one not in OF_FAULTS]
        for price in range(1, ROUNDS):  # a rate is of what is counted twice
            use(site, price)
            sleep(1.5)
            left = [one for one in left if not has_data(told, one)]
            if not left:
                break
        assert left == []
