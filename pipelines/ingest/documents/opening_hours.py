"""Reads the regular opening hours of places from their nodes (text.json_ld).

Hours with a first or last day of validity are of a season or of a feast. They are left out, since shown without those
days they would be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from schemas.page import DayHours, OpeningHours
from text.json_ld import Node
from text.schema_org import VALUES, first, line, nested, term

PLACES = 10
HOURS = 50  # of a place
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TIME = re.compile(r"(?!24:(?!00))([01]?\d|2[0-4]):([0-5]\d)(?::[0-5]\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?")
_SPAN = re.compile(r"([A-Za-z]{2,9})(?:-([A-Za-z]{2,9}))?")
_DASH = re.compile("[-–]")
_WHOLE_DAY = ("00:00", "23:59")


def opening_of(nodes: Iterable[Node]) -> tuple[OpeningHours, ...]:
    """The regular hours of the places among the nodes, the outermost alone. A place with an unclear entry has none."""
    return tuple(islice(filter(None, map(_opening, nodes)), PLACES))


def _opening(node: Node) -> OpeningHours | None:
    specified = list(nested(node, "openingHoursSpecification"))
    hours = list(islice(_specified(specified) if specified else _written(node.get("openingHours")), HOURS + 1))
    if not hours or len(hours) > HOURS or None in hours:
        return None
    url = first(node, "url") or first(node, "@id")
    known = dict.fromkeys(one for one in hours if one is not None)
    ordered = sorted(known, key=lambda one: (one.day, one.opens or "", one.closes or ""))
    return OpeningHours(
        name=line(first(node, "name")), url=line(url) if isinstance(url, str) else "", hours=tuple(ordered)
    )


def _specified(specified: Iterable[Node]) -> Iterator[DayHours | None]:
    for one in specified:
        if one.get("validFrom") or one.get("validThrough"):
            continue
        days = one.get("dayOfWeek")
        said = (days if isinstance(days, list) else [days])[:VALUES]
        numbers = [_day(name) for name in map(term, said) if name != "PublicHolidays"]
        opens, closes = _time(first(one, "opens")), _time(first(one, "closes"))
        times = _times(opens, closes) if "opens" in one or "closes" in one else None
        for number in numbers:
            yield None if number is None or times is None else DayHours(day=number, opens=times[0], closes=times[1])


def _written(said: Any) -> Iterator[DayHours | None]:
    """Of the form "Mo-Fr 09:00-17:00"."""
    for one in (said if isinstance(said, list) else [said])[:HOURS] if said is not None else ():
        written = _joined(one).replace(",", " ") if isinstance(one, str) and len(one) < 200 else ""
        *days, span = written.split() or [""]
        opens, _, closes = span.partition("-")
        times = _times(_time(opens), _time(closes))
        for part in map(_SPAN.fullmatch, days or [""]):
            begin, end = (_day(part[1]), _day(part[2] or part[1])) if part else (None, None)
            if begin is None or end is None or times is None:
                yield None
                return
            for number in range((end - begin) % 7 + 1):
                yield DayHours(day=(begin + number) % 7, opens=times[0], closes=times[1])


def _joined(written: str) -> str:
    """Without blanks around its dashes."""
    return "-".join(map(str.strip, _DASH.split(written)))


def _day(name: str) -> int | None:
    folded = name.lower()
    return next((n for n, day in enumerate(_DAYS) if len(folded) >= 2 and day.startswith(folded)), None)


def _time(said: Any) -> str | None:
    match = _TIME.fullmatch(said.strip()) if isinstance(said, str) and len(said) < 40 else None
    return f"{int(match[1]):02}:{match[2]}" if match else None


def _times(opens: str | None, closes: str | None) -> tuple[str | None, str | None] | None:
    """Both, or neither on a day that is closed; None: unclear."""
    if opens is None or closes is None:
        return None
    if opens == closes:
        return (None, None) if opens == "00:00" else None
    return ("00:00", "24:00") if (opens, closes) == _WHOLE_DAY else (opens, closes)
