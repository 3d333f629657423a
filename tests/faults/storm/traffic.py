"""Editors and content systems at work: seeded saves and deletes over HTTP, in order and out of it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from itertools import count
from random import Random
from typing import Any
from urllib.parse import quote

import aiohttp

from schemas.page import Op
from tests.faults.storm.history import Answer, Sent
from tests.faults.storm.pages import Draft
from tests.faults.storm.world import KEY, World

RECEIPT_TIMEOUT = 15.0  # seconds
SKEW = 60_000  # milliseconds that a clock may be ahead
HEADERS = {"Authorization": f"Bearer {KEY}"}

# What a writer does next, and how often.
KINDS = {
    "save": 38,  # the gateway numbers it
    "save and wait": 7,  # and it must be found when the receipt says so
    "numbered save": 14,  # the CMS numbers it, in milliseconds
    "late": 8,  # older than what is there
    "duplicate": 6,  # the same once more
    "reordered": 6,  # the newer one first, through two gateways at once
    "skewed": 2,  # from a clock that is ahead
    "delete": 8,
    "numbered delete": 4,
    "delete at the same revision": 3,
    "save behind a delete": 3,
    "empty": 2,
    "bulk": 4,
}


class Traffic:
    """All writers of a storm. The pages' drafts are shared: two editors may save the same page."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._history = world.history
        self._numbers = count(1)
        self._sendable: dict[int, tuple[Draft, dict[str, Any] | None]] = {}  # for duplicates

    async def run(self, stop: asyncio.Event) -> None:
        """Write until told to stop; every change sent has its answer then."""
        shape = self._world.shape
        pause = shape.writers / shape.rate
        await asyncio.gather(
            *(self._write(self._world.random(f"writer-{n}"), pause, stop) for n in range(shape.writers))
        )

    async def first_saves(self, drafts: Sequence[Draft] | None = None) -> None:
        """Every page once, so that there is something to damage."""
        random = self._world.random("first")
        for draft in drafts if drafts is not None else self._world.drafts:
            draft.edit(random)
            await self.save(draft, random, "first save", wait=False)

    async def _write(self, random: Random, pause: float, stop: asyncio.Event) -> None:
        while not stop.is_set():
            draft = random.choice(self._world.drafts)
            [kind] = random.choices(list(KINDS), list(KINDS.values()))
            await self.act(kind, draft, random)
            try:
                await asyncio.wait_for(stop.wait(), random.expovariate(1 / pause))
            except TimeoutError:
                continue

    async def act(self, kind: str, draft: Draft, random: Random) -> None:
        """One kind of change to a page."""
        highest = self._highest(draft)
        now = time.time_ns() // 1_000_000
        match kind:
            case "save" | "save and wait":
                draft.edit(random)
                await self.save(draft, random, kind, wait=kind == "save and wait")
            case "empty":
                await self.save(draft, random, kind, wait=False, empty=True)
            case "numbered save":
                draft.edit(random)
                await self.save(draft, random, kind, given=now)
            case "late":
                draft.edit(random)
                await self.save(draft, random, kind, given=max(0, highest - random.randint(1, 5_000)))
            case "skewed":
                draft.edit(random)
                await self.save(draft, random, kind, given=now + random.randint(1, SKEW))
            case "reordered":
                draft.edit(random)
                newest = max(now, highest + 2)
                newer = self.save(draft, random, kind, given=newest)
                older = self.save(draft, random, kind, given=newest - 1)
                await asyncio.gather(newer, older)
            case "duplicate":
                await self._again(draft, random)
            case "delete":
                await self.delete(draft, random, kind)
            case "numbered delete":
                await self.delete(draft, random, kind, given=random.choice((now, max(0, highest - 1_000))))
            case "delete at the same revision":
                await self.delete(draft, random, kind, given=max(0, highest))
            case "save behind a delete":
                await self.delete(draft, random, kind, given=max(now, highest + 1_000))
                await self.save(draft, random, kind, given=max(0, self._highest(draft) - 1))
            case "bulk":
                await self.bulk(random.sample(self._world.drafts, min(len(self._world.drafts), 8)), random)

    async def save(
        self,
        draft: Draft,
        random: Random,
        kind: str,
        *,
        given: int | None = None,
        wait: bool = False,
        empty: bool = False,
    ) -> Sent:
        number = next(self._numbers)
        document = draft.document(number, empty=empty)
        if given is not None:
            document["revision"] = given
        self._sendable[number] = draft, document
        name, url = self._gateway(random)
        sent = self._history.send(draft.key, "upsert", given, draft.fields(number, empty=empty), kind, name, number)
        await self._put(sent, draft, url, document, wait)
        return sent

    async def delete(self, draft: Draft, random: Random, kind: str, *, given: int | None = None) -> Sent:
        number = next(self._numbers)
        self._sendable[number] = draft, None
        name, url = self._gateway(random)
        sent = self._history.send(draft.key, "delete", given, {}, kind, name, number)
        await self._delete(sent, draft, url)
        return sent

    async def _again(self, draft: Draft, random: Random) -> None:
        """A webhook delivered twice: the same document with the same revision."""
        known = [
            sent for sent in self._history.of(draft.key) if sent.order is not None and sent.number in self._sendable
        ]
        if not known:
            return
        first = random.choice(known[-6:])
        _, document = self._sendable[first.number]
        name, url = self._gateway(random)
        revision = first.order[0] if first.order else None
        sent = self._history.send(draft.key, first.op, revision, first.fields, "duplicate", name, first.number)
        if document is None:
            await self._delete(sent, draft, url)
        else:
            await self._put(sent, draft, url, document | {"revision": revision}, wait=False)

    async def bulk(self, drafts: Sequence[Draft], random: Random) -> None:
        """Many pages in one request. Its deletes are numbered: a bulk does not say which revisions it gave."""
        name, url = self._gateway(random)
        lines, sent = [], []
        for draft in drafts:
            number = next(self._numbers)
            op: Op = "delete" if random.random() < 0.15 else "upsert"
            given = time.time_ns() // 1_000_000 if op == "delete" or random.random() < 0.5 else None
            if op == "upsert":
                draft.edit(random)
                page = draft.document(number)
            else:
                page = {"id": draft.page_id, "lang": draft.lang}
            if given is not None:
                page["revision"] = given
            lines.append(json.dumps({"op": op, "page": page}))
            fields = draft.fields(number) if op == "upsert" else {}
            sent.append(self._history.send(draft.key, op, given, fields, "bulk", name, number))
        status, said, _ = await self._request("POST", f"{url}/v1/sites/{self._world.site}/pages:bulk", "\n".join(lines))
        whole = status == 200 and said.get("rejected") == 0
        for one in sent:
            if whole and said.get("superseded") == 0:
                self._history.answered(one, Answer.ACCEPTED, detail="200")
            elif whole:
                self._history.answered(one, Answer.TAKEN, detail=json.dumps(said)[:100])
            else:
                self._history.answered(one, Answer.UNKNOWN, detail=f"{status} {json.dumps(said)[:200]}")

    async def _put(self, sent: Sent, draft: Draft, url: str, document: dict[str, Any], wait: bool) -> None:
        path = f"{url}{self._path(draft)}" + (f"?wait=searchable&timeout={RECEIPT_TIMEOUT:.0f}" if wait else "")
        status, said, headers = await self._request("PUT", path, json.dumps(document))
        self._answered(sent, status, said, headers)
        if wait and status == 200 and said.get("state") == "searchable":
            await self._promised(sent, draft, url, said["searchable_revision"])

    async def _delete(self, sent: Sent, draft: Draft, url: str) -> None:
        revision = "" if sent.given is None else f"&revision={sent.given}"
        status, said, headers = await self._request("DELETE", f"{url}{self._path(draft)}?lang={draft.lang}{revision}")
        self._answered(sent, status, said, headers)

    async def _promised(self, sent: Sent, draft: Draft, url: str, revision: int) -> None:
        """A receipt said that a revision can be found: that one or a newer one must be, unless the page was deleted."""
        query = f"{url}/v1/sites/{self._world.site}/search?mode=keyword&size=50&q={draft.word}"
        status, said, _ = await self._request("GET", query)
        since = sent.at - self._world.shape.patience
        if status != 200 or any(not other.fields for other in self._history.of(draft.key) if other.at > since):
            return
        found = [
            hit["revision"] for hit in said["hits"] if (hit["page_id"], hit["lang"]) == (draft.page_id, draft.lang)
        ]
        if not found or min(found) < revision:
            what = f"revision {revision} was said to be searchable; found at {self._history.now():.2f}: {found}"
            self._history.broken.append((draft.key, what))

    def _answered(self, sent: Sent, status: int, said: dict[str, Any], headers: Any) -> None:
        if status in (200, 202):
            superseded = headers.get("Pagewire-Superseded") == "true"
            # 200 carries the receipt of the page's newest change, which may be another one's.
            revision = said.get("revision") if status == 202 else sent.given
            self._history.answered(sent, Answer.SUPERSEDED if superseded else Answer.ACCEPTED, revision, str(status))
        elif 400 <= status < 500 or status == 0:
            self._history.answered(sent, Answer.REFUSED, detail=f"{status} {said.get('detail', '')}")
        else:
            self._history.answered(sent, Answer.UNKNOWN, detail=f"{status} {said.get('detail', '')}")

    async def _request(self, method: str, url: str, body: str | None = None) -> tuple[int, dict[str, Any], Any]:
        """(status, JSON, headers). Status 0: nobody listened; -1: the connection was lost half-way."""
        try:
            async with self._world.http.request(
                method, url, data=body, headers=HEADERS, timeout=aiohttp.ClientTimeout(total=self._world.shape.patience)
            ) as answer:
                return answer.status, await answer.json(content_type=None), answer.headers
        except aiohttp.ClientConnectorError as err:
            return 0, {"detail": type(err).__name__}, {}
        except (aiohttp.ClientError, TimeoutError, ValueError) as err:
            return -1, {"detail": type(err).__name__}, {}

    def _path(self, draft: Draft) -> str:
        return f"/v1/sites/{self._world.site}/pages/{quote(draft.page_id, safe='')}"

    def _gateway(self, random: Random) -> tuple[str, str]:
        return random.choice(list(self._world.gateways.items()))

    def _highest(self, draft: Draft) -> int:
        return max((sent.order[0] for sent in self._history.of(draft.key) if sent.order), default=0)
