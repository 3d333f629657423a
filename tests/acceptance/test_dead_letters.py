"""As an operator: a page breaks, its neighbours go on; it is found, corrected, redriven and searchable again."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiokafka import AIOKafkaProducer

from adapters.kafka import partition_of
from tests.acceptance.conftest import System
from tests.acceptance.system import eventually
from tests.acceptance.test_story import found, put

pytestmark = pytest.mark.engine

ADMIN = {"Authorization": "Bearer key-of-the-acceptance-ring"}
PARTITIONS = 4  # the default of new topics


def dlq(system: System, *arguments: str) -> Any:
    result = system.instance.run("dlq", *arguments, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def letters_of(system: System, page_id: str, **more: Any) -> list[dict[str, Any]]:
    answer = httpx.get(f"{system.url}/v1/admin/dlq", params={"page": page_id, **more}, headers=ADMIN, timeout=60)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["letters"])


def write_to_the_log(system: System, page_id: str, value: bytes) -> None:
    """As a broken program would, past the gateway."""

    async def send() -> None:
        environment = system.instance.environment
        producer = AIOKafkaProducer(bootstrap_servers=environment["PAGEWIRE_KAFKA"])
        await producer.start()
        try:
            topic = f"{environment['PAGEWIRE_TOPIC_PREFIX']}cms.changes"
            await producer.send_and_wait(topic, value, f"{system.instance.site}:en:{page_id}".encode())
        finally:
            await producer.stop()

    asyncio.run(send())


def neighbours(system: System, page_id: str, count: int) -> list[str]:
    """Pages of the same partition."""

    def place(page: str) -> int:
        return partition_of(f"{system.instance.site}:en:{page}".encode(), PARTITIONS)

    return [page for page in (f"beside-{n}" for n in range(1_000)) if place(page) == place(page_id)][:count]


def test_a_broken_page_is_found_corrected_and_searchable_while_its_neighbours_go_on(
    system: System, tmp_path: Path
) -> None:
    site = system.site
    put(site, "market", "<p>The market is on Mondays.</p><p>Bring a bag.</p>", 10, title="Market")
    change = {
        "v": 1,
        "op": "upsert",
        "site": system.instance.site,
        "lang": "en",
        "page_id": "market",
        "revision": 20,
        "accepted_at": "2026-05-04T12:00:00Z",
        "source": "push",
        "page": {
            "id": "market",
            "lang": "en",
            "title": "Market",
            "content": "<p>The market is on turquoise Fridays.</p><p>Bring a bag.</p>",
        },
    }
    write_to_the_log(system, "market", json.dumps({**change, "revision": "twenty"}).encode())
    for page in neighbours(system, "market", 3):
        saved = put(site, page, f"<p>Opposite of the market: {page}.</p>", 1)
        assert saved.json()["state"] == "searchable"

    eventually(lambda: len(letters_of(system, "market")) == 1)
    (letter,) = dlq(system, "list", "--page", "market")["letters"]
    assert (letter["stage"], letter["code"], letter["attempts"]) == ("chunk", "bad-message", 1)
    assert "revision" in letter["message"]
    shown = dlq(system, "show", letter["id"])
    assert shown["diff"]["last_good"] == 10
    assert [line for line in shown["diff"]["lines"] if "market is on" in line] == [
        "-<p>The market is on Mondays.</p>",
        "+<p>The market is on turquoise Fridays.</p>",
    ]
    # Other tests of this module leave letters, too.
    letters = dlq(system, "list")["letters"]
    status = json.loads(system.instance.run("status", "--json").stdout)
    told = {stage["stage"]: stage["dead_letters"] for stage in status["stages"] if stage["dead_letters"]}
    assert told == Counter(each["stage"] for each in letters)
    alike = sum((each["stage"], each["code"]) == ("chunk", "bad-message") for each in letters)
    metrics = httpx.get(f"{system.url}/metrics").text
    assert f'pagewire_dead_letters_open{{code="bad-message",stage="chunk"}} {alike}.0' in metrics

    file = tmp_path / "corrected.json"
    file.write_text(json.dumps({**change, "page_id": "elsewhere"}))
    refused = system.instance.run("dlq", "edit", letter["id"], "--file", str(file))
    assert (refused.returncode, "another page" in refused.stderr) == (2, True)
    file.write_text(json.dumps(change))
    edited = system.instance.run("dlq", "edit", letter["id"], "--file", str(file))
    assert (edited.returncode, edited.stdout) == (0, f"{letter['id']} edited\n"), edited.stderr
    eventually(lambda: "market" in found(site, "turquoise", "keyword"))
    assert site.get("/pages/market/receipt", params={"lang": "en"}).json()["searchable_revision"] == 20
    assert letters_of(system, "market") == []
    (handled,) = letters_of(system, "market", all=True)
    assert handled["state"] == "edited"
    assert system.instance.run("dlq", "redrive", letter["id"]).returncode == 1


def test_a_letter_that_fails_again_counts_on_and_is_dropped(system: System) -> None:
    put(system.site, "lighthouse", "<p>The lighthouse is striped.</p>", 10)
    write_to_the_log(system, "lighthouse", b"\x00 not JSON")
    eventually(lambda: len(letters_of(system, "lighthouse")) == 1)
    (first,) = letters_of(system, "lighthouse")
    assert system.instance.run("dlq", "redrive", first["id"]).stdout == f"{first['id']} redriven\n"
    eventually(lambda: [one["redrives"] for one in letters_of(system, "lighthouse")] == [1])
    (again,) = letters_of(system, "lighthouse")
    assert (again["attempts"], again["first_failed_at"]) == (2, first["first_failed_at"])

    with httpx.Client(base_url=f"{system.url}/v1/admin", headers=ADMIN) as admin:
        over_http = admin.get(f"/dlq/{again['id']}").json()
        assert over_http["letter"] == again
        assert over_http["text"] == "\x00 not JSON"
        dropped = admin.post("/dlq:drop", json={"page": "lighthouse"})
        assert dropped.json() == {"handled": 1, "refused": 0}
        assert admin.get("/dlq", params={"page": "lighthouse"}).json()["total"] == 0
    nothing = system.instance.run("dlq", "redrive", "--all", "--page", "lighthouse", "--yes")
    assert (nothing.returncode, nothing.stderr) == (1, "error no open dead letter fits\n")
    assert "lighthouse" in found(system.site, "striped lighthouse", "keyword")
