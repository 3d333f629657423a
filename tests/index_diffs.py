"""A log and an index for tests of the audit: applied perfectly, then harmed as the test likes."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipelines.ingest.accept import newer
from pipelines.operate.audit.index_diff import ChunkDocument, HeadDocument, IndexDiff
from pipelines.runtime.record import Record
from schemas.keys import chunk_id, head_id, page_key, parse_page_key
from schemas.page import PageChange, PageDocument
from tests.making import NOON

SITE = "town"


def key_of(page: str) -> str:
    return page_key(SITE, "en", page)


def id_of(key: str) -> str:
    return parse_page_key(key).page_id


def changed(page: str, revision: int, *, deleted: bool = False) -> PageChange:
    return PageChange(
        op="delete" if deleted else "upsert",
        site=SITE,
        lang="en",
        page_id=page,
        revision=revision,
        accepted_at=NOON,
        source="push",
        page=None if deleted else PageDocument(id=page, lang="en", title=f"{page} {revision}"),
    )


def record(offset: int, change: PageChange, partition: int = 0) -> Record:
    return Record("cms.changes", partition, offset, change.page_key.encode(), change.encode())


def chunks_of(change: PageChange) -> dict[str, int]:
    """How many chunks a perfect pipeline makes of a change."""
    return {} if change.op == "delete" else {"title": 1, "content": 1 + change.revision % 3}


@dataclass
class World:
    """A log and an index, plain to see and to harm."""

    log: list[Record] = field(default_factory=list)
    heads: dict[str, HeadDocument] = field(default_factory=dict)
    chunks: dict[str, ChunkDocument] = field(default_factory=dict)

    @classmethod
    def of(cls, *history: PageChange) -> World:
        """What is left when everything was applied, and losers on top of the log were covered again."""
        world = cls()
        winners: dict[str, PageChange] = {}
        for change in history:
            key = change.page_key
            if key not in winners or not newer(winners[key], change):
                winners[key] = change
        last = {change.page_key: change for change in history}
        healed = [winner for key, winner in winners.items() if newer(winner, last[key])]
        world.log = [record(at, change) for at, change in enumerate([*history, *healed])]
        for change in winners.values():
            world.show(change)
        return world

    def show(self, change: PageChange) -> None:
        key, revision = change.page_key, change.revision
        for found in [id for id, chunk in self.chunks.items() if chunk.page_key == key]:
            del self.chunks[found]
        head = HeadDocument(head_id(key), revision, key, revision, change.op == "delete", chunks_of(change), "m", "c")
        self.heads[head.id] = head
        for name, count in chunks_of(change).items():
            for ord in range(count):
                self.put(ChunkDocument(chunk_id(key, name, ord), revision, key, revision, name, ord, "m", "c"))

    def put(self, chunk: ChunkDocument) -> None:
        self.chunks[chunk.id] = chunk

    def compared(self) -> IndexDiff:
        drift = IndexDiff(SITE, "m", "c")
        drift.add_records(self.log)
        drift.log_is_read()
        drift.add_documents(self.heads.values(), self.chunks.values())
        drift.index_is_read()
        drift.judge()
        drift.close_agreeing()
        return drift
