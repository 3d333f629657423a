"""Which of the names that there are somebody meant who has mistyped one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

LIKE = 0.61  # of difflib's ratio: three letters of five, and not yet any word that has half of its letters in common
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


def _parts(name: str) -> list[str]:
    return name.replace("-", "_").replace("/", "_").split("_")
