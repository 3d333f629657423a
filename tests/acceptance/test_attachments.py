"""Attachments, from the outside: saved with a page, asked about, cited where they say it; and what goes wrong."""

from __future__ import annotations

import base64
import json
import os
import signal
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx
import psutil
import pytest

from tests import office_files as made
from tests.acceptance.conftest import System
from tests.acceptance.system import Instance, eventually
from tests.acceptance.test_story import ask, found, put
from tests.engine_fixture import Servers

pytestmark = [pytest.mark.engine, pytest.mark.attachments]

STATUTE = [
    "Statute of the town on the keeping of animals.",
    "Whoever keeps an animal tells the registry office within two weeks.",
    "The yearly fee for a dog is 96 euros. Guide dogs are free of it.",
    "The town council made this statute in March.",
]
# Takes seconds to read, long enough to be struck meanwhile, and no time to embed: pages full of spaces.
LONG = made.pdf([*["\n".join([" " * 80] * 40)] * 300, "A bear was seen."])


def attached(data: bytes, media_type: str = made.PDF, **more: str) -> dict[str, str]:
    return {"data_base64": base64.b64encode(data).decode(), "media_type": media_type, **more}


def reading(process: int) -> list[psutil.Process]:
    """The children that read documents, of a process and all below it."""
    try:
        below = psutil.Process(process).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    return [child for child in below if _is_reader(child)]


def _is_reader(process: psutil.Process) -> bool:
    try:
        return "adapters.extraction.child" in process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False


def letters(instance: Instance, page_id: str) -> list[Any]:
    result = instance.run("dlq", "list", "--page", page_id, "--json")
    assert result.returncode == 0, result.stderr
    return [letter for letter in json.loads(result.stdout)["letters"] if letter["page_id"] == page_id]


def test_an_answer_cites_the_page_of_the_pdf_that_says_it(system: System) -> None:
    site = system.site
    link = "https://town.example/files/animals.pdf"
    content = "<p>All about animals in town.</p>"
    files = [attached(made.pdf(STATUTE), title="Statute", link=link)]
    saved = put(site, "animals", content, 1, title="Animals", attachments=files)
    assert saved.json()["notes"] == []
    assert saved.json()["chunks"]["total"] == 6

    answer: Any = ask(site, "What is the yearly fee for a dog?")
    assert "96 euros" in answer["answer"]
    source = next(source for source in answer["sources"] if source["cited"])
    assert source["url"] == link + "#page=3"
    assert source["title"] == "Animals – Statute · 3/4"
    assert source["text"] == STATUTE[2]
    assert source["page_id"] == "animals"

    again = put(site, "animals", "<p>All about animals in town. And more.</p>", 2, title="Animals", attachments=files)
    assert again.json()["chunks"] == {"total": 6, "embedded": 1, "reused": 5, "removed": 0}
    without = put(site, "animals", content, 3, title="Animals")
    assert without.json()["chunks"]["removed"] == 4
    assert "96 euros" not in str(ask(site, "What is the yearly fee for a dog?")["answer"])


def test_a_pdf_that_comes_with_the_page_alone_is_cited_at_the_page(system: System) -> None:
    put(
        system.site,
        "lake",
        "<p>The lake.</p>",
        1,
        title="Lake",
        attachments=[attached(made.pdf(["x", "Pike live here."]))],
    )
    answer: Any = ask(system.site, "Which fish live in the lake, pike?")
    assert "https://town.example/lake#page=2" in [source["url"] for source in answer["sources"]]


