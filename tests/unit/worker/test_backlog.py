"""Whose turn it is behind what was fetched: each site in turn, and little is kept in mind."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker import backlog as module
from worker.backlog import Backlog, OffsetRange


def noted(sites: str, start: int = 0) -> Backlog[str]:
    """A backlog whose records are of these sites, a letter each."""
    backlog: Backlog[str] = Backlog()
    for offset, site in enumerate(sites, start):
        backlog.note("p", offset, site)
    return backlog


def turns(backlog: Backlog[str], *served: str, room: int = 1, most: int = 100) -> list[OffsetRange]:
    taken: list[OffsetRange] = []
    while len(taken) < most and (stretch := backlog.turn("p", served, room)) is not None:
        backlog.took("p", stretch, range(stretch.start, stretch.end))
        taken.append(stretch)
    return taken


def test_sites_have_their_turns_one_after_the_other_and_whoever_is_served_has_none() -> None:
    taken = turns(noted("aaaabbbcc"), "a")
    assert [stretch.site for stretch in taken] == ["b", "c", "b", "c", "b"]
    assert [stretch.start for stretch in taken] == [4, 7, 5, 8, 6]


def test_room_is_divided_among_those_who_wait() -> None:
    backlog = noted("a" + "b" * 9 + "c" * 2)
    assert turns(backlog, "a", room=6, most=3) == [
        OffsetRange("b", 1, 4),
        OffsetRange("c", 10, 12),
        OffsetRange("b", 4, 10),
    ]
    assert backlog.turn("p", ("a",), 0) is None


def test_a_site_that_comes_later_is_next_and_does_not_catch_up_on_what_others_had() -> None:
    backlog = noted("a" + "b" * 9)
    turns(backlog, "a", most=5)
    for offset in range(10, 13):
        backlog.note("p", offset, "c")
    assert [stretch.site for stretch in turns(backlog, "a", most=4)] == ["c", "b", "c", "b"]


def test_so_many_of_a_site_are_early_until_they_are_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EARLY", 3)
    backlog = noted("a" + "b" * 9)
    assert [stretch.start for stretch in turns(backlog, "a")] == [1, 2, 3]
    backlog.scan_from("p", 3)  # two of them
    assert [stretch.start for stretch in turns(backlog, "a")] == [4, 5]


def test_what_was_fetched_meanwhile_does_not_wait_any_more() -> None:
    backlog = noted("aabbbcba")
    assert backlog.scan_from("p", 4) == 8
    assert turns(backlog, room=9) == [
        OffsetRange("b", 4, 5),
        OffsetRange("c", 5, 6),
        OffsetRange("a", 7, 8),
        OffsetRange("b", 6, 7),
    ]
    assert backlog.scan_from("p", 12) == 12


def test_an_import_takes_as_little_memory_as_a_page() -> None:
    backlog = noted("a" * 5_000 + "b")
    assert backlog._count == 2


def test_so_many_runs_are_kept_in_mind_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RUNS", 3)
    backlog = noted("ab")
    assert not backlog.full
    backlog.note("p", 2, "a")
    assert backlog.full
    backlog.scan_from("p", 1)
    assert not backlog.full


def test_a_site_is_so_far_early_and_no_farther(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EARLY", 2)
    monkeypatch.setattr(module, "EARLY_OF_ALL", 3)
    backlog = noted("a" + "b" * 4 + "c" * 4)
    assert Counter(stretch.site for stretch in turns(backlog, "a")) == {"b": 2, "c": 1}
    backlog.scan_from("p", 3)  # what was early is fetched
    assert [stretch.start for stretch in turns(backlog)] == [6, 3]  # of all no more than three


def test_what_is_forgotten_is_looked_at_again() -> None:
    backlog = noted("ab")
    backlog.forget("p")
    assert backlog.turn("p", (), 1) is None
    assert backlog.scan_from("p", 0) == 0
    assert backlog._count == 0


@given(st.text("abc", max_size=40), st.integers(1, 5), st.lists(st.integers(0, 40), max_size=5))
def test_nothing_is_taken_twice_and_nothing_of_another_site(sites: str, room: int, positions: list[int]) -> None:
    backlog = noted(sites)
    taken: list[int] = []
    for position in [*sorted(positions), 0]:
        for stretch in turns(backlog, "a", room=room, most=3):
            assert set(sites[stretch.start : stretch.end]) == {stretch.site}
            assert stretch.site != "a"
            taken += range(stretch.start, stretch.end)
        backlog.scan_from("p", position)
    taken += [offset for stretch in turns(backlog, "a", room=room) for offset in range(stretch.start, stretch.end)]
    assert len(set(taken)) == len(taken)
    waited = {offset for offset, site in enumerate(sites) if site != "a" and offset >= max(positions, default=0)}
    assert waited <= set(taken)
