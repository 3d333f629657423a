"""Many callers, few requests: whoever comes while one is under way shares the next, and nobody gets an older answer."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from typing import Any, cast

import pytest
from elasticsearch import AsyncElasticsearch

from adapters.elastic.client import ElasticsearchDown
from adapters.elastic.reading import DocumentLookup, Shared


class Counting:
    """A request that is answered when a test says so, with its number; some fail."""

    def __init__(self, failing: frozenset[int] = frozenset()) -> None:
        self.begun = 0
        self.answers = asyncio.Semaphore(0)
        self._failing = failing

    async def __call__(self) -> int:
        self.begun += 1
        mine = self.begun
        await self.answers.acquire()
        if mine in self._failing:
            raise RuntimeError(f"request {mine}")
        return mine


async def come(shared: Shared[int]) -> asyncio.Task[int]:
    """A caller, when it has asked."""
    caller = asyncio.create_task(shared.result())
    for _ in range(5):
        await asyncio.sleep(0)
    return caller


async def test_who_comes_while_a_request_is_under_way_shares_the_next() -> None:
    request = Counting()
    shared = Shared(request)
    callers = [await come(shared) for _ in range(4)]
    assert request.begun == 1
    request.answers.release()
    request.answers.release()
    assert await asyncio.gather(*callers) == [1, 2, 2, 2]
    request.answers.release()
    assert await shared.result() == 3


async def test_a_request_that_fails_fails_for_those_who_share_it_alone() -> None:
    request = Counting(failing=frozenset({2}))
    shared = Shared(request)
    callers = [await come(shared) for _ in range(3)]
    for _ in range(3):
        request.answers.release()
    first, *others = await asyncio.gather(*callers, return_exceptions=True)
    assert first == 1
    assert [str(each) for each in others] == ["request 2"] * 2
    assert await shared.result() == 3


async def test_a_request_that_fails_when_nobody_waits_any_more_is_not_complained_of() -> None:
    request = Counting(frozenset({1}))
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
    caller = await come(Shared(request))
    caller.cancel()
    request.answers.release()
    await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})
    del caller
    gc.collect()
    assert not complaints


async def test_a_caller_that_gives_up_leaves_the_request_to_the_others() -> None:
    request = Counting()
    shared = Shared(request)
    first, impatient, patient = [await come(shared) for _ in range(3)]
    impatient.cancel()
    request.answers.release()
    request.answers.release()
    assert await first == 1
    with pytest.raises(asyncio.CancelledError):
        await impatient
    assert await patient == 2


class Store:
    """Elasticsearch's mget, as far as it is needed here; ids that begin with x are not there."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str]]] = []

    async def mget(self, *, index: str, ids: Sequence[str], source_includes: Sequence[str]) -> dict[str, Any]:
        self.asked.append((index, list(ids)))
        await asyncio.sleep(0.01)
        return {"docs": [{"_id": id, "found": not id.startswith("x"), "of": source_includes} for id in ids]}


async def test_each_caller_gets_its_own_documents_out_of_what_was_read_together() -> None:
    store = Store()
    documents = DocumentLookup(cast(AsyncElasticsearch, store), "head")
    wanted = [["a"], ["b", "c"], ["c", "x"], []]
    found = await asyncio.gather(*(documents.read("town", ids) for ids in wanted), documents.read("city", ["a"]))
    assert [list(each) for each in found] == [*wanted, ["a"]]
    assert [found[2][id]["found"] for id in ("c", "x")] == [True, False]
    assert found[0]["a"]["of"] == ["head"]
    # All of them came before the first request began.
    assert sorted(store.asked) == [("city", ["a"]), ("town", ["a", "b", "c", "x"])]


async def test_what_is_wanted_meanwhile_is_read_next() -> None:
    store = Store()
    documents = DocumentLookup(cast(AsyncElasticsearch, store), "head")
    first = asyncio.create_task(documents.read("town", ["a"]))
    await asyncio.sleep(0.005)
    await asyncio.gather(first, documents.read("town", ["c"]), documents.read("town", ["b"]))
    assert store.asked == [("town", ["a"]), ("town", ["b", "c"])]


@pytest.mark.parametrize(
    ("kind", "down"), [("no_shard_available_action_exception", True), ("index_not_found_exception", False)]
)
async def test_a_document_that_cannot_be_read_is_not_taken_for_one_that_is_not_there(kind: str, down: bool) -> None:
    class Moving(Store):
        async def mget(self, **asked: Any) -> dict[str, Any]:
            return {"docs": [{"_id": "a", "found": True}, {"_id": "b", "error": {"type": kind}}]}

    read = DocumentLookup(cast(AsyncElasticsearch, Moving()), "head").read("town", ["a", "b"])
    if down:
        with pytest.raises(ElasticsearchDown, match=kind):
            await read
    else:
        assert set(await read) == {"a", "b"}


async def test_an_index_that_was_read_leaves_nothing_behind() -> None:
    class Reads:
        async def mget(self, *, index: str, ids: Sequence[str], source_includes: Sequence[str]) -> dict[str, Any]:
            return {"docs": [{"_id": id} for id in ids]}

    documents = DocumentLookup(cast(AsyncElasticsearch, Reads()), "part")
    for number in range(50):
        assert await documents.read(f"index-{number}", ["a"]) == {"a": {"_id": "a"}}
    assert not documents._reads
