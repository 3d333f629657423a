"""The stage that builds pages for rebuilds: into the index that an order names, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from pipelines.operate.rebuild.build import OrderedPages, build_handler, failed_build
from pipelines.runtime.dead_letters import describe
from pipelines.runtime.errors import Permanent
from pipelines.runtime.indexes import IndexGone, IndexInfo
from pipelines.runtime.record import Record
from schemas.base import Message, WireError
from schemas.head import Head
from schemas.ingest import PageEmbeddings
from schemas.keys import page_key
from schemas.page import PageChange, PageDocument
from schemas.rebuild import PageBuilt, PageOrder
from schemas.topics import RESULTS, Topic
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.pages import FakeIndex, FakePages
from tests.making import NOON, no_attachments

KEY = page_key("town", "en", "fees")
TEXT = "A library card costs ten euros a year."


class Candidate(FakeIndex):
    """The index that is being made; `gone` once it is discarded."""

    gone = False
    refuses: Exception | None = None

    async def write(self, part: PageEmbeddings, head: Head | None) -> bool:
        if self.gone:
            raise IndexGone("index pagewire-town-000002 is gone")
        if self.refuses is not None:
            raise self.refuses
        return await super().write(part, head)


class Town:
    """A live index, a candidate, and a worker."""

    def __init__(self) -> None:
        self.model = FakeEmbedder(dims=4)
        self.info = IndexInfo("pagewire-town-000002", "town", "fake", self.model.fingerprint, 4, "content-1000-20")
        self.candidate = Candidate(self.info.model, self.info.chunker)
        self.live = FakePages()
        self.there: list[IndexInfo] = [self.info]
        self.looks = 0
        self.sent: list[PageBuilt] = []
        self.handle = self.worker()

    def worker(self) -> object:
        return build_handler(OrderedPages(self, self, self, self, no_attachments))  # type: ignore[arg-type]

    # Of Elasticsearch and of models.

    async def generations(self, site: str) -> list[IndexInfo]:
        self.looks += 1
        return self.there

    def at(self, info: IndexInfo) -> FakeIndex:
        assert info == self.info
        return self.candidate

    async def heads(self, site: str, keys: Sequence[str]) -> dict[str, Head]:
        return dict(await self.live.heads(site, keys))

    async def vectors(self, site: str, hashes: Sequence[str]) -> dict[str, object]:
        return {}

    async def units(self, site: str, page: str, model: str) -> list[object]:
        return []

    async def by_name(self, spec: str) -> FakeEmbedder:
        assert spec == "fake"
        return self.model

    async def send(self, topic: Topic, key: str, message: Message, *, partition_key: str | None = None) -> None:
        assert topic is RESULTS, "nothing else is told, least of all a receipt"
        assert key == self.info.name
        self.sent.append(PageBuilt.decode(message.encode()))

    async def order(self, revision: int = 1, text: str = TEXT, offset: int = 0) -> PageBuilt | None:
        """Have it worked on; what is said of it."""
        self.sent.clear()
        await self.handle(ordered(revision, text, offset), self)  # type: ignore[operator]
        return self.sent[0] if self.sent else None


def ordered(revision: int = 1, text: str = TEXT, offset: int = 0, key: str = KEY) -> Record:
    page = PageDocument(id="fees", lang="en", content=f"<p>{text}</p>")
    change = PageChange(
        op="upsert", site="town", lang="en", page_id="fees", revision=revision, accepted_at=NOON, source="t", page=page
    )
    order = PageOrder(run="r", index="pagewire-town-000002", partition=1, offset=offset, change=change)
    return Record("rebuild.orders", 0, 0, key.encode(), order.encode())


def texts(index: FakeIndex) -> set[str]:
    return {text for _, text in index.texts(KEY).values()}


async def test_an_order_becomes_a_page_of_the_index_that_it_names() -> None:
    town = Town()
    result = await town.order(offset=7)
    assert result is not None
    assert (result.outcome, result.pages, result.chunks, result.embedded) == ("built", 1, 1, 1)
    assert (result.run, result.index, result.page_key, result.partition, result.offset) == (
        "r", "pagewire-town-000002", KEY, 1, 7,
    )  # fmt: skip
    assert texts(town.candidate) == {TEXT}
    head = (await town.candidate.heads([KEY]))[KEY]
    assert (head.origin.changes, head.origin.changes_in) == (7, 1)  # as it stands in the log


async def test_an_order_that_comes_again_costs_nothing_and_says_the_same() -> None:
    town = Town()
    first = await town.order()
    assert first is not None
    embedded = len(town.model.embedded)
    town.handle = town.worker()  # the one before has died before it said so
    assert await town.order() == first.model_copy(update={"embedded": 0})
    assert len(town.model.embedded) == embedded


async def test_of_an_index_that_is_discarded_orders_are_dropped_and_that_is_looked_up_once() -> None:
    town = Town()
    town.there = []
    assert await town.order() is None
    assert await town.order(2) is None
    assert (town.looks, town.model.embedded) == (1, [])


async def test_an_index_that_is_discarded_while_its_page_is_written_costs_no_dead_letter() -> None:
    town = Town()
    await town.order()
    town.candidate.gone = True
    with pytest.raises(IndexGone):  # it is listed, so its page is tried again
        await town.order(2, offset=1)
    town.there = []
    assert await town.order(2, offset=1) is None


async def test_what_an_earlier_try_left_of_a_page_goes_when_a_newer_change_is_there() -> None:
    town = Town()
    long = " ".join(f"Room {n} of the museum shows boats of the lake." for n in range(60))
    write = town.candidate.write

    async def dies(part: PageEmbeddings, head: Head | None) -> bool:
        await write(part, None)
        raise RuntimeError("killed between the chunks and the head")

    town.candidate.write = dies  # type: ignore[method-assign]
    with pytest.raises(RuntimeError):
        await town.order(1, long)
    town.candidate.write = write  # type: ignore[method-assign]
    assert len(texts(town.candidate)) > 1
    await town.order(2, TEXT, offset=1)
    assert len(texts(town.candidate)) > 1  # nobody knows of them but who wrote them, and it comes again
    again = await town.order(1, long)
    assert again is not None
    assert again.outcome == "built"
    assert texts(town.candidate) == {TEXT}


async def test_a_worker_without_the_model_says_so_and_buries_nothing() -> None:
    town = Town()

    async def missing(spec: str) -> FakeEmbedder:
        raise Permanent("no weights")

    town.by_name = missing  # type: ignore[method-assign]
    result = await town.order()
    assert result is not None
    assert result.outcome == "refused"
    assert "no weights" in result.reason
    town.by_name = lambda spec: _other()  # type: ignore[assignment, method-assign]
    result = await town.order()
    assert result is not None
    assert (result.outcome, "fake-2-4" in result.reason) == ("refused", True)


async def _other() -> FakeEmbedder:
    return FakeEmbedder(dims=4, version="2")


async def test_what_cannot_be_written_is_a_dead_letter_of_which_the_rebuild_hears_and_no_editor() -> None:
    town = Town()
    town.candidate.refuses = Permanent("the mapping refuses it")
    with pytest.raises(Permanent) as error:
        await town.order()
    letter = describe(ordered(), "rebuild", error.value, 1, datetime.now(UTC))
    await failed_build(ordered(), letter, town)
    [result] = town.sent
    assert (result.outcome, result.reason, result.page_key) == ("failed", "the mapping refuses it", KEY)
    town.sent.clear()
    await failed_build(Record("rebuild.orders", 0, 0, KEY.encode(), b"{no json"), letter, town)
    assert town.sent == []


async def test_an_order_under_another_pages_key_is_refused() -> None:
    town = Town()
    with pytest.raises(WireError, match="town:en:other"):
        await town.handle(ordered(key="town:en:other"), town)  # type: ignore[operator]
    assert town.candidate.docs == {}


async def test_an_order_of_an_older_change_changes_nothing() -> None:
    town = Town()
    await town.order(2, "Newer.", offset=9)
    result = await town.order(1, TEXT, offset=3)
    assert result is not None
    assert texts(town.candidate) == {"Newer."}
    head = (await town.candidate.heads([KEY]))[KEY]
    assert (head.change.revision, head.change.offset) == (2, 9)