def test_what_cannot_be_read_is_a_dead_letter_and_the_page_is_searchable(system: System) -> None:
    bad = [
        attached(made.zip_bomb(150), made.DOCX, title="Bomb"),
        attached(made.pdf_bomb(), title="Bomb too"),
        attached(made.pdf(["a"])[:200], title="Torn"),
        attached(made.encrypted(made.pdf(["a"]), "secret"), title="Locked"),
        {"path": "/etc/passwd", "title": "Ours"},
        {"url": "http://127.0.0.1:9/secret.pdf", "title": "Inside"},
        attached(made.docx("Hall", ["The hall can be rented for 250 euros."]), made.DOCX, title="Good"),
    ]
    saved = put(system.site, "hall", "<p>The violet hall.</p>", 1, title="Hall", attachments=bad).json()
    assert saved["state"] == "searchable"
    names = [note.partition(" is not searchable: ")[0] for note in saved["notes"]]
    assert names == ["Bomb", "Bomb too", "Torn", "Locked", "Ours", "Inside"]
    assert "hall" in found(system.site, "violet", "keyword")
    assert "hall" in found(system.site, "rented 250 euros", "keyword")
    eventually(lambda: letters(system.instance, "hall"))
    [letter] = letters(system.instance, "hall")
    assert (letter["stage"], letter["code"], letter["topic"]) == ("chunk", "unreadable-attachment", "cms.changes")
    for note in saved["notes"]:
        assert note in letter["message"]
    receipt = system.site.get("/pages/hall/receipt", params={"lang": "en"}).json()
    assert (receipt["state"], receipt["notes"]) == ("searchable", saved["notes"])
    # The worker goes on.
    assert put(system.site, "after", "<p>After the bombs.</p>", 1).json()["state"] == "searchable"


@pytest.fixture
def edge(engine: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Instance, httpx.Client]]:
    """A gateway without workers."""
    instance = Instance(tmp_path_factory.mktemp("attachments"), engine, PAGEWIRE_FETCH_ALLOW="127.0.0.1")
    with instance.started("gateway") as gateway, instance.client(gateway.url) as site:
        yield instance, site


def save_annals(site: httpx.Client) -> None:
    body = {"id": "annals", "lang": "en", "url": "/annals", "revision": 1, "attachments": [attached(LONG)]}
    assert site.put("/pages/annals", json=body).status_code == 202


def searchable(site: httpx.Client, page_id: str) -> bool:
    answer = site.get(f"/pages/{page_id}/receipt")
    return answer.status_code == 200 and answer.json()["state"] == "searchable"


def test_a_reader_that_is_killed_loses_nothing(edge: tuple[Instance, httpx.Client]) -> None:
    instance, site = edge
    with instance.started("worker", "ingest", "--lane", "save") as worker:
        save_annals(site)
        eventually(lambda: reading(worker.process.pid))
        for child in reading(worker.process.pid):
            os.kill(child.pid, signal.SIGKILL)
        eventually(lambda: searchable(site, "annals"), timeout=240)
        assert "annals" in found(site, "bear seen", "keyword")
        assert letters(instance, "annals") == []


def test_a_worker_that_is_killed_while_it_reads_loses_nothing(edge: tuple[Instance, httpx.Client]) -> None:
    instance, site = edge
    with instance.started("worker", "ingest", "--lane", "save") as worker:
        save_annals(site)
        eventually(lambda: reading(worker.process.pid))
        [orphan] = reading(worker.process.pid)
        worker.kill()
    with instance.started("worker", "ingest", "--lane", "save"):
        eventually(lambda: searchable(site, "annals"), timeout=240)
    assert "annals" in found(site, "bear seen", "keyword")
    eventually(lambda: not _is_reader(orphan))


class LateServer(BaseHTTPRequestHandler):
    """Away for the first three requests."""

    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        body = made.pdf(["", "Orchids open in June."]) if self.asked > 3 else b""
        self.send_response(200 if body else 503)
        self.send_header("Content-Type", made.PDF)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_a_file_is_fetched_and_its_server_may_be_away_for_a_while(edge: tuple[Instance, httpx.Client]) -> None:
    instance, site = edge
    with ThreadingHTTPServer(("127.0.0.1", 0), LateServer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/orchids.pdf"
        body = {"id": "garden", "lang": "en", "content": "A garden.", "revision": 1, "attachments": [{"url": url}]}
        with instance.started("worker", "ingest", "--lane", "save"):
            assert site.put("/pages/garden", json=body).status_code == 202
            eventually(lambda: searchable(site, "garden"), timeout=120)
            eventually(lambda: "pages without text: 1" in site.get("/pages/garden/receipt").text, timeout=120)
        server.shutdown()
    [hit] = site.get("/search", params={"q": "orchids june", "mode": "keyword"}).json()["hits"]
    assert (hit["page_id"], hit["url"]) == ("garden", url + "#page=2")
    assert LateServer.asked == 4
    assert letters(instance, "garden") == []
