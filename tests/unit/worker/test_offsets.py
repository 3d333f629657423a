"""The commit never passes an unfinished record, whatever the order of things."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from worker.offsets import OffsetBook


@given(st.data())
def test_the_commit_is_the_lowest_unfinished_offset(data: st.DataObject) -> None:
    book: OffsetBook[str] = OffsetBook()
    # With holes, as compaction and transaction markers leave them.
    offsets = sorted(data.draw(st.sets(st.integers(0, 200), min_size=1)))
    batches = data.draw(st.integers(1, 5))
    finished: set[int] = set()
    fetched: list[int] = []
    waiting = list(offsets)
    while waiting or set(fetched) - finished:
        open_work = sorted(set(fetched) - finished)
        if waiting and (not open_work or data.draw(st.booleans())):
            batch, waiting = waiting[:batches], waiting[batches:]
            book.fetched("p", batch)
            fetched += batch
        else:
            done = data.draw(st.sampled_from(open_work))
            book.finished("p", done)
            finished.add(done)
        commit = book.committable("p")
        unfinished = sorted(set(fetched) - finished)
        if commit is not None:
            assert commit <= min(unfinished, default=commit)
            assert all(offset in finished for offset in fetched if offset < commit)
        if not unfinished:
            assert commit == fetched[-1] + 1


def test_an_offset_is_committed_once() -> None:
    book: OffsetBook[str] = OffsetBook()
    book.fetched("p", [5, 6])
    book.finished("p", 5)
    assert book.committable("p") == 6
    assert book.committable("p") == 6  # asked twice, not confirmed yet: a failed commit is tried again
    book.committed("p", 6)
    assert book.committable("p") is None


def test_a_record_lost_on_its_way_blocks_the_commit() -> None:
    book: OffsetBook[str] = OffsetBook()
    book.fetched("p", [1, 2, 3])
    book.finished("p", 1)
    book.finished("p", 3)
    assert book.committable("p") == 2


def test_a_position_that_went_back_begins_again() -> None:
    book: OffsetBook[str] = OffsetBook()
    book.fetched("p", [1, 2, 3])
    book.finished("p", 2)
    book.fetched("p", [1, 2, 3])
    book.finished("p", 1)
    assert book.committable("p") == 2  # 2 was finished before the seek; it runs again and counts again


def test_late_news_of_a_lost_partition_are_ignored() -> None:
    book: OffsetBook[str] = OffsetBook()
    book.fetched("p", [1])
    book.forget(["p"])
    book.finished("p", 1)
    assert book.committable("p") is None
    assert book.partitions() == ()


@given(st.data())
def test_what_was_early_is_passed_over_and_awaited_all_the_same(data: st.DataObject) -> None:
    book: OffsetBook[str] = OffsetBook()
    offsets = sorted(data.draw(st.sets(st.integers(0, 60), min_size=1)))
    early = data.draw(st.sets(st.sampled_from(offsets)))
    done = data.draw(st.sets(st.sampled_from(sorted(early)))) if early else set()
    for offset in early:
        assert not book.is_early("p", offset)
        book.early("p", offset)
    for offset in done:  # before it is fetched
        book.finished("p", offset)
    assert book.committable("p") is None
    assert book.fetched("p", offsets) == early
    assert book.read_to("p") == offsets[-1] + 1
    open_work = [offset for offset in offsets if offset not in done]
    for offset in data.draw(st.permutations(open_work)):
        assert (book.committable("p") or 0) <= min(set(open_work) - done)
        book.finished("p", offset)
        done.add(offset)
    assert book.committable("p") == offsets[-1] + 1
    assert not book._early["p"] if early else not book._early


def test_what_was_early_and_is_compacted_away_is_not_awaited() -> None:
    book: OffsetBook[str] = OffsetBook()
    book.fetched("p", [1])
    for offset in (3, 4):
        book.early("p", offset)
    book.finished("p", 3)
    book.fetched("p", [2, 6])
    assert not book._early["p"]
    assert not book._finished["p"]
    for offset in (1, 2, 6):
        book.finished("p", offset)
    assert book.committable("p") == 7


def test_what_was_early_is_forgotten_with_the_partition() -> None:
    book: OffsetBook[str] = OffsetBook()
    book.fetched("p", [1])
    book.early("p", 2)
    book.forget(["p"])
    assert not book.is_early("p", 2)
    assert book.read_to("p") is None
