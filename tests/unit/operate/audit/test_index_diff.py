"""What differs between a log and an index: a perfect index has no drift, any single harm is found and named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.operate.audit.index_diff import ChunkDocument, HeadDocument, IndexDiff, WrongDocument
from schemas.keys import chunk_id, head_id
from schemas.page import PageChange
from tests.index_diffs import World, changed, id_of, key_of, record


@pytest.fixture
def compare() -> Iterator[Callable[[World], IndexDiff]]:
    """Compares, and closes in the end."""
    opened: list[IndexDiff] = []

    def compared(world: World) -> IndexDiff:
        opened.append(world.compared())
        return opened[-1]

    yield compared
    for drift in opened:
        drift.close()


Harm = Callable[[World, Random], str]  # returns the kind that must be found


def live(world: World, random: Random) -> HeadDocument:
    return random.choice([head for head in world.heads.values() if not head.deleted])


def gone(world: World, random: Random) -> HeadDocument:
    return random.choice([head for head in world.heads.values() if head.deleted])


def a_chunk(world: World, random: Random) -> ChunkDocument:
    return random.choice(list(world.chunks.values()))


def a_page_vanishes(world: World, random: Random) -> str:
    head = live(world, random)
    del world.heads[head.id]
    world.chunks = {id: chunk for id, chunk in world.chunks.items() if chunk.page_key != head.page_key}
    return "missing"


def a_head_vanishes(world: World, random: Random) -> str:
    del world.heads[live(world, random).id]
    return "missing"


def the_guard_of_a_deleted_page_vanishes(world: World, random: Random) -> str:
    del world.heads[gone(world, random).id]
    return "missing"


def a_chunk_vanishes(world: World, random: Random) -> str:
    del world.chunks[a_chunk(world, random).id]
    return "missing"


def a_save_after_a_delete_is_not_shown(world: World, random: Random) -> str:
    page = gone(world, random)
    change = changed(id_of(page.page_key), page.revision + 1)
    world.log.append(record(len(world.log), change))
    return "missing"


def a_delete_is_not_shown(world: World, random: Random) -> str:
    page = live(world, random)
    change = changed(id_of(page.page_key), page.revision + random.choice([0, 1]), deleted=True)
    world.log.append(record(len(world.log), change))
    return "extra"


def a_page_comes_from_nowhere(world: World, random: Random) -> str:
    at = len(world.log)
    world.show(changed("nowhere", at, deleted=random.random() < 0.3))
    return "extra"


def chunks_come_from_nowhere(world: World, random: Random) -> str:
    key = key_of("nowhere")
    world.put(ChunkDocument(chunk_id(key, "title", 0), 1, key, 1, "title", 0, "m", "c"))
    return "extra"


def something_else_is_in_the_index(world: World, random: Random) -> str:
    world.put(ChunkDocument("a note", 1, "a note", 1, "", -1, "", ""))
    return "extra"


def a_save_is_not_shown(world: World, random: Random) -> str:
    page = live(world, random)
    world.log.append(record(len(world.log), changed(id_of(page.page_key), page.revision + 1)))
    return "stale"


def the_index_is_ahead(world: World, random: Random) -> str:
    page = live(world, random)
    world.show(changed(id_of(page.page_key), page.revision + 1, deleted=random.random() < 0.3))
    return "ahead"


def the_index_has_a_delete_at_the_same_revision(world: World, random: Random) -> str:
    page = live(world, random)
    world.show(changed(id_of(page.page_key), page.revision, deleted=True))
    return "ahead"


def a_chunk_is_ahead(world: World, random: Random) -> str:
    chunk = a_chunk(world, random)
    world.put(chunk._replace(revision=chunk.revision + 1, version=chunk.version + 1))
    return "ahead"


def a_chunk_stays_behind(world: World, random: Random) -> str:
    chunk = a_chunk(world, random)
    world.put(chunk._replace(revision=chunk.revision - 1))
    return "mixed"


def a_chunk_is_left_over(world: World, random: Random) -> str:
    head = live(world, random)
    name = random.choice(["content", "keywords"])
    ord = head.promised.get(name, 0) + random.choice([0, 1, 70])
    world.put(ChunkDocument(chunk_id(head.page_key, name, ord), 1, head.page_key, head.revision, name, ord, "m", "c"))
    return "orphan"


def a_chunk_of_a_deleted_page_is_left_over(world: World, random: Random) -> str:
    head = gone(world, random)
    world.put(ChunkDocument(chunk_id(head.page_key, "title", 0), 1, head.page_key, 0, "title", 0, "m", "c"))
    return "orphan"


def a_chunk_is_there_twice(world: World, random: Random) -> str:
    world.put(a_chunk(world, random)._replace(id="copy"))
    return "orphan"


def a_head_is_there_twice(world: World, random: Random) -> str:
    world.heads["copy"] = live(world, random)._replace(id="copy")
    return "orphan"


def a_vector_is_of_another_model(world: World, random: Random) -> str:
    world.put(a_chunk(world, random)._replace(model="another"))
    return "fingerprint"


def a_chunk_was_cut_otherwise(world: World, random: Random) -> str:
    world.put(a_chunk(world, random)._replace(chunker="another"))
    return "fingerprint"


def a_head_says_another_model(world: World, random: Random) -> str:
    head = live(world, random)
    world.heads[head.id] = head._replace(model="another")
    return "fingerprint"


def a_loser_stands_on_top(world: World, random: Random) -> str:
    change = PageChange.decode(random.choice(world.log).value)
    world.log.append(record(len(world.log), changed(change.page_id, 0)))
    return "log"


def something_unreadable_stands_on_top(world: World, random: Random) -> str:
    change = PageChange.decode(random.choice(world.log).value)
    bytes_ = random.choice([None, b"", b"{}", b"\xff", b"[1"])
    world.log.append(replace(record(len(world.log), change), value=bytes_))
    return "log"


HARMS: list[Harm] = [
    a_page_vanishes,
    a_head_vanishes,
    the_guard_of_a_deleted_page_vanishes,
    a_chunk_vanishes,
    a_save_after_a_delete_is_not_shown,
    a_delete_is_not_shown,
    a_page_comes_from_nowhere,
    chunks_come_from_nowhere,
    something_else_is_in_the_index,
    a_save_is_not_shown,
    the_index_is_ahead,
    the_index_has_a_delete_at_the_same_revision,
    a_chunk_is_ahead,
    a_chunk_stays_behind,
    a_chunk_is_left_over,
    a_chunk_of_a_deleted_page_is_left_over,
    a_chunk_is_there_twice,
    a_head_is_there_twice,
    a_vector_is_of_another_model,
    a_chunk_was_cut_otherwise,
    a_head_says_another_model,
    a_loser_stands_on_top,
    something_unreadable_stands_on_top,
]

# A page has more than one change at a revision only if one of them is a delete, or they are the same.
changes = st.builds(
    lambda page, revision, deleted: changed(page, revision, deleted=deleted),
    st.sampled_from(["a", "b", "c/d", "é" * 100]),
    st.integers(1, 6),
    st.booleans(),
)
ALWAYS = (changed("shown", 3), changed("deleted", 4, deleted=True))


@given(st.lists(changes, max_size=20))
def test_what_was_applied_perfectly_is_clean(history: list[PageChange]) -> None:
    world = World.of(*history)
    drift = world.compared()
    try:
        assert drift.findings(10) == []
        last = {change.page_key: change.op for change in sorted(history, key=lambda c: (c.revision, c.op == "delete"))}
        assert drift.pages() == (len(last), list(last.values()).count("delete"))
        assert drift.chunks() == len(world.chunks)
    finally:
        drift.close()


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
@given(history=st.lists(changes, max_size=20), random=st.randoms(use_true_random=False))
@settings(max_examples=25)
def test_any_single_harm_is_found(harm: Harm, history: list[PageChange], random: Random) -> None:
    world = World.of(*history, *ALWAYS)
    kind = harm(world, random)
    drift = world.compared()
    try:
        assert kind in drift.counts()
        assert drift.close_agreeing() == len({found.page_key for found in drift.findings(100)}) == 1
    finally:
        drift.close()


Compare = Callable[[World], IndexDiff]


def test_other_sites_and_records_without_a_key_are_passed_over(compare: Compare) -> None:
    world = World.of(changed("a", 1))
    other = changed("a", 1).model_copy(update={"site": "town-hall"})
    world.log += [record(1, other), replace(world.log[0], key=None, offset=2)]
    drift = compare(world)
    assert (drift.counts(), drift.pages(), drift.unreadable) == ({}, (1, 0), 0)


def test_a_change_under_another_pages_key_is_unreadable(compare: Compare) -> None:
    world = World.of(changed("a", 1))
    world.log.append(replace(record(1, changed("b", 7)), key=key_of("a").encode()))
    drift = compare(world)
    assert drift.unreadable == 1
    assert drift.counts() == {"log": 1}


def test_what_stands_in_another_partition_covers_nothing(compare: Compare) -> None:
    world = World.of(changed("a", 5))
    world.log.insert(0, record(90, changed("a", 4), partition=1))
    world.log.append(record(91, changed("a", 3), partition=2))
    assert compare(world).counts() == {}


@pytest.mark.parametrize("reversed_", [False, True])
def test_a_winner_that_is_covered_in_one_partition_stays_in_another(compare: Compare, reversed_: bool) -> None:
    """It was sent again after partitions were added; compaction keeps that copy. Partitions are read in any order."""
    world = World.of(changed("a", 4))
    old = [record(90, changed("a", 4), partition=1), record(91, changed("a", 3), partition=1)]
    world.log = [record(5, changed("a", 4), partition=2), *old]
    if reversed_:
        world.log = [*old, world.log[0]]
    assert compare(world).counts() == {}
    world.log.append(record(6, changed("a", 2), partition=2))
    assert compare(world).counts() == {"log": 1}


def test_newer_than_the_log_was_but_in_it_by_now_is_fine(compare: Compare) -> None:
    """A save while the audit runs."""
    world = World.of(changed("a", 5))
    world.show(changed("a", 6))
    drift = compare(world)
    assert drift.counts() == {"ahead": 1}
    drift.add_records([record(1, changed("a", 6))])
    drift.judge()
    assert drift.close_agreeing() == 0


def test_what_came_into_the_log_meanwhile_need_not_be_shown_yet(compare: Compare) -> None:
    world = World.of(changed("a", 5))
    world.put(next(iter(world.chunks.values()))._replace(revision=4))
    drift = compare(world)
    drift.add_records([record(1, changed("a", 6, deleted=True)), record(2, changed("new", 1))])
    drift.forget_documents([key_of("a")])
    world.show(changed("a", 5))
    drift.add_documents(world.heads.values(), world.chunks.values())
    drift.judge()
    assert drift.close_agreeing() == 0


def test_a_failed_change_is_no_drift_but_what_is_broken_beside_it_is(compare: Compare) -> None:
    world = World.of(changed("a", 5), changed("b", 5), changed("c", 5, deleted=True))
    world.log += [
        record(10, changed("a", 6)),
        record(11, changed("b", 6, deleted=True)),
        record(12, changed("c", 6)),
        record(13, changed("d", 1)),
    ]
    drift = compare(world)
    assert drift.counts() == {"missing": 2, "stale": 1, "extra": 1}
    assert drift.behind("", 10) == [(key_of("a"), 6), (key_of("b"), 6), (key_of("c"), 6), (key_of("d"), 1)]
    drift.mark_failed(map(key_of, "abcd"))
    assert drift.close_agreeing() == 0
    assert (drift.failed(), drift.counts()) == (4, {})

    world.put(ChunkDocument(chunk_id(key_of("a"), "title", 0), 4, key_of("a"), 4, "title", 0, "m", "c"))
    drift = compare(world)
    drift.mark_failed(map(key_of, "abcd"))
    assert drift.close_agreeing() == 1
    assert (drift.failed(), drift.counts()) == (4, {"mixed": 1})


def test_the_changes_to_send_come_in_the_logs_order_and_doubtful_ones_by_force(compare: Compare) -> None:
    world = World.of(changed("b", 5), changed("a", 5), changed("c", 5), changed("d", 5))
    world.show(changed("c", 9))
    del world.heads[head_id(key_of("a"))]
    world.chunks.pop(chunk_id(key_of("b"), "title", 0))
    drift = compare(world)
    b, a = drift.to_send((-1, -1), 10, force=False)
    assert (b.page_key, b.offset, a.page_key, a.offset, a.beaten) == (key_of("b"), 0, key_of("a"), 1, None)
    assert drift.to_send((0, 0), 10, force=False) == [a]
    assert drift.to_send((-1, -1), 1, force=False) == [b]
    assert drift.to_send((0, 1), 10, force=True) == [(key_of("c"), 0, 2, 5, 9, None)]


def test_only_what_belongs_to_nothing_is_deleted(compare: Compare) -> None:
    world = World.of(changed("a", 3), changed("b", 3), changed("c", 3))
    key = key_of("a")
    world.put(ChunkDocument(chunk_id(key, "content", 7), 2, key, 2, "content", 7, "m", "c"))
    world.put(ChunkDocument("copy", 8, key, 2, "title", 0, "m", "c"))
    world.put(ChunkDocument(chunk_id(key_of("b"), "content", 7), 2, key_of("b"), 2, "content", 7, "m", "c"))
    del world.heads[head_id(key_of("b"))]  # sent again first: what it shows goes on answering
    world.show(changed("lost", 4))
    drift = compare(world)
    strays = [(key, [WrongDocument(chunk_id(key, "content", 7), 2), WrongDocument("copy", 8)])]
    assert [(page, sorted(found)) for page, found in drift.to_clear("", 10, force=False)] == [
        (page, sorted(found)) for page, found in strays
    ]
    assert drift.would_vanish() == (1, 3)
    (_, lost) = drift.to_clear("", 10, force=True)
    assert lost[0] == key_of("lost")
    assert [one.id for one in lost[1]] == [
        *(chunk_id(key_of("lost"), *at) for at in (("content", 0), ("content", 1), ("title", 0))),
        head_id(key_of("lost")),
    ]


def test_a_page_is_looked_at_again_from_nothing(compare: Compare) -> None:
    world = World.of(changed("a", 3), changed("b", 3))
    world.put(ChunkDocument(chunk_id(key_of("a"), "content", 7), 2, key_of("a"), 2, "content", 7, "m", "c"))
    drift = compare(world)
    assert drift.open_pages("", 10) == [key_of("a")]
    drift.forget_documents([key_of("a")])
    drift.judge()
    assert drift.counts() == {"missing": 1}
    fine: Any = World.of(changed("a", 3))
    drift.add_documents(fine.heads.values(), fine.chunks.values())
    drift.judge()
    assert (drift.close_agreeing(), drift.counts()) == (0, {})
