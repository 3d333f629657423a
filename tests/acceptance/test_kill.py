"""Whatever stage dies in the middle of an import, no page is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from tests.acceptance.system import Instance, eventually
from tests.acceptance.test_story import page
from tests.engine_fixture import Servers

pytestmark = pytest.mark.engine

STAGES = ("chunk", "embed", "index")
PAGES = 40


@pytest.fixture(scope="module")
def separate(engine: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Instance, httpx.Client]]:
    """A gateway without workers."""
    instance = Instance(tmp_path_factory.mktemp("kills"), engine)
    with instance.started("gateway") as gateway, instance.client(gateway.url) as site:
        yield instance, site


@pytest.mark.parametrize("killed", STAGES)
def test_kill_9_of_a_stage_during_an_import_loses_no_page(separate: tuple[Instance, httpx.Client], killed: str) -> None:
    instance, site = separate
    lines = [
        {"op": "upsert", "page": page(f"{killed}{i}", f"<p>Revision {revision} of page {i}.</p>", revision)}
        for revision in (1, 2)
        for i in range(PAGES)
    ]
    with ExitStack() as stack:
        workers = {stage: stack.enter_context(instance.started("worker", stage)) for stage in STAGES}
        body = "\n".join(json.dumps(line) for line in lines)
        sent = site.post("/pages:bulk", content=body, headers={"Content-Type": "application/x-ndjson"})
        assert (sent.status_code, sent.json()["accepted"]) == (200, len(lines)), sent.text
        if killed != "chunk":  # which is through with all of it before the first page is searchable
            eventually(lambda: searchable(site, killed) > 0)
        workers[killed].kill()
        stack.enter_context(instance.started("worker", killed))
        eventually(lambda: searchable(site, killed) == PAGES, timeout=120)
    for i in range(PAGES):
        hits = site.get("/search", params={"q": f"revision page {i}", "mode": "keyword", "size": 100}).json()["hits"]
        assert {hit["revision"] for hit in hits if hit["page_id"] == f"{killed}{i}"} == {2}


def searchable(site: httpx.Client, prefix: str) -> int:
    """Pages at their latest revision, by their receipts."""
    receipts = (site.get(f"/pages/{prefix}{i}/receipt", params={"lang": "en"}) for i in range(PAGES))
    return sum(r.status_code == 200 and r.json()["searchable_revision"] == 2 for r in receipts)
