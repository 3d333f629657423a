"""Pages that workers build for a rebuild: ordered, heard of, and given up when nobody is there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import cast

import pytest

from pipelines.ingest.accept import reference
from pipelines.operate.rebuild import orders as module
from pipelines.operate.rebuild.orders import IN_VAIN, OrderFailed, OrderRefused, WorkerOrders, WorkersAway
from pipelines.operate.rebuild.page_builder import Built, SourceMessage
from pipelines.runtime.bus import Bus, Producer
from pipelines.runtime.errors import PagewireError, Retryable, TooLarge
from pipelines.runtime.record import Headers, Lane, Record, lane_of
from pipelines.runtime.retry import RetryPolicy
from pipelines.runtime.stage import StageGroup
from schemas.page import Op, PageChange, PageDocument
from schemas.rebuild import PageBuilt, PageOrder
from schemas.topics import ORDERS, Topic
from tests.making import NOON

INDEX = "pagewire-town-000002"
Answer = Callable[[PageOrder], PageBuilt | None]


def given(page_id: str = "fees", op: Op = "upsert") -> SourceMessage:
    page = PageDocument(id=page_id, lang="en", content="<p>Free.</p>") if op == "upsert" else None
    whole = PageChange(
        op=op, site="town", lang="en", page_id=page_id, revision=5, accepted_at=NOON, source="t", page=page
    )
    return SourceMessage(reference(whole, 1, 7), whole=whole)


def built(order: PageOrder, **more: object) -> PageBuilt:
    said = PageBuilt(
        run=order.run,
        index=order.index,
        page_key=order.change.page_key,
        partition=order.partition,
        offset=order.offset,
        outcome="built",
        pages=1,
        chunks=3,
        embedded=2,
    )
    return said.model_copy(update=more)


class Workers:
    """The bus, and who works behind it: `answer` says what becomes of an order."""

    def __init__(self, answer: Answer = built) -> None:
        self.answer = answer
        self.orders: list[PageOrder] = []
        self.partitions: list[int | None] = []
        self.lanes: set[Lane] = set()
        self.results: list[Record] = []
        self.members, self.lag = 1, 1
        self.refuses: PagewireError | None = None
        self.away = 0  # looks that fail
        self.looks = 0

    def says(self, value: bytes) -> None:
        self.results.append(Record("rebuild.results", 0, len(self.results), INDEX.encode(), value))

    async def send_bytes(
        self, topic: Topic, key: bytes | None, value: bytes | None, headers: Headers, *, partition: int | None = None
    ) -> None:
        if self.refuses is not None:
            raise self.refuses
        assert topic is ORDERS
        order = PageOrder.decode(value)
        assert key == order.change.page_key.encode()
        self.orders.append(order)
        self.partitions.append(partition)
        self.lanes.add(lane_of(headers))
        if (result := self.answer(order)) is not None:
            self.says(result.encode())

    async def partitions_of(self, topics: list[Topic]) -> dict[Topic, set[int]]:
        return {topic: {0, 1, 2, 3} for topic in topics}

    @asynccontextmanager
    async def scan(self, topic: Topic) -> AsyncIterator[Workers]:
        yield self

    @asynccontextmanager
    async def view(self) -> AsyncIterator[SimpleNamespace]:
        self.looks += 1
        yield SimpleNamespace(partitions=self.partitions_of, lags=self.lags)

    async def lags(self, groups: list[StageGroup]) -> dict[StageGroup, SimpleNamespace]:
        assert groups == [StageGroup("rebuild", "bulk")]
        return {groups[0]: SimpleNamespace(members=self.members, lag=self.lag)}

    async def ends(self) -> dict[int, int]:
        if self.away:
            self.away -= 1
            raise Retryable("the broker does not answer")
        return {0: len(self.results)}

    async def read(
        self, *, since: Mapping[int, int] | None = None, until: Mapping[int, int]
    ) -> AsyncGenerator[list[Record], None]:
        if found := self.results[(since or {}).get(0, 0) : until[0]]:
            yield found

    def ordering(self, retry_for: float = 60.0) -> WorkerOrders:
        policy = RetryPolicy(1, retry_for, first_wait=0.001)
        return WorkerOrders(INDEX, cast(Producer, self), cast(Bus, self), policy)


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "READ_EVERY", 0.001)
    monkeypatch.setattr(module, "LOOK_EVERY", 60.0)


async def test_a_page_is_built_when_a_worker_says_so() -> None:
    workers = Workers()
    async with workers.ordering() as orders:
        assert await orders.built(given()) == Built(pages=1, chunks=3, embedded=2)
    [order] = workers.orders
    assert (order.index, order.partition, order.offset, order.change) == (INDEX, 1, 7, given().whole)
    assert workers.lanes == {"bulk"}  # saves go first


async def test_many_are_ordered_side_by_side_and_each_hears_of_its_own() -> None:
    held: list[PageOrder] = []
    workers = Workers(lambda order: held.append(order))
    async with workers.ordering() as orders, asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(orders.built(given(f"page{n}"))) for n in range(20)]
        while len(held) < 20:  # noqa: ASYNC110  # nothing announces it
            await asyncio.sleep(0)
        for n, order in reversed(list(enumerate(held))):
            workers.says(built(order, chunks=n).encode())
    assert [task.result() for task in asked] == [Built(1, n, 2) for n in range(20)]


async def test_an_order_goes_where_the_fewest_are_not_built() -> None:
    """Workers that are slow, or were killed, get no more of them."""
    held: list[PageOrder] = []
    workers = Workers(lambda order: held.append(order))
    async with workers.ordering() as orders, asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(orders.built(given(f"page{n}"))) for n in range(8)]
        while len(held) < 8:  # noqa: ASYNC110  # nothing announces it
            await asyncio.sleep(0)
        assert sorted(map(str, workers.partitions)) == ["0", "0", "1", "1", "2", "2", "3", "3"]
        quick = workers.partitions[5]
        for task, number, order in zip(asked, list(workers.partitions), list(held), strict=True):
            if number == quick:
                workers.says(built(order).encode())
                await task
        workers.answer = built
        for n in range(3):
            await orders.built(given(f"more{n}"))
        assert workers.partitions[8:] == [quick] * 3
        for order in held:
            workers.says(built(order).encode())


async def test_what_others_hear_and_what_is_no_result_is_passed_over() -> None:
    workers = Workers()

    def answer(order: PageOrder) -> PageBuilt:
        workers.says(built(order, run="another", chunks=9).encode())
        workers.says(built(order, offset=8, chunks=9).encode())
        workers.says(b"{no json")
        return built(order)

    workers.answer = answer
    async with workers.ordering() as orders:
        assert await orders.built(given()) == Built(1, 3, 2)


async def test_results_of_before_are_not_heard_again() -> None:
    workers = Workers()
    async with workers.ordering() as orders:
        await orders.built(given())
    workers.answer = lambda order: built(order, chunks=4)
    async with workers.ordering() as orders:
        assert await orders.built(given()) == Built(1, 4, 2)


async def test_deletes_and_what_is_too_large_for_a_message_are_left_to_whoever_asks() -> None:
    workers = Workers()
    async with workers.ordering() as orders:
        assert await orders.built(given(op="delete")) is None
        assert await orders.built(SourceMessage(given().change)) is None
        workers.refuses = TooLarge("9 MiB")
        assert await orders.built(given()) is None
    assert workers.orders == []


async def test_what_a_worker_gave_up_and_what_it_refuses_are_told_apart() -> None:
    workers = Workers(lambda order: built(order, outcome="failed", reason="the mapping refuses it"))
    async with workers.ordering() as orders:
        with pytest.raises(OrderFailed, match="the mapping refuses it"):
            await orders.built(given())
        workers.answer = lambda order: built(order, outcome="refused", reason="there is no such model here")
        with pytest.raises(OrderRefused, match="no such model"):
            await orders.built(given())


async def test_without_a_worker_nothing_is_begun() -> None:
    workers = Workers()
    workers.members = 0
    with pytest.raises(WorkersAway, match="pagewire worker rebuild"):
        async with workers.ordering():
            pass
    assert workers.orders == []


@pytest.mark.parametrize(
    ("members", "lag", "said"), [(0, 20, "no worker runs the stage"), (2, 0, "said nothing of 1 pages")]
)
async def test_when_nobody_is_at_work_any_more_everybody_who_waits_is_told(
    members: int, lag: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_EVERY", 0.0)
    workers = Workers(lambda order: None)
    async with workers.ordering() as orders:
        waiting = asyncio.create_task(orders.built(given()))
        while workers.looks < 2 * IN_VAIN:  # noqa: ASYNC110  # at work, and slow
            await asyncio.sleep(0)
        assert not waiting.done()
        workers.members, workers.lag = members, lag
        with pytest.raises(WorkersAway, match=said):
            await waiting
        with pytest.raises(WorkersAway):
            await orders.built(given("other"))


async def test_a_broker_that_is_away_for_a_moment_is_waited_for_and_one_that_stays_away_is_told_of() -> None:
    workers = Workers()
    async with workers.ordering() as orders:
        workers.away = 3
        assert await orders.built(given()) == Built(1, 3, 2)
    async with workers.ordering(retry_for=0.01) as orders:
        workers.away = 1_000_000
        with pytest.raises(Retryable, match="the broker does not answer"):
            await orders.built(given())
