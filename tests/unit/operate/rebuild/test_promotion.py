"""The index stage while another index is promoted: a receipt speaks of what visitors search."""

from __future__ import annotations

import pytest

from pipelines.ingest.index import IndexOutcome, apply_part, index_part
from pipelines.ingest.ports import IndexReplaced
from schemas.head import LogPositions
from tests.fakes.pages import FakeIndex, FakePages
from tests.making import NOON, change, parts_of


class Moving(FakePages):
    """Another index is promoted after each write, `times` times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    async def still_live(self, index: FakeIndex) -> bool:
        if self.times:
            self.times -= 1
            self.index = FakeIndex()
        return index is self.index


async def test_nothing_is_said_of_an_index_that_is_not_live_any_more() -> None:
    pages = Moving(1)
    [part] = parts_of(change(1))
    with pytest.raises(IndexReplaced):
        await index_part(part, pages, lambda: NOON)
    outcome = await index_part(part, pages, lambda: NOON)
    assert outcome.receipt is not None
    assert outcome.receipt.state == "searchable"
    assert pages.index.texts(part.change.page_key)


async def test_what_was_made_for_another_index_goes_through_the_pipeline_again_once() -> None:
    store = FakeIndex(model="new-4")
    outcomes = [
        await apply_part(part, store, lambda: NOON, LogPositions())
        for part in parts_of(change(1), {"content": ["a", "b", "c"]}, per_part=1)
    ]
    assert outcomes == [IndexOutcome(remake=change(1))] * 3
    assert store.docs == {}


async def test_a_save_that_the_rebuild_has_put_in_gets_its_receipt() -> None:
    """Accepted in the moment of the promotion: nobody else would ever say so."""
    pages = FakePages()
    pages.index = FakeIndex(model="new-4")
    for part in parts_of(change(2), {"content": ["new"]}, model="new-4"):
        assert (await index_part(part, pages, lambda: NOON, embeddings_offset=7)).receipt is not None
    [late] = parts_of(change(2), {"content": ["new"]}, model="old-4")
    outcome = await index_part(late, pages, lambda: NOON, embeddings_offset=6)
    assert outcome.again is None
    assert outcome.receipt is not None
    assert (outcome.receipt.state, outcome.receipt.chunks.total) == ("searchable", 1)
