"""What was noted of generations, corrected by the alias."""

from __future__ import annotations

import pytest

from pipelines.operate.rebuild.generations import History, unnoted
from pipelines.runtime.indexes import IndexInfo
from schemas.rebuild import Rebuild, RebuildState


def info(generation: int) -> IndexInfo:
    return IndexInfo(f"pagewire-town-{generation:06d}", "town", "fake", "fake-4", 4, "content-512-20")


def noted(generation: int, state: RebuildState) -> Rebuild:
    return unnoted(info(generation)).model_copy(update={"state": state})


def states(live: int | None, indexes: list[int], *notes: Rebuild) -> dict[int, RebuildState]:
    known = History(info(live) if live else None, {info(n).name: info(n) for n in indexes}, notes)
    return {rebuild.generation: rebuild.state for rebuild in known.rebuilds}


def test_the_alias_decides_which_one_is_live() -> None:
    assert states(1, [1]) == {1: "live"}
    assert states(1, [1, 2], noted(2, "building")) == {1: "live", 2: "building"}
    # Killed after the swap, and before.
    assert states(2, [1, 2], noted(1, "live"), noted(2, "verified")) == {1: "previous", 2: "live"}
    assert states(1, [1, 2], noted(1, "live"), noted(2, "verified")) == {1: "live", 2: "verified"}
    # A rollback, killed after the swap.
    assert states(1, [1, 2], noted(1, "previous"), noted(2, "live")) == {1: "live", 2: "previous"}
    # The live index was deleted.
    assert states(None, [], noted(3, "live")) == {3: "previous"}


@pytest.mark.parametrize(
    ("live", "notes", "half"),
    [
        (1, [], None),
        (1, [noted(1, "live"), noted(2, "verified")], None),
        (2, [noted(1, "live"), noted(2, "verified")], 2),
        (1, [noted(1, "previous"), noted(2, "live")], 1),
        (None, [noted(1, "live")], None),
    ],
)
def test_a_promotion_that_was_killed_after_its_swap_is_seen(
    live: int | None, notes: list[Rebuild], half: int | None
) -> None:
    found = History(info(live) if live else None, {}, notes).half_promoted
    assert (found and found.generation) == half
