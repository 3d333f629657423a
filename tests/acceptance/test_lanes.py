"""Two lanes: a save overtakes an import, and nothing is lost or mixed where the two meet."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from tests.acceptance.system import Instance, Started, eventually
from tests.engine_fixture import Servers

pytestmark = pytest.mark.engine

BULK = ("worker", "ingest", "--lane", "bulk")
SAVE = ("worker", "ingest", "--lane", "save")
# What an import is worked on by: one process for both lanes, or one for each.
WORKERS = {"one process": [("worker", "ingest")], "two processes": [SAVE, BULK]}
IMPORTED = 50
LONG = 200  # pages of an import that takes longer than three saves


@pytest.fixture
def edge(engine: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Instance, httpx.Client]]:
    """A gateway without workers."""
    instance = Instance(tmp_path_factory.mktemp("lanes"), engine)
    with instance.started("gateway") as gateway, instance.client(gateway.url) as site:
        yield instance, site


@pytest.mark.parametrize("workers", WORKERS.values(), ids=WORKERS.keys())
def test_a_save_is_searchable_while_an_import_is_worked_on(
    edge: tuple[Instance, httpx.Client], workers: Sequence[Sequence[str]]
) -> None:
    instance, site = edge
    long = [document(f"i{n}", " ".join(f"Word {n} {m} of a long page." for m in range(150)), 1) for n in range(LONG)]
    with ExitStack() as stack:
        started = [stack.enter_context(instance.started(*worker)) for worker in workers]
        bulk(site, long)
        eventually(lambda: lag(instance, "embed", "bulk") > 0)
        for n in range(3):
            saved = site.put(
                f"/pages/s{n}", params={"wait": "searchable", "timeout": 45}, json=document(f"s{n}", "Now!")
            )
            assert (saved.status_code, saved.json()["state"]) == (200, "searchable"), saved.text
        assert lag(instance, "embed", "bulk") > 0, "the import was over before the save"
        for worker in started:  # the rest of the import is of no interest
            worker.kill()


def test_a_page_that_is_saved_before_its_import_is_worked_on_keeps_the_higher_revision(
    edge: tuple[Instance, httpx.Client],
) -> None:
    instance, site = edge
    with instance.started(*SAVE):
        bulk(
            site,
            [document("older", "Imported.", 1), document("newer", "Imported.", 9), document("gone", "Imported.", 1)],
        )
        # No look at the index keeps these out of the log: it knows nothing of the import yet.
        assert put(site, document("older", "Saved.", 5)) == 5
        site.put("/pages/newer", json=document("newer", "Saved.", 5)).raise_for_status()
        deleted = site.delete("/pages/gone", params={"lang": "en", "revision": 5, "wait": "searchable"})
        assert deleted.json()["state"] == "deleted"
        with instance.started(*BULK):
            eventually(lambda: receipt(site, "newer")["searchable_revision"] == 9)
            eventually(lambda: lag(instance, "index", "bulk") == lag(instance, "embed", "bulk") == 0)
            eventually(lambda: lag(instance, "index", "save") == lag(instance, "chunk", "save") == 0)
    assert found(site) == {"older": {(5, "Saved.")}, "newer": {(9, "Imported.")}}
    assert receipt(site, "older")["searchable_revision"] == 5
    assert receipt(site, "gone")["state"] == "deleted"


def test_kill_9_of_the_bulk_worker_loses_no_page(edge: tuple[Instance, httpx.Client]) -> None:
    instance, site = edge
    with ExitStack() as stack:
        stack.enter_context(instance.started(*SAVE))
        worker: Started = stack.enter_context(instance.started(*BULK))
        bulk(site, [document(f"i{n}", f"Imported page {n}.", 1) for n in range(IMPORTED)])
        eventually(lambda: searchable(site) > 0, timeout=120, every=1)
        worker.kill()
        assert put(site, document("saved", "Meanwhile.", 1)) == 1
        stack.enter_context(instance.started(*BULK))
        eventually(lambda: searchable(site) == IMPORTED, timeout=240, every=1)


def document(page_id: str, text: str, revision: int | None = None) -> dict[str, Any]:
    return {"id": page_id, "lang": "en", "content": f"<p>{text}</p>", "revision": revision}


def bulk(site: httpx.Client, documents: Sequence[dict[str, Any]]) -> None:
    body = "\n".join(json.dumps({"op": "upsert", "page": one}) for one in documents)
    sent = site.post("/pages:bulk", content=body, headers={"Content-Type": "application/x-ndjson"})
    assert (sent.status_code, sent.json()["accepted"]) == (200, len(documents)), sent.text


def put(site: httpx.Client, one: dict[str, Any]) -> int | None:
    """Save; the revision that can be found then."""
    saved = site.put(f"/pages/{one['id']}", params={"wait": "searchable", "timeout": 45}, json=one)
    assert saved.status_code == 200, saved.text
    revision: int | None = saved.json()["searchable_revision"]
    return revision


def receipt(site: httpx.Client, page_id: str) -> dict[str, Any]:
    found: dict[str, Any] = site.get(f"/pages/{page_id}/receipt", params={"lang": "en"}).json()
    return found


def searchable(site: httpx.Client) -> int:
    """Imported pages that can be found, by their receipts."""
    return sum(receipt(site, f"i{n}").get("state") == "searchable" for n in range(IMPORTED))


def found(site: httpx.Client) -> dict[str, set[tuple[int, str]]]:
    """What a search finds: revision and text by page."""
    pages: dict[str, set[tuple[int, str]]] = {}
    for word in ("saved", "imported"):
        for hit in site.get("/search", params={"q": word, "mode": "keyword", "size": 100}).json()["hits"]:
            pages.setdefault(hit["page_id"], set()).add((hit["revision"], hit["text"]))
    return pages


def lag(instance: Instance, stage: str, lane: str) -> int:
    status = json.loads(instance.run("status", "--json").stdout)
    (lag,) = [one["lag"] for one in status["stages"] if (one["stage"], one["lane"]) == (stage, lane)]
    return int(lag)
