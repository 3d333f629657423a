"""Rebuilds as an operator does them, with real processes, while pages are saved and questions asked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import yaml

from tests.acceptance import system as processes
from tests.acceptance.dying import POINTS
from tests.acceptance.system import PAGEWIRE, Instance, Started
from tests.acceptance.visiting import WAIT, Visit, document
from tests.acceptance.word_embedder import WordEmbedder, word_embedder
from tests.engine_fixture import Servers

pytestmark = pytest.mark.engine

KEPT = 16  # pages
PATIENCE = 300.0  # seconds; a rebuild has more to do than a save
ADMIN = {"Authorization": "Bearer key-of-the-acceptance-ring"}


def eventually(look: Callable[[], object]) -> None:
    processes.eventually(look, timeout=PATIENCE)


class Town:
    """A site of its own in the running system."""

    def __init__(self, system: System, site: str) -> None:
        self.system = system
        self.site = site

    def pagewire(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        command, *options = arguments
        if command == "rebuild":
            options += ["--nice", "0"]  # the tests wait for it
        done = self.system.instance.run(command, self.site, *options, timeout=PATIENCE)
        assert done.returncode == code, f"{arguments}: {done.stdout}\n{done.stderr}"
        return done

    def rebuild(self, *options: str) -> dict[str, Any]:
        """To its end; the JSON that it prints."""
        report: dict[str, Any] = json.loads(self.pagewire("rebuild", *options, "--json").stdout)
        return report

    @contextmanager
    def under_way(self, *options: str) -> Iterator[subprocess.Popen[bytes]]:
        """A rebuild that is still at it."""
        arguments: list[str | Path] = [PAGEWIRE, "rebuild", self.site, "--nice", "0", *options]
        with subprocess.Popen(
            arguments, env=self.system.instance.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    @contextmanager
    def client(self, below: str = "") -> Iterator[httpx.Client]:
        base = f"{self.system.up.url}/v1/{below}sites/{self.site}"
        with httpx.Client(base_url=base, headers=ADMIN, timeout=PATIENCE) as client:
            yield client

    def generations(self) -> dict[int, dict[str, Any]]:
        with self.client("admin/") as admin:
            answer = admin.get("/rebuilds")
            assert answer.status_code == 200, answer.text
            return {one["generation"]: one for one in answer.json()["generations"]}

    def states(self) -> dict[int, str]:
        return {number: one["state"] for number, one in self.generations().items()}

    def save(self, page_id: str, content: str, revision: int) -> None:
        with self.client() as site:
            answer = site.put(f"/pages/{page_id}", params=WAIT, json=document(page_id, content, revision))
            assert (answer.status_code, answer.json()["state"]) == (200, "searchable"), answer.text

    def found(self, query: str) -> set[str]:
        with self.client() as site:
            answer = site.get("/search", params={"q": query, "mode": "keyword", "size": 50})
            assert answer.status_code == 200, answer.text
            return {hit["page_id"] for hit in answer.json()["hits"]}

    def fill(self) -> None:
        """Pages that stay as they are, of several chunks each."""
        lines = []
        for n in range(KEPT):
            text = " ".join(f"The museum shows boats of the lake in room {n}, case {m}." for m in range(15))
            lines.append(json.dumps({"op": "upsert", "page": document(f"kept{n}", text, 1)}))
        with self.client() as site:
            answer = site.post("/pages:bulk", content="\n".join(lines))
            assert answer.json()["accepted"] == KEPT, answer.text
            eventually(lambda: len(self.kept_receipts(site)) == KEPT)

    def stored_receipts(self) -> int:
        """Pages that Elasticsearch itself has as searchable. Editors are told a moment earlier."""
        states = [{"term": {"site": self.site}}, {"term": {"state": "searchable"}}]
        answer = httpx.post(
            f"{self.system.servers.elasticsearch}/pagewire.receipts/_count",
            json={"query": {"bool": {"filter": states}}},
        )
        return int(answer.json()["count"])

    def kept_receipts(self, site: httpx.Client) -> list[str]:
        receipts = (site.get(f"/pages/kept{n}/receipt", params={"lang": "en"}).json() for n in range(KEPT))
        return [receipt["page_key"] for receipt in receipts if receipt.get("state") == "searchable"]


class System:
    """`pagewire up` with several sites."""

    def __init__(self, instance: Instance, up: Started, embedder: WordEmbedder, servers: Servers, free: list[str]):
        self.instance = instance
        self.up = up
        self.embedder = embedder
        self.servers = servers
        self._free = free

    def town(self) -> Town:
        return Town(self, self._free.pop())


@pytest.fixture(scope="module")
def system(engine: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with word_embedder() as embedder:
        instance = Instance(
            tmp_path_factory.mktemp("rebuild"),
            engine,
            sites=12,
            PAGEWIRE_EMBEDDER="openai:words-64",
            OPENAI_BASE_URL=embedder.url,
            OPENAI_API_KEY="none",
            PAGEWIRE_VISITOR_RATE="100000/minute",
        )
        with instance.started("up") as up:
            yield System(instance, up, embedder, engine, list(instance.sites))
        for site in instance.sites:
            found = httpx.get(f"{engine.elasticsearch}/pagewire-{site}-*/_mapping").json()
            for name in found:
                httpx.delete(f"{engine.elasticsearch}/{name}")


@pytest.fixture
def town(system: System) -> Town:
    return system.town()


@pytest.fixture
def full(town: Town) -> Town:
    town.fill()
    return town


def test_nobody_notices_a_rebuild_a_promotion_and_a_rollback(full: Town) -> None:
    with Visit(full.system.up.url, full.site) as visit:
        eventually(lambda: visit.done["_edit"] > 3 or visit.wrong)
        report = full.rebuild("--from", "changes", "--chunk-size", "200", "--promote")
        assert report["rebuild"]["state"] == "live"
        assert report["rebuild"]["chunker"] == "content-200-20"
        assert report["audit"]["clean"]
        before = visit.done["_edit"]
        eventually(lambda: visit.done["_edit"] > before + 5 or visit.wrong)
        full.pagewire("rollback")
        before = visit.done["_edit"]
        eventually(lambda: visit.done["_edit"] > before + 5 or visit.wrong)
        full.pagewire("rollback")
    assert visit.wrong == []
    assert min(visit.done[work] for work in ("_edit", "_search", "_ask")) > 5
    assert full.states() == {1: "previous", 2: "live"}
    full.pagewire("audit")


def test_a_rebuild_that_is_killed_while_it_fills_goes_on(full: Town) -> None:
    options = ("--from", "changes", "--chunk-size", "300")
    embedder = full.system.embedder
    with embedder.holding("museum"), full.under_way(*options) as process:
        eventually(lambda: embedder.kept_waiting)
        process.kill()
    assert full.generations()[2]["state"] == "building"
    refused = full.pagewire("promote", code=1)
    assert "was not verified" in refused.stderr
    other = full.pagewire("rebuild", "--from", "changes", "--chunk-size", "400", code=1)
    assert "generation 2" in other.stderr
    assert "--fresh" in other.stderr
    report = full.rebuild(*options, "--promote")
    assert (report["rebuild"]["generation"], report["rebuild"]["state"]) == (2, "live")
    full.pagewire("audit")


def test_ctrl_c_notes_where_it_was(full: Town) -> None:
    embedder = full.system.embedder
    with embedder.holding("museum"), full.under_way("--from", "changes", "--chunk-size", "300") as process:
        eventually(lambda: embedder.kept_waiting)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    # The lease is given back: nobody has to wait.
    full.pagewire("discard", "2")
    assert full.states() == {1: "live"}


@pytest.mark.parametrize("point", POINTS)
def test_a_promotion_that_is_killed_is_finished_by_the_next(full: Town, point: str) -> None:
    full.rebuild("--from", "embeddings")
    killed = subprocess.run(
        [sys.executable, "-m", "tests.acceptance.dying", point, "promote", full.site, "--generation", "2"],
        env=full.system.instance.environment,
        cwd=Path(__file__).parents[2],
        check=False,
        timeout=120,
    )
    assert killed.returncode == -signal.SIGKILL
    assert full.states() == ({1: "live", 2: "verified"} if point == "held" else {1: "previous", 2: "live"})
    live = json.loads(full.pagewire("promote", "--json").stdout)
    assert (live["generation"], live["state"]) == (2, "live")
    assert full.states() == {1: "previous", 2: "live"}
    full.save("late", "saved after the promotion", 1)
    back = json.loads(full.pagewire("rollback", "--json").stdout)
    assert back["generation"] == 1
    assert "late" in full.found("saved promotion")
    full.pagewire("audit")


def test_another_model_and_back_without_restarting_anything(full: Town) -> None:
    texts = full.system.embedder.texts
    workers = {child.pid for child in psutil.Process(full.system.up.process.pid).children()}
    with Visit(full.system.up.url, full.site) as visit:
        report = full.rebuild("--from", "chunks", "--embedder", "openai:words-32", "--promote")
        assert report["rebuild"]["dims"] == 32
        assert report["rebuild"]["remade"] == 0
        assert texts["words-32"] > KEPT
        before = texts["words-32"]
        full.save("new", "a page for the other model", 1)
        assert texts["words-32"] > before
        full.pagewire("rollback")
        before = texts["words-64"]
        full.save("newer", "a page for the first model", 1)
        assert texts["words-64"] > before
    assert visit.wrong == []
    assert {"new", "newer"} <= full.found("a page for the model")
    assert workers == {child.pid for child in psutil.Process(full.system.up.process.pid).children()}
    full.pagewire("audit")


def test_from_embeddings_costs_no_embedding(full: Town) -> None:
    before = full.system.embedder.texts.total()
    report = full.rebuild("--from", "embeddings", "--promote")
    made = report["rebuild"]
    assert (made["embedded"], made["pages"], made["state"]) == (0, KEPT, "live")
    assert full.system.embedder.texts.total() == before


def test_two_at_once_are_refused_and_nothing_has_nothing_to_go_back_to(full: Town) -> None:
    embedder = full.system.embedder
    with embedder.holding("museum"), full.under_way("--from", "changes", "--chunk-size", "300"):
        eventually(lambda: embedder.kept_waiting)
        for command in (("rebuild", "--from", "embeddings"), ("promote",), ("rollback",), ("discard", "2")):
            refused = full.pagewire(*command, code=1)
            assert "is under way" in refused.stderr
        with full.client("admin/") as admin:
            assert admin.post("/rebuilds", json={"from": "changes"}).status_code == 409
    assert "no previous index" in full.pagewire("rollback", code=1).stderr
    assert "is live" in full.pagewire("discard", "1", code=1).stderr
    assert "no generation 9" in full.pagewire("discard", "9", code=1).stderr
    wrong = full.pagewire("rebuild", "--from", "chunks", "--chunk-size", "900", code=2)
    assert "--from changes" in wrong.stderr


def test_an_index_that_is_deleted_comes_back_and_the_saves_with_it(full: Town) -> None:
    # They are what tells a site that lost its index from one that never had any.
    eventually(lambda: full.stored_receipts() == KEPT)
    servers = full.system.servers
    assert httpx.delete(f"{servers.elasticsearch}/pagewire-{full.site}-000001").status_code == 200
    with full.client() as site:
        # For a moment the gateway looks for the pages where they were.
        eventually(lambda: site.get("/pages/kept0/receipt", params={"lang": "en"}).json().get("state") == "queued")
        answers: list[httpx.Response] = []
        waiting = threading.Thread(
            target=lambda: answers.append(
                site.put("/pages/late", params=WAIT | {"timeout": 240}, json=document("late", "saved meanwhile", 1))
            )
        )
        waiting.start()
        try:
            with full.client() as visitor:
                refused = visitor.get("/search", params={"q": "museum", "mode": "keyword"})
            assert refused.status_code == 503, refused.text
            assert f"pagewire index rebuild {full.site} --from embeddings --promote" in refused.json()["detail"]
            report = full.rebuild("--from", "embeddings", "--promote")
            assert report["rebuild"]["embedded"] == 0
        finally:
            waiting.join()
    assert answers[0].status_code == 200, answers[0].text
    assert answers[0].json()["state"] == "searchable"
    assert full.states() == {2: "live"}, "the save has made an empty index"
    assert {"late", "kept3"} <= full.found("museum saved meanwhile room 3")
    full.pagewire("audit")


def test_a_candidate_that_finds_less_is_not_promoted(full: Town, tmp_path: Path) -> None:
    questions = tmp_path / "questions.yaml"
    asked = [{"question": f"What does the museum show in room {n}?", "page": f"kept{n}"} for n in range(KEPT)]
    questions.write_text(yaml.safe_dump([*asked, {"question": "Unanswerable?"}]))
    # Two dimensions hold no words.
    options = ("--from", "chunks", "--embedder", "openai:words-2", "--gate", str(questions), "--promote")
    worse = full.pagewire("rebuild", *options, "--margin", "0.3", code=1)
    assert "not worse" not in worse.stdout
    assert full.states() == {1: "live", 2: "verified"}
    live, candidate = full.generations().values()
    # What the gate found is kept with the candidate, for whoever decides on it later.
    assert (candidate["gate"]["passed"], candidate["gate"]["against"]) == (False, live["index"])
    assert candidate["gate"]["worst"]
    assert "gate" not in live
    assert live["live_pages"] == candidate["live_pages"] > 0
    assert live["live_chunks"] == candidate["live_chunks"] > 0
    # Nine questions say that a margin of 0.3 is kept; the default takes 99.
    gate = ("--gate", str(questions), "--margin", "0.3")
    same = full.rebuild("--from", "embeddings", *gate, "--fresh", "--promote")
    assert (same["gate"]["passed"], same["gate"]["questions"]) == (True, KEPT)
    assert full.states() == {1: "previous", 3: "live"}


def test_over_http(full: Town) -> None:
    def live(answer: httpx.Response, generation: int) -> None:
        """Already, or (202) when the command has ended, which may take longer than a request is kept waiting."""
        assert answer.status_code in (200, 202), answer.text
        if answer.status_code == 200:
            assert (answer.json()["generation"], answer.json()["state"]) == (generation, "live")
        eventually(lambda: admin.get("/rebuilds").json()["running"] is None)
        assert full.states()[generation] == "live"

    with full.client("admin/") as admin:
        begun = admin.post("/rebuilds", json={"from": "embeddings"})
        assert begun.status_code == 202, begun.text
        assert begun.json()["generation"] == 2
        eventually(lambda: full.states()[2] == "verified")
        eventually(lambda: admin.get("/rebuilds").json()["running"] is None)
        live(admin.post("/rebuilds/2/promote"), 2)
        assert admin.post("/rebuilds/2/promote").json()["code"] == "generation-live"
        live(admin.post("/rebuilds:rollback"), 1)
        assert admin.delete("/rebuilds/2").status_code == 204
        assert admin.post("/rebuilds:rollback").status_code == 404
        refused = admin.post("/rebuilds", json={"from": "chunks", "chunk_size": 900})
        assert refused.status_code == 409
        assert "--from changes" in refused.json()["detail"]
    assert os.path.exists(Path(full.system.instance.environment["PAGEWIRE_HOME"]) / "rebuilds" / f"{full.site}.log")
