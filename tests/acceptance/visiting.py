"""An editor and a visitor who are at it all the time, and tell of everything that was not as it must be.

Each page the editor touches is one chunk, so a search that shows two revisions of one has looked at two indexes.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from types import TracebackType
from typing import Self

import httpx

EDITED = 8  # pages
PAUSE = 0.1  # seconds
WAIT: dict[str, str | int] = {"wait": "searchable", "timeout": 60}


def document(page_id: str, content: str, revision: int) -> dict[str, object]:
    return {"id": page_id, "lang": "en", "url": f"/{page_id}", "content": f"<p>{content}</p>", "revision": revision}


class Visit:
    """`with Visit(url, site) as visit: ...`; afterwards `wrong` is what was wrong and `done` counts what was tried."""

    def __init__(self, url: str, site: str) -> None:
        self._base = f"{url}/v1/sites/{site}"
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,)) for work in (self._edit, self._search, self._ask)
        ]
        self.wrong: list[str] = []
        self.done: Counter[str] = Counter()
        self.revisions: dict[str, int] = defaultdict(int)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _guarded(self, work: object) -> None:
        assert callable(work)
        try:
            with self._client() as client:
                for step in count():
                    if self._stop.is_set() or len(self.wrong) > 20:
                        return
                    work(client, step)
                    self.done[work.__name__] += 1
                    self._stop.wait(PAUSE)
        except Exception as err:  # noqa: BLE001 - told with the rest
            self.wrong.append(f"{work!r} ended: {err!r}")

    @contextmanager
    def _client(self) -> Iterator[httpx.Client]:
        headers = {"Authorization": "Bearer key-of-the-acceptance-ring"}
        with httpx.Client(base_url=self._base, headers=headers, timeout=90) as client:
            yield client

    def _edit(self, client: httpx.Client, step: int) -> None:
        page_id = f"edited{step % EDITED}"
        self.revisions[page_id] += 1
        revision = self.revisions[page_id]
        word = f"{page_id}r{revision}"
        if revision % 4 == 0:
            answer = client.delete(f"/pages/{page_id}", params={"lang": "en", "revision": revision, **WAIT})
            state, shown = "deleted", False
        else:
            content = f"{word} the ferry crosses the lake"
            answer = client.put(f"/pages/{page_id}", params=WAIT, json=document(page_id, content, revision))
            state, shown = "searchable", True
        if answer.status_code != 200 or answer.json()["state"] != state:
            self.wrong.append(f"{page_id} at {revision}: {answer.status_code} {answer.text}")
            return
        words = word if shown else f"{page_id}r{revision - 1}"
        hits = self._hits(client, f"{words} ferry lake", "keyword")
        found = {hit["revision"] for hit in hits if hit["page_id"] == page_id}
        if found != ({revision} if shown else set()):
            self.wrong.append(f"{page_id} at {revision} was {state}, a search shows {found}")

    def _search(self, client: httpx.Client, step: int) -> None:
        hits = self._hits(client, "the museum shows boats of the lake", "hybrid" if step % 2 else "vector")
        revisions: dict[object, set[object]] = defaultdict(set)
        for hit in hits:
            revisions[hit["page_id"]].add(hit["revision"])
        for page_id, shown in revisions.items():
            if len(shown) > 1:
                self.wrong.append(f"a search shows {page_id} at {shown}")
        if not any(str(page_id).startswith("kept") for page_id in revisions):
            self.wrong.append(f"a search shows nothing of what is always there, only {dict(revisions)}")

    def _ask(self, client: httpx.Client, step: int) -> None:
        answer = client.post("/chat", json={"question": f"What does the museum show in room {step % 10}?"})
        if answer.status_code != 200 or not answer.json()["answer"] or not answer.json()["sources"]:
            self.wrong.append(f"an answer: {answer.status_code} {answer.text}")

    def _hits(self, client: httpx.Client, query: str, mode: str) -> list[dict[str, object]]:
        answer = client.get("/search", params={"q": query, "mode": mode, "size": 50})
        if answer.status_code != 200:
            self.wrong.append(f"a search: {answer.status_code} {answer.text}")
            return []
        hits: list[dict[str, object]] = answer.json()["hits"]
        return hits
