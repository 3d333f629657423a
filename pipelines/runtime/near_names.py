"""Names in messages: which there are, and which of them somebody meant who has mistyped one."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from heapq import nsmallest
from itertools import islice

LIKE = 0.61  # of difflib's ratio: three letters of five, and not yet any word that has half of its letters in common
NAMED = 20  # in a message at most
COMPARED = 5_000  # names at most: each costs some 10 microseconds


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that is most like `name`, else the first that has it as a part; capitals do not count."""
    by_lower = {each.lower(): each for each in islice(names, COMPARED)}
    wanted = name.strip().lower()
    close = get_close_matches(wanted, by_lower, n=1, cutoff=LIKE) or [one for one in by_lower if wanted in _parts(one)]
    return by_lower[close[0]] if close else None


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The end of a message about an unknown name: empty where none is like it."""
    found = nearest(name, names)
    return f"; did you mean {found}?" if found else ""


def some_of(names: Collection[str]) -> str:
    """Names for a message: all of a few."""
    named = ", ".join(nsmallest(NAMED, names))
    return named if len(names) <= NAMED else f"{named} and {len(names) - NAMED:,} more"


def _parts(name: str) -> list[str]:
    return name.replace("-", "_").replace("/", "_").split("_")
