"""World: what countries and large cities are called, from Unicode's CLDR (babel) and the names of time zones."""

from __future__ import annotations

import zoneinfo
from functools import cache

from babel import Locale, UnknownLocaleError

from text.words import words

_AREAS = ("Africa/", "America/", "Antarctica/", "Asia/", "Atlantic/", "Australia/", "Europe/", "Indian/", "Pacific/")
_WORDS = frozenset(("Christmas", "Easter", "North", "South", "West"))  # are names of time zones, and words


@cache
def world(lang: str) -> frozenset[str]:
    """Of those with a name of one word, that word, folded, in a language; English ones where it is not known."""
    zones = (zone.rpartition("/")[2] for zone in zoneinfo.available_timezones() if zone.startswith(_AREAS))
    names = {zone for zone in zones if zone.isalpha()} - _WORDS
    try:
        locale = Locale.parse(lang.partition("-")[0])
    except (ValueError, UnknownLocaleError):
        locale = Locale.parse("en")
    names |= {name for tag, name in locale.territories.items() if len(tag) == 2 and tag.isalpha()}
    names |= {str(zone["city"]) for zone in locale.time_zones.values() if "city" in zone}
    return frozenset(said[0] for name in names if len(said := words(name)) == 1)
