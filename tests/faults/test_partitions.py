"""Partitions are doubled by the command while pages are saved and questions are asked, with real processes."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from tests.acceptance.system import Instance, events, eventually
from tests.acceptance.test_story import ask, found, page
from tests.engine_fixture import Servers

pytestmark = pytest.mark.engine

BEFORE, AFTER = 2, 4
PAGES = [f"page{number}" for number in range(8)]
QUESTION = "What does a card of the library cost?"
GOES_ON = 20  # saves after the topics have grown


class Editor:
    """Saves and deletes pages as fast as they are accepted, one after the other, and remembers what came of it."""

    def __init__(self, site: httpx.Client) -> None:
        self.site = site
        self.accepted: dict[str, tuple[int, bool]] = {}  # page -> revision, whether it is deleted
        self.refused: Counter[int] = Counter()
        self.saves = 0

    def word(self, page_id: str, revision: int) -> str:
        """In no other revision of any page; of letters only, so that it is one word to every analyzer."""
        digest = sha256(f"{page_id} {revision}".encode()).hexdigest()[:12]
        return "".join(chr(ord("a") + int(digit, 16)) for digit in digest)

    def save(self, page_id: str, *, deleted: bool = False) -> None:
        revision = self.accepted.get(page_id, (0, False))[0] + 2
        if deleted:
            done = self.site.delete(f"/pages/{page_id}", params={"lang": "en", "revision": revision})
        else:
            text = f"<p>This page is about {self.word(page_id, revision)}, and nothing else.</p>"
            done = self.site.put(f"/pages/{page_id}", json=page(page_id, text, revision, title=page_id))
        if done.is_success:
            self.accepted[page_id] = revision, deleted
            self.saves += 1
        else:
            self.refused[done.status_code] += 1

    def late(self) -> str:
        """A publish that lost to what is there already; the gateway knows it, or the index stage will.

        Returns: a word of it.
        """
        page_id, (revision, _) = sorted(self.accepted.items())[0]
        self.site.put(f"/pages/{page_id}", json=page(page_id, f"<p>{self.word(page_id, -1)}</p>", revision - 1))
        return self.word(page_id, -1)

    @contextmanager
    def working(self) -> Iterator[None]:
        random, done = Random(7), threading.Event()

        def work() -> None:
            for number in count():
                if done.is_set():
                    return
                self.save(random.choice(PAGES), deleted=number % 7 == 6)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


@contextmanager
def asking(instance: Instance, url: str) -> Iterator[list[str]]:
    """A visitor who asks all the time; what became of each question."""
    ends: list[str] = []
    done = threading.Event()

    def work() -> None:
        with instance.client(url) as site:
            while not done.is_set():
                ends.append(str(ask(site, QUESTION)["answer"]))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield ends
    finally:
        done.set()
        thread.join()


def streamed(site: httpx.Client) -> tuple[str, list[tuple[str, str]]]:
    """The id of a question, and ids and names of its answer's events."""
    with site.stream("POST", "/chat", json={"question": QUESTION}, headers={"Accept": "text/event-stream"}) as told:
        seen = list(events(told))
    return seen[0][2]["request_id"], [(id, name) for id, name, _ in seen]


def run(instance: Instance, *arguments: str, code: int = 0) -> Any:
    done = instance.run(*arguments, "--json")
    assert done.returncode == code, f"{arguments}: {done.stdout}\n{done.stderr}"
    return json.loads(done.stdout) if code == 0 else done.stderr


def wrong(editor: Editor) -> list[str]:
    """Pages of which something else is to be found than their last accepted change."""
    site, right = editor.site, dict[str, bool]()
    for page_id, (revision, deleted) in editor.accepted.items():
        hits = found(site, editor.word(page_id, revision), "keyword")
        right[page_id] = (page_id not in hits) if deleted else (page_id in hits)
        before = [hit for hit in found(site, editor.word(page_id, revision - 2), "keyword") if hit == page_id]
        right[page_id] &= not before
    return [page_id for page_id, fine in right.items() if not fine]


def test_partitions_are_doubled_while_pages_are_saved_and_questions_asked(engine: Servers, tmp_path: Path) -> None:
    instance = Instance(tmp_path, engine, PAGEWIRE_PARTITIONS=str(BEFORE), PAGEWIRE_GATE="false")
    with instance.started("up") as up, instance.client(up.url) as site, instance.client(up.url) as saving:
        card = page("card", "<p>A card of the library costs 12 euros.</p>", 1, title="Library")
        site.put("/pages/card", params={"wait": "searchable", "timeout": 60}, json=card).raise_for_status()
        request_id, before = streamed(site)

        editor = Editor(saving)
        for page_id in PAGES:
            editor.save(page_id)
        with editor.working(), asking(instance, up.url) as answers:
            grown = run(instance, "topics", "--partitions", str(AFTER), "--yes")["grown"]
            assert {(one["partitions"], one["wanted"]) for one in grown} == {(BEFORE, AFTER)}
            saves, asked = editor.saves, len(answers)
            eventually(lambda: editor.saves >= saves + GOES_ON and len(answers) >= asked + 5)
        lost = editor.late()

        assert not editor.refused
        assert [answer for answer in answers if "12 euros" not in answer] == []
        topics = run(instance, "topics")
        assert {line["partitions"] for line in topics} == {AFTER}
        assert "Kafka cannot take partitions away" in run(instance, "topics", "--partitions", str(BEFORE), code=2)

        # An answer of before is still there, from any of its events.
        last = f"/answers/{request_id}/events"
        with site.stream("GET", last, headers={"Last-Event-ID": before[0][0]}) as told:
            assert [(id, name) for id, name, _ in events(told)] == before[1:]
        after, _ = streamed(site)
        assert site.get(f"/answers/{after}/events").status_code == 200

        # What was accepted last is what the index shows, and nothing of what lost.
        eventually(lambda: not wrong(editor))
        assert found(site, lost, "keyword") == []
        audit = run(instance, "audit", instance.site)
        assert (audit["clean"], audit["pages"] + audit["deleted"]) == (True, len(PAGES) + 1), audit
        assert run(instance, "status")["problems"] == []

        # A rebuild from the log gives the same.
        run(instance, "rebuild", instance.site, "--from", "changes", "--promote", "--nice", "0")
        assert wrong(editor) == []
        again = run(instance, "audit", instance.site)
        assert (again["clean"], again["pages"], again["deleted"]) == (True, audit["pages"], audit["deleted"]), again
