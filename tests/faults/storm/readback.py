"""Waits until the system is at rest, then reads everything back: topics, dead letters, index, searches, receipts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np
import orjson
from aiokafka.errors import KafkaError

from schemas.topics import CHANGES, CHUNKS, DLQ_SUFFIX, EMBEDDINGS, RECEIPTS
from tests.faults.storm import topics
from tests.faults.storm.evidence import ChunkFound, HeadFound, HitFound, Letter, Logged, PageFound, ReadBack
from tests.faults.storm.history import Order, Sent
from tests.faults.storm.pages import Draft, number_in
from tests.faults.storm.traffic import HEADERS
from tests.faults.storm.world import World

LOOK = 1.0  # seconds between two looks at the lags
LOGS = (CHANGES, CHUNKS, EMBEDDINGS, RECEIPTS)
TELL = 15.0  # seconds between two signs of life
STILL_LIMIT = 60.0  # seconds
OWN_VECTOR = 0.95  # cosine
OTHER_TITLES = 4  # of a page, that are searched for and must not be found
ERRORS = "pagewire.errors."
MARKS = "pagewire.letter."


class NotSettled(AssertionError):
    """The system does not come to rest."""


async def settle(world: World, limit: float) -> None:
    """Wait until every group has finished everything and nothing new comes: what is sent back up is waited for, too.

    Raises:
        NotSettled: after `limit` seconds; says who is behind.
    """
    names = [world.prefix + topic.name for topic in LOGS]
    deadline = time.monotonic() + limit
    tell = time.monotonic() + TELL
    last: Any = None
    behind: dict[str, int] = {}
    while time.monotonic() < deadline:
        try:
            behind = await topics.behind(world)
            now = await topics.ends(world, names)
        except (KafkaError, OSError) as err:
            world.note(f"cannot look: {err!r}")
            behind = {}
        else:
            if behind and not any(behind.values()) and now == last:
                return
            last = now
        if time.monotonic() > tell:
            world.say(f"{world.history.now():8.2f} .. messages behind: {behind}")
            tell += TELL
        await asyncio.sleep(LOOK)
    raise NotSettled(f"not at rest after {limit:.0f} s; messages behind: {behind}")


async def letters(world: World) -> list[Letter]:
    """All dead letters of the ingest topics, and what is parked still; not what was parked and has returned."""
    names = [world.prefix + topic.name + DLQ_SUFFIX for topic in LOGS]
    messages = await topics.read(world, names)
    returned = {
        (message.topic, message.partition, int(dict(message.headers)[MARKS + "settles"]))
        for message in messages
        if dict(message.headers).get(MARKS + "action") == b"returned"
    }
    found = []
    for message in messages:
        if (message.topic, message.partition, message.offset) in returned:
            continue
        reasons = {name: value for name, value in message.headers if name.startswith(ERRORS)}
        if not reasons:  # a mark behind a letter: what became of it
            continue
        topic = message.topic.removeprefix(world.prefix).removesuffix(DLQ_SUFFIX)
        said = said_of(topic, message.value)
        found.append(
            Letter(
                topic=topic,
                partition=int(reasons[ERRORS + "partition"]),
                key=message.key,
                value=message.value,
                headers=tuple((name, value) for name, value in message.headers if not name.startswith(ERRORS)),
                code=reasons[ERRORS + "code"].decode(),
                place=(message.partition, message.offset),
                page=said.get("page"),
                order=said.get("order"),
            )
        )
    return found


async def read_back(world: World) -> ReadBack:
    """Everything; the system must be at rest."""
    found = ReadBack()
    for message in await topics.read(world, [world.prefix + topic.name for topic in LOGS]):
        record = _record(world, message)
        page = found.pages[record.key.partition("#")[0]]
        if record.topic == CHANGES.name:
            page.changes.append(record)
        elif record.topic == RECEIPTS.name:
            page.receipts.append(record)
        else:
            page.products.append(record)
    found.letters = await letters(world)
    for letter in found.letters:
        if letter.page is not None:
            found.pages[letter.page].letters.append(letter)
    await _index(world, found)
    for draft in world.drafts:
        await _visit(world, draft, found)
    return found


def _record(world: World, message: Any) -> Logged:
    topic = message.topic.removeprefix(world.prefix)
    said = said_of(topic, message.value)
    return Logged(
        topic=topic,
        partition=message.partition,
        offset=message.offset,
        key=message.key.decode(errors="replace"),
        at_ms=message.timestamp,
        order=said.get("order"),
        number=said.get("number"),
        state=said.get("state"),
        superseded=said.get("superseded", False),
    )


def said_of(topic: str, value: bytes | None) -> dict[str, Any]:
    """What a message says of itself; {} when it cannot be read as one of this topic."""
    try:
        message = orjson.loads(value or b"")
        if message["v"] != 1:
            return {}
        change = message if topic == CHANGES.name else message["change"]
        order: Order = (change["revision"], change["op"] == "delete")
        page = ":".join(quote(change[part], safe="") for part in ("site", "lang", "page_id"))
        said: dict[str, Any] = {"order": order, "page": page, "superseded": message.get("superseded", False)}
        if topic == RECEIPTS.name:
            said["state"] = message["state"]
        document = message.get("page") if topic == CHANGES.name else message.get("meta")
        if document:
            said["number"] = number_in(document["url"])
    except (ValueError, KeyError, TypeError):
        return {}
    return said


async def _index(world: World, found: ReadBack) -> None:
    """Every document of the live index, by page."""
    index = f"pagewire-{world.site}"
    end = time.monotonic() + STILL_LIMIT
    while True:
        await world.ask_elastic("POST", f"/{index}/_refresh")
        hits = [hit async for hit in _documents(world, index)]
        count = (await world.ask_elastic("GET", f"/{index}/_count"))["count"]
        if count == len(hits):
            break
        # A worker that acknowledges what it has not done is still writing.
        assert time.monotonic() < end, f"the index holds {count} documents, {len(hits)} were read"
    for hit in hits:
        _document(found, hit)


async def _documents(world: World, index: str) -> AsyncIterator[dict[str, Any]]:
    after: list[Any] | None = None
    while True:
        body: dict[str, Any] = {
            "size": 1_000,
            "sort": [{"page_key": "asc"}, {"kind": "asc"}, {"field": "asc"}, {"ord": "asc"}],
            "_source": {"excludes": ["stems"], "exclude_vectors": False},
        }
        if after:
            body["search_after"] = after
        hits = (await world.ask_elastic("POST", f"/{index}/_search", body))["hits"]["hits"]
        if not hits:
            return
        after = hits[-1]["sort"]
        for hit in hits:
            yield hit


def _document(found: ReadBack, hit: dict[str, Any]) -> None:
    source = hit["_source"]
    page = found.pages[source["page_key"]]
    if source["kind"] == "head":
        page.head = HeadFound(source["revision"], source["state"], source["head"]["counts"])
        return
    vector = np.asarray(source["embedding"], dtype=np.float32)
    unit = vector / np.linalg.norm(vector)
    page.chunks.append(
        ChunkFound(hit["_id"], source["field"], source["ord"], source["revision"], source["text"], tuple(unit.tolist()))
    )


def titles_to_ask(sent: Sequence[Sent], page: PageFound) -> list[str]:
    """The title that must be found, however long ago it was sent, and the newest others, which must not."""
    winner = max((record.order for record in page.changes if record.order), default=None)
    shown = {record.number for record in page.changes if record.order == winner}
    must = [one.fields.get("title", "") for one in sent if one.number in shown]
    newest = [one.fields.get("title", "") for one in reversed(sent)]
    others = [title for title in dict.fromkeys(newest) if title and title not in must]
    return [title for title in dict.fromkeys(must) if title] + others[:OTHER_TITLES]


async def _visit(world: World, draft: Draft, found: ReadBack) -> None:
    """What visitors and editors are told about a page."""
    page = found.pages[draft.key]
    url = next(iter(world.gateways.values())) + f"/v1/sites/{world.site}"
    titles = titles_to_ask(list(world.history.of(draft.key)), page)
    asked = [("keyword", draft.word), *(("vector", title) for title in titles)]
    for mode, words in asked:
        hits = (await _get(world, f"{url}/search?mode={mode}&size=100&q={quote(words)}"))["hits"]
        page.hits += [
            HitFound(mode, hit["revision"], hit["field"], hit["ord"])
            for hit in hits
            if (hit["page_id"], hit["lang"]) == (draft.page_id, draft.lang)
            # Made-up vectors are somewhat near to others by chance.
            and (mode == "keyword" or hit["cosine"] > OWN_VECTOR)
        ]
    path = f"{url}/pages/{quote(draft.page_id, safe='')}/receipt?lang={draft.lang}"
    async with world.http.get(path, headers=HEADERS) as answer:
        page.receipt = await answer.json() if answer.status == 200 else None


async def _get(world: World, url: str) -> Any:
    async with world.http.get(url, headers=HEADERS) as answer:
        said = await answer.json(content_type=None)
        assert answer.status == 200, f"GET {url}: {answer.status} {said}"
        return said
