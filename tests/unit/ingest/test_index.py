"""The index stage's rule: whatever order a page's history arrives in, its highest revision stands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ingest.index import IndexOutcome, index_part
from pipelines.ingest.ports import ChunkAddress, IndexReplaced
from schemas.head import Head
from schemas.ingest import PageEmbeddings, ReceiptEvent
from schemas.page import ChangeRef, FieldName, Op
from tests.fakes.pages import FakeIndex, FakePages
from tests.making import NOON, change, parts_of

KEY = change().page_key
OTHER_MODEL = "fake-2-4"
OTHER_CHUNKER = "fixed-512-20"


def now() -> datetime:
    return NOON


async def apply(pages: FakePages, *parts: PageEmbeddings, at: int = 1) -> IndexOutcome:
    """The outcome of the last part; `at` is where that stands in ingest.embeddings."""
    outcome = IndexOutcome()
    for part in parts:
        outcome = await index_part(part, pages, now, at)
    return outcome


def receipt(outcome: IndexOutcome) -> ReceiptEvent:
    assert outcome.receipt is not None
    return outcome.receipt


async def head(pages: FakePages) -> Head:
    return (await pages.heads("town", [KEY]))[KEY]


async def test_a_page_becomes_searchable_with_its_cost_on_the_receipt() -> None:
    pages = FakePages()
    outcome = await apply(pages, *parts_of(change(1), {"title": ["Fees"], "content": ["One.", "Two."]}))
    assert (receipt(outcome).state, receipt(outcome).chunks.total) == ("searchable", 3)
    assert pages.index.texts(KEY)["content", 1] == (1, "Two.")


async def test_chunks_a_shorter_revision_no_longer_has_are_removed() -> None:
    pages = FakePages()
    await apply(pages, *parts_of(change(1), {"title": ["Fees"], "content": ["One.", "Two.", "Three."]}))
    outcome = await apply(pages, *parts_of(change(2), {"content": ["Only."]}))
    assert pages.index.texts(KEY) == {("content", 0): (2, "Only.")}
    assert receipt(outcome).chunks.removed == 3


OLD: dict[FieldName, list[str]] = {"content": ["a", "b", "c", "d"]}


@pytest.mark.parametrize("order", list(permutations(range(3))))
async def test_a_page_in_parts_is_not_touched_before_all_are_in_whichever_comes_last(order: tuple[int, ...]) -> None:
    pages = FakePages()
    await apply(pages, *parts_of(change(1), OLD))
    parts = parts_of(change(2), {"content": ["A", "B", "C"]}, per_part=1)
    for number in order[:-1]:
        assert await apply(pages, parts[number], at=10 + number) == IndexOutcome()
        assert [text for _, text in pages.index.texts(KEY).values()] == ["a", "b", "c", "d"]
    outcome = await apply(pages, parts[order[-1]], at=10 + order[-1])
    assert (receipt(outcome).state, receipt(outcome).chunks.removed) == ("searchable", 1)
    assert [text for _, text in sorted(pages.index.texts(KEY).values())] == ["A", "B", "C"]
    assert ((await head(pages)).origin.embeddings, (await head(pages)).last_part) == (10, 12)
    assert pages.index.aside == {}


async def test_parts_of_two_saves_with_one_revision_are_never_put_together() -> None:
    pages = FakePages()
    one, other = (
        [part.model_copy(update={"digest": text}) for part in parts_of(change(2), {"content": [text] * 2}, per_part=1)]
        for text in ("one", "other")
    )
    assert await apply(pages, one[0], other[1]) == IndexOutcome()
    assert receipt(await apply(pages, one[1])).state == "searchable"
    assert {text for _, text in pages.index.texts(KEY).values()} == {"one"}


async def test_a_deleted_page_stays_deleted_when_an_older_publish_arrives_late() -> None:
    pages = FakePages()
    await apply(pages, *parts_of(change(1)))
    deleted = receipt(await apply(pages, *parts_of(change(5, "delete"))))
    assert (deleted.state, deleted.chunks.removed) == ("deleted", 2)
    assert receipt(await apply(pages, *parts_of(change(4)))).state == "superseded"
    assert pages.index.texts(KEY) == {}


async def test_deleting_a_page_never_seen_leaves_a_guard() -> None:
    pages = FakePages()
    assert receipt(await apply(pages, *parts_of(change(7, "delete")))).state == "deleted"
    await apply(pages, *parts_of(change(6)))
    assert pages.index.texts(KEY) == {}


async def test_a_delete_wins_over_a_publish_of_the_same_revision_whichever_comes_last() -> None:
    for history in (("delete", "upsert"), ("upsert", "delete")):
        pages = FakePages()
        for op in history:
            await apply(pages, *parts_of(change(5, op)))  # type: ignore[arg-type]
        assert pages.index.texts(KEY) == {}
        assert (await head(pages)).state == "deleted"


# Compaction keeps the last record of a key in cms.changes, ingest.chunks and ingest.embeddings: who is last counts.


def placed(revision: int, log: int, chunks: int, op: Op = "upsert") -> list[PageEmbeddings]:
    """The one part of a change that stands at these offsets of cms.changes and ingest.chunks."""
    [part] = parts_of(change(revision, op, offset=log), {"content": [f"Revision {revision}."]})
    return [part.model_copy(update={"chunks_offset": chunks})]


@pytest.mark.parametrize(
    ("log", "chunks", "embeddings", "behind"),
    [
        (9, 9, 9, False),
        (11, 9, 9, True),
        (9, 11, 9, True),
        (9, 9, 11, True),
        (11, 11, 11, True),
    ],
    ids=["nowhere", "cms.changes", "ingest.chunks", "ingest.embeddings", "everywhere"],
)
async def test_a_loser_behind_the_winner_in_any_topic_brings_the_winner_back(
    log: int, chunks: int, embeddings: int, behind: bool
) -> None:
    pages = FakePages()
    [winner] = placed(5, log=10, chunks=10)
    await apply(pages, winner, at=10)
    outcome = await apply(pages, *placed(4, log=log, chunks=chunks), at=embeddings)
    assert receipt(outcome).state == "superseded"
    assert outcome.again == (winner.change if behind else None)


@pytest.mark.parametrize(
    ("log", "chunks", "embeddings", "behind"),
    [(9, 9, 9, False), (11, 9, 9, True), (9, 11, 9, True)],
    ids=["nowhere", "cms.changes", "ingest.chunks"],
)
async def test_a_winner_that_comes_after_a_loser_which_stands_behind_it_is_sent_again(
    log: int, chunks: int, embeddings: int, behind: bool
) -> None:
    """A save in its own lane overtakes the import of a newer text."""
    pages = FakePages()
    await apply(pages, *placed(4, log=log, chunks=chunks), at=embeddings)
    [winner] = placed(5, log=10, chunks=10)
    outcome = await apply(pages, winner, at=10)
    assert receipt(outcome).state == "searchable"
    assert outcome.again == (winner.change if behind else None)


async def test_the_winner_sent_again_settles_it() -> None:
    pages = FakePages()
    await apply(pages, *placed(5, log=10, chunks=10), at=10)
    assert (await apply(pages, *placed(4, log=11, chunks=11), at=11)).again
    assert (await apply(pages, *placed(5, log=12, chunks=12), at=12)).again is None
    assert (await apply(pages, *placed(4, log=11, chunks=11), at=11)).again is None
    # A replay of its first pass does not bring back the old place.
    await apply(pages, *placed(5, log=10, chunks=10), at=10)
    assert (await head(pages)).change.offset == 12


async def test_positions_in_different_partitions_say_nothing() -> None:
    pages = FakePages()
    await apply(pages, *placed(5, log=10, chunks=10), at=10)
    [late] = placed(4, log=99, chunks=99)
    elsewhere = late.model_copy(update={"change": late.change.model_copy(update={"partition": 1})})
    assert (await apply(pages, elsewhere, at=99)).again is None


async def put(
    pages: FakePages, revision: int, *, log: int, chunks: int, embeddings: int, within: int, log_in: int = 3
) -> IndexOutcome:
    """Apply a change; `within` is the partition of its products, `log_in` that of itself."""
    [part] = placed(revision, log=log, chunks=chunks)
    change = part.change.model_copy(update={"partition": log_in})
    part = part.model_copy(update={"change": change, "chunks_in": within})
    return await index_part(part, pages, lambda: NOON, embeddings, within)


async def test_what_stands_in_a_topics_old_partition_does_not_bring_the_winner_back_without_end() -> None:
    pages = FakePages()
    assert (await put(pages, 4, log=10, chunks=200, embeddings=300, within=1)).again is None
    assert (await put(pages, 5, log=11, chunks=1, embeddings=2, within=4)).again is None  # the topics got partitions
    assert (await put(pages, 4, log=10, chunks=200, embeddings=300, within=1)).again is None
    late = await put(pages, 4, log=12, chunks=2, embeddings=3, within=4)  # in the winner's partition it counts
    assert late.again is not None
    assert (await put(pages, 5, log=13, chunks=3, embeddings=4, within=4)).again is None


async def test_products_are_compared_in_their_own_topics_partitions() -> None:
    """cms.changes got partitions, the other topics have theirs still: there the loser hides the winner."""
    pages = FakePages()
    await put(pages, 5, log=10, chunks=10, embeddings=10, within=1, log_in=0)
    assert (await put(pages, 4, log=1, chunks=11, embeddings=11, within=1)).again is not None
    assert (await put(pages, 5, log=2, chunks=12, embeddings=12, within=1)).again is None


async def test_a_part_that_waited_in_another_partition_sends_nobody_again_without_end() -> None:
    """ingest.embeddings got partitions between two parts of a page: the offset of the first says nothing there."""
    pages = FakePages()
    first, last = parts_of(change(4), {"content": ["a", "b"]}, per_part=1)

    async def put_at(part: PageEmbeddings, offset: int, within: int) -> bool:
        return (await index_part(part, pages, now, offset, within)).again is not None

    assert not await put_at(first, 500, within=1)
    await put_at(last, 1, within=5)
    again = [await put_at(part, at, within=5) for at, part in enumerate((first, last), 2)]
    assert not again[-1], "one copy in the new partition is enough"
    [newer] = parts_of(change(5, offset=8), {"content": ["c"]})
    assert not await put_at(newer, 9, within=5)
    assert len(pages.index.texts(KEY)) == 1


async def test_a_loser_that_an_earlier_version_met_brings_the_winner_back_once() -> None:
    pages = FakePages()
    await apply(pages, *placed(4, log=10, chunks=200), at=300)  # it wrote down no partitions
    assert (await put(pages, 5, log=11, chunks=1, embeddings=2, within=4, log_in=0)).again is not None
    assert (await put(pages, 5, log=12, chunks=2, embeddings=3, within=4, log_in=0)).again is None


@pytest.mark.parametrize(("part", "at", "hides"), [(1, 11, True), (1, 9, False), (2, 11, False)])
async def test_a_tombstone_that_hides_a_part_of_the_winner_brings_it_back(part: int, at: int, hides: bool) -> None:
    pages = FakePages()
    winner = parts_of(change(5, offset=7), {"content": ["a", "b"]}, per_part=1)
    await apply(pages, *winner, at=10)
    [late] = parts_of(change(4, offset=6), {"content": ["c"]})
    tombstone = late.model_copy(update={"part": part, "superseded": True, "chunks": ()})
    assert await apply(pages, tombstone, at=at) == IndexOutcome(again=winner[0].change if hides else None)
    assert len(pages.index.texts(KEY)) == 2


async def test_a_tombstone_of_the_revision_that_is_about_to_win_hides_nothing() -> None:
    pages = FakePages()
    await apply(pages, *parts_of(change(4), {"content": ["a", "b"]}, per_part=1))
    [part] = parts_of(change(5), {"content": ["c"]})
    tombstone = part.model_copy(update={"part": 1, "superseded": True, "chunks": ()})
    assert await apply(pages, tombstone, at=11) == IndexOutcome()


@pytest.mark.parametrize(
    "late",
    [{"part": 2, "superseded": True, "chunks": ()}, {"part": 0}, {"part": 0, "model": OTHER_MODEL}],
    ids=["a tombstone", "one part of a replay", "one made for another index"],
)
async def test_what_harms_nothing_shown_is_remembered_for_a_newer_change_that_stands_before_it(
    late: dict[str, object],
) -> None:
    pages = FakePages()
    shown = parts_of(change(4), {"content": ["a", "b"]}, per_part=1)
    await apply(pages, *shown, at=5)
    assert (await apply(pages, shown[0].model_copy(update=late), at=20)).again is None
    assert (await apply(pages, *parts_of(change(5, offset=9)), at=10)).again == change(5, offset=9)
    assert (await apply(pages, *parts_of(change(5, offset=10)), at=21)).again is None


@pytest.mark.parametrize("crossing", [False, True])
async def test_one_more_copy_of_what_is_shown_counts_when_all_of_it_is_there(crossing: bool) -> None:
    pages, texts = FakePages(), {"content": ["a", "b"]}
    shown, later, latest = (parts_of(change(5, offset=offset), texts, per_part=1) for offset in (1, 2, 3))
    await apply(pages, *shown, at=5)
    await apply(pages, later[0], at=6)
    await apply(pages, *latest[:crossing], at=7)  # takes the place of the other copy's part
    outcome = await apply(pages, later[1], at=8)
    found = await head(pages)
    assert (found.change.offset, found.origin.embeddings, found.needs_requeue) == (
        (1, 5, True) if crossing else (2, 6, False)
    )
    assert outcome.again == (later[1].change if crossing else None)
    assert (await apply(pages, *parts_of(change(5, offset=4), texts, per_part=1), at=9)).again is None


async def test_a_page_that_was_put_together_of_two_copies_is_sent_again() -> None:
    """The rest of the two may stand in any order, and the log holds one of them."""
    pages, texts = FakePages(), {"content": ["a", "b"]}
    one, other = (parts_of(change(5, offset=offset), texts, per_part=1) for offset in (1, 2))
    await apply(pages, other[0], at=5)
    outcome = await apply(pages, one[1], at=6)
    assert (receipt(outcome).state, outcome.again) == ("searchable", one[1].change)
    assert (await head(pages)).needs_requeue, "also for a worker that dies before it sends"
    assert (await apply(pages, *parts_of(change(5, offset=3), texts, per_part=1), at=7)).again is None


# What if we die, or are overtaken, between two steps?


class Dies(BaseException):
    """As a cancelled task: nothing in between may catch it."""


class FrailIndex(FakeIndex):
    """Counts what it is asked to do, and ends the worker before one of those."""

    def __init__(self) -> None:
        super().__init__()
        self.left = -1  # calls; below 0: for ever

    def _call(self) -> None:
        if self.left == 0:
            raise Dies
        self.left -= 1

    async def write(self, part: PageEmbeddings, head: Head | None) -> bool:
        self._call()
        return await super().write(part, head)

    async def remove(self, change: ChangeRef, chunks: Sequence[ChunkAddress]) -> None:
        self._call()
        await super().remove(change, chunks)

    async def refresh(self) -> None:
        self._call()


LONG: dict[FieldName, list[str]] = {"title": ["Fees"], "content": ["One.", "Two.", "Three."]}


@pytest.mark.parametrize("op", ["upsert", "delete"])
@pytest.mark.parametrize("dies_after", range(5))
async def test_a_worker_that_dies_between_two_steps_leaves_nothing_behind_when_it_is_done_again(
    dies_after: int, op: Op
) -> None:
    pages = FakePages()
    frail = pages.index = FrailIndex()
    await apply(pages, *parts_of(change(1), LONG))
    shorter = parts_of(change(2, op), {"content": ["Only."]})
    frail.left = dies_after
    try:
        await apply(pages, *shorter)
        assert dies_after > 2
    except Dies:
        frail.left = -1
        outcome = await apply(pages, *shorter)
        assert receipt(outcome).state == ("deleted" if op == "delete" else "searchable")
    assert pages.index.texts(KEY) == ({} if op == "delete" else {("content", 0): (2, "Only.")})


async def test_what_a_loser_that_died_half_way_wrote_goes_when_it_is_redelivered() -> None:
    pages = FakePages()
    [loser] = parts_of(change(3), OLD)
    await pages.index.write(loser, None)  # and no more
    await apply(pages, *parts_of(change(5), {"content": ["New."]}))
    assert ("content", 1) in pages.index.texts(KEY)
    await apply(pages, loser)
    assert pages.index.texts(KEY) == {("content", 0): (5, "New.")}


async def test_who_died_after_the_head_of_a_page_in_parts_gives_its_receipt_when_asked_again() -> None:
    pages = FakePages()
    first, last = parts_of(change(3), {"content": ["a", "b"]}, per_part=1)
    await apply(pages, first, at=7)
    told = receipt(await apply(pages, last, at=8))
    again = await apply(pages, last, at=8)
    assert (receipt(again).state, receipt(again).chunks, again.again) == ("searchable", told.chunks, None)
    assert pages.index.aside == {}


class Overtaken(FakeIndex):
    """Another worker does something between our look at the head and our write."""

    def __init__(self, meanwhile: Callable[[], Awaitable[object]]) -> None:
        super().__init__()
        self._meanwhile: Callable[[], Awaitable[object]] | None = meanwhile

    async def write(self, part: PageEmbeddings, head: Head | None) -> bool:
        if meanwhile := self._meanwhile:
            self._meanwhile = None
            await meanwhile()
        return await super().write(part, head)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("loser_offset", [9, 11])
async def test_a_newer_revision_in_between_leaves_nothing_of_ours_and_is_healed_like_any_other(
    loser_offset: int, parts: int
) -> None:
    pages = FakePages()
    [winner] = placed(9, log=10, chunks=10)
    pages.index = Overtaken(lambda: apply(pages, winner, at=10))
    texts: dict[FieldName, list[str]] = {"title": ["Old"], "description": ["Older."]}
    late = parts_of(change(3, offset=loser_offset), texts, per_part=2 // parts)
    outcome = await apply(pages, *late, at=1)
    assert receipt(outcome).state == "superseded"
    assert outcome.again == (winner.change if loser_offset > 10 else None)
    assert pages.index.texts(KEY) == {("content", 0): (9, "Revision 9.")}


async def test_a_newer_revision_that_has_only_begun_to_write_wins_too() -> None:
    pages = FakePages()
    first, last = parts_of(change(5), {"content": ["a", "b"]}, per_part=1)

    async def begun() -> None:
        await apply(pages, first)
        await pages.index.write(first, None)

    pages.index = Overtaken(begun)
    told = receipt(await apply(pages, *parts_of(change(3), {"content": ["Old.", "Beside."]})))
    assert (told.state, told.change.revision) == ("superseded", 3)
    assert receipt(await apply(pages, last)).state == "searchable"
    assert pages.index.texts(KEY) == {("content", 0): (5, "a"), ("content", 1): (5, "b")}


async def test_a_page_that_is_late_by_a_whole_revision_is_taken_back() -> None:
    """A paused worker goes on with a page in parts that was settled and replaced meanwhile."""
    pages = FakePages()
    older = parts_of(change(3), {"content": ["a", "b", "c", "d"]}, per_part=2)
    newer = parts_of(change(5), {"title": ["New"]})

    async def meanwhile() -> None:
        await apply(pages, *older)
        await apply(pages, *newer)
        pages.index.docs = {id: doc for id, doc in pages.index.docs.items() if doc.chunk or doc.head}  # gc_deletes

    await apply(pages, older[0])
    aside = pages.index.aside
    pages.index = Overtaken(meanwhile)
    pages.index.aside = aside
    assert receipt(await apply(pages, older[1])).state == "superseded"
    assert pages.index.texts(KEY) == {("title", 0): (5, "New")}


# Another index becomes live.


async def test_a_swap_between_write_and_receipt_is_found_and_the_next_try_goes_to_the_new_index() -> None:
    pages = FakePages()
    old, new = FakeIndex(), FakeIndex()

    async def promote() -> None:
        pages.index = new

    pages.index = old = Overtaken(promote)
    with pytest.raises(IndexReplaced, match=KEY):
        await apply(pages, *parts_of(change(1)))
    assert new.texts(KEY) == {}
    assert receipt(await apply(pages, *parts_of(change(1)))).state == "searchable"
    assert new.texts(KEY) == old.texts(KEY)


async def test_from_an_index_that_is_about_to_be_replaced_comes_no_receipt() -> None:
    class Held(FakePages):
        held = True

        async def still_live(self, index: FakeIndex) -> bool:
            return not self.held and await super().still_live(index)

    pages = Held()
    late = parts_of(change(0))
    for parts in (parts_of(change(1)), parts_of(change(2, "delete")), late):
        with pytest.raises(IndexReplaced):
            await apply(pages, *parts)
    pages.held = False
    assert receipt(await apply(pages, *late)).state == "superseded"


def misfit(revision: int, **fingerprints: object) -> list[PageEmbeddings]:
    return [
        part.model_copy(update=fingerprints)
        for part in parts_of(change(revision, offset=3), {"content": ["a", "b"]}, per_part=1)
    ]


@pytest.mark.parametrize("of", [{"model": OTHER_MODEL}, {"chunker": OTHER_CHUNKER}], ids=["model", "chunker"])
async def test_what_was_made_for_another_index_is_made_again_and_not_written(of: dict[str, str]) -> None:
    pages = FakePages()
    await apply(pages, *parts_of(change(1), {"content": ["Old."]}))
    for part in misfit(2, **of):  # of a redriven one nobody knows whether the others came before
        assert await apply(pages, part) == IndexOutcome(remake=part.change)
    assert pages.index.texts(KEY) == {("content", 0): (1, "Old.")}


async def test_what_the_rebuild_has_put_in_already_is_not_made_again_but_the_editor_is_told() -> None:
    pages = FakePages()
    shown = parts_of(change(2, offset=3), {"content": ["a", "b", "c"]})
    await apply(pages, *shown, at=5)
    outcome = await apply(pages, *misfit(2, model=OTHER_MODEL, notes=("rules.pdf is not searchable",)))
    assert (receipt(outcome).state, receipt(outcome).chunks.total) == ("searchable", 3)
    assert receipt(outcome).notes == ("rules.pdf is not searchable",)
    assert outcome.again is None


async def test_a_later_copy_of_what_is_shown_is_made_again_too() -> None:
    """The log holds that one, and the products of the earlier one point to a place where nothing is."""
    pages = FakePages()
    await apply(pages, *parts_of(change(2, offset=1), {"content": ["a", "b"]}), at=5)
    assert await apply(pages, *misfit(2, model=OTHER_MODEL), at=6) == IndexOutcome(remake=change(2, offset=3))


async def test_what_only_the_rebuild_knows_of_is_sent_again() -> None:
    """Older changes may stand behind it in the topics: the index that knew of them is not live any more."""
    pages = FakePages()
    await apply(pages, *parts_of(change(2, offset=3)), at=0)
    outcome = await apply(pages, *misfit(2, model=OTHER_MODEL), at=5)
    assert (receipt(outcome).state, outcome.again) == ("searchable", change(2, offset=3))


async def test_an_old_change_made_for_another_index_is_superseded_like_any_other() -> None:
    pages = FakePages()
    await apply(pages, *parts_of(change(5, offset=9)))
    assert receipt(await apply(pages, *misfit(2, model=OTHER_MODEL))).state == "superseded"


async def test_a_delete_fits_every_index() -> None:
    pages = FakePages()
    await apply(pages, *parts_of(change(1)))
    assert receipt(await apply(pages, *parts_of(change(2, "delete"), model=OTHER_MODEL))).state == "deleted"
    assert pages.index.texts(KEY) == {}


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
    history: list[tuple[int, Op, int, int]], data: st.DataObject
) -> None:
    """At-least-once delivery: each change arrives at least once, in any order, its own parts in order."""
    arrivals = data.draw(st.permutations(history + data.draw(st.lists(st.sampled_from(history), max_size=4))))
    pages = FakePages()
    for revision, op, length, per_part in arrivals:
        texts: dict[FieldName, list[str]] = {"content": [f"{revision}.{i}" for i in range(length)]}
        await apply(pages, *parts_of(change(revision, op), texts, per_part))
    revision, op, length, _ = max(history)
    expected = {} if op == "delete" else {("content", i): (revision, f"{revision}.{i}") for i in range(length)}
    assert pages.index.texts(KEY) == expected
    assert ((await head(pages)).change.revision, (await head(pages)).state) == (
        revision,
        "deleted" if op == "delete" else "live",
    )
