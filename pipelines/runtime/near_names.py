"""Names in messages: the known ones, and the one most like a mistyped one."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from heapq import nsmallest
from itertools import islice

LIKE = 0.61  # of difflib's ratio: three letters of five match, half of the letters do not
NAMED = 20  # in a message at most
COMPARED = 5_000  # names at most: each costs some 10 microseconds


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name most like `name`, else the first that contains it; case is ignored."""
    by_lower = {each.lower(): each for each in islice(names, COMPARED)}
    wanted = name.strip().lower()
    close = get_close_matches(wanted, by_lower, n=1, cutoff=LIKE) or [one for one in by_lower if wanted in _parts(one)]
    return by_lower[close[0]] if close else None


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The end of a message about an unknown name; empty if no name is like it."""
    found = nearest(name, names)
    return f"; did you mean {found}?" if found else ""


def some_of(names: Collection[str]) -> str:
    """The names for a message; of many only the first, and how many more there are."""
    named = ", ".join(nsmallest(NAMED, names))
    return named if len(names) <= NAMED else f"{named} and {len(names) - NAMED:,} more"


def _parts(name: str) -> list[str]:
    return name.replace("-", "_").replace("/", "_").split("_")
