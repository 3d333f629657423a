"""The index stage's rule: whatever order a page's history arrives in, its highest revision stands."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.fakes import FakePages
from pipelines.ingest.index import ModelMismatch, Outcome, index_part
from schemas.ingest import PageEmbeddings
from schemas.page import FieldName, Op
from tests.making import NOON, change, parts_of


def now() -> datetime:
    return NOON


async def apply(store: FakePages, *parts: PageEmbeddings) -> Outcome:
    outcome = Outcome()
    for part in parts:
        outcome = await index_part(part, store, now)
    return outcome


async def test_a_page_becomes_searchable_with_its_cost_on_the_receipt() -> None:
    store = FakePages()
    outcome = await apply(store, *parts_of(change(1), {"title": ["Fees"], "content": ["One.", "Two."]}))
    assert outcome.receipt is not None
    assert outcome.receipt.state == "searchable"
    assert outcome.receipt.chunks.total == 3
    assert store.texts(change().page_key)["content", 1] == (1, "Two.")


async def test_chunks_a_shorter_revision_no_longer_has_are_removed() -> None:
    store = FakePages()
    await apply(store, *parts_of(change(1), {"title": ["Fees"], "content": ["One.", "Two.", "Three."]}))
    outcome = await apply(store, *parts_of(change(2), {"content": ["Only."]}))
    assert store.texts(change().page_key) == {("content", 0): (2, "Only.")}
    assert outcome.receipt is not None
    assert outcome.receipt.chunks.removed == 3


async def test_nothing_is_removed_and_no_receipt_given_before_the_last_part() -> None:
    store = FakePages()
    await apply(store, *parts_of(change(1), {"content": ["a", "b", "c", "d"]}))
    first, last = parts_of(change(2), {"content": ["A", "B"]}, per_part=1)
    assert await apply(store, first) == Outcome()
    assert store.texts(change().page_key)["content", 3] == (1, "d")
    await apply(store, last)
    assert [text for _, text in store.texts(change().page_key).values()] == ["A", "B"]


async def test_a_deleted_page_stays_deleted_when_an_older_publish_arrives_late() -> None:
    store = FakePages()
    await apply(store, *parts_of(change(1)))
    deleted = await apply(store, *parts_of(change(5, "delete")))
    assert deleted.receipt is not None
    assert (deleted.receipt.state, deleted.receipt.chunks.removed) == ("deleted", 2)
    late = await apply(store, *parts_of(change(4)))
    assert late.receipt is not None
    assert late.receipt.state == "superseded"
    assert store.texts(change().page_key) == {}


async def test_deleting_a_page_never_seen_leaves_a_guard() -> None:
    store = FakePages()
    outcome = await apply(store, *parts_of(change(7, "delete")))
    assert outcome.receipt is not None
    assert outcome.receipt.state == "deleted"
    await apply(store, *parts_of(change(6)))
    assert store.texts(change().page_key) == {}


async def test_an_old_change_behind_the_winner_in_the_log_asks_for_the_winner_back() -> None:
    store = FakePages()
    winner = change(5, offset=10)
    await apply(store, *parts_of(winner))
    behind = await apply(store, *parts_of(change(4, offset=11)))
    assert behind.restore == winner
    replayed = await apply(store, *parts_of(change(4, offset=9)))
    assert replayed.restore is None


async def test_vectors_of_another_model_are_refused() -> None:
    store = FakePages()
    await apply(store, *parts_of(change(1)))
    with pytest.raises(ModelMismatch, match="redrive"):
        await apply(store, *parts_of(change(2), model="other"))


async def test_a_newer_write_in_between_leaves_nothing_of_ours() -> None:
    store = FakePages()

    class Overtaken(FakePages):
        """Another worker settles revision 9 between our look at the head and our write."""

        async def write(self, part: PageEmbeddings, head: object) -> bool:
            if part.change.revision == 3:
                for newer in parts_of(change(9), {"content": ["New."]}):
                    await index_part(newer, store, now)
            return await store.write(part, head)  # type: ignore[arg-type]

    racing = Overtaken()
    racing.docs, racing.models = store.docs, store.models
    outcome = await index_part(*parts_of(change(3), {"content": ["Old.", "Older."]}), racing, now)
    assert outcome.receipt is not None
    assert outcome.receipt.state == "superseded"
    assert store.texts(change().page_key) == {("content", 0): (9, "New.")}


ops: st.SearchStrategy[Op] = st.sampled_from(["upsert", "delete"])
# revision, op, number of chunks, chunks per part
histories = st.lists(
    st.tuples(st.integers(1, 6), ops, st.integers(0, 4), st.integers(1, 3)),
    min_size=1,
    max_size=8,
    unique_by=lambda change: change[0],
)


@given(history=histories, data=st.data())
async def test_any_order_and_any_repetition_ends_in_the_highest_revision(
    history: list[tuple[int, str, int, int]], data: st.DataObject
) -> None:
    """At-least-once delivery: each change arrives at least once, in any order, its own parts in order."""
    arrivals = data.draw(st.permutations(history + data.draw(st.lists(st.sampled_from(history), max_size=4))))
    store = FakePages()
    for revision, op, length, per_part in arrivals:
        texts: dict[FieldName, list[str]] = {"content": [f"{revision}.{i}" for i in range(length)]}
        for part in parts_of(change(revision, op), texts, per_part):
            await index_part(part, store, now)
    revision, op, length, _ = max(history)
    expected = {} if op == "delete" else {("content", i): (revision, f"{revision}.{i}") for i in range(length)}
    assert store.texts(change().page_key) == expected
    head = (await store.heads("town", [change().page_key]))[change().page_key]
    assert (head.change.revision, head.state) == (revision, "deleted" if op == "delete" else "live")
