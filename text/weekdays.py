"""Whether a text names days of the week and nothing else ("Monday to Friday:"), so that its hours stand behind it.

Names come from Unicode's CLDR (babel), other forms and the words of a range from `prompts/days.yaml`.
"""

from __future__ import annotations

import re
from functools import cache

from babel import Locale, UnknownLocaleError

from prompts.loader import sentences

LONGEST = 80  # characters of a text that only names days
LONGEST_HOURS = 40
_BETWEEN = "and|und|et|y|e|i|en|ve|și|si|és|es|та|и|on|am|le|les|los|las|il|la|de|od|do|du|dal|ab|from|von|van|z"
_UNSPACED = frozenset({"zh", "ja", "th", "lo", "my", "km"})
_LONG_WORD = re.compile(r"[^\W\d_]{5}|[€$£%¥]")
_NUMBER = re.compile(r"\d+")


def only_days(text: str, lang: str) -> bool:
    """Whether the text names days and nothing else."""
    if len(text) > LONGEST:
        return False
    pattern = _pattern(lang.partition("-")[0].lower())
    folded = text.casefold()
    names = any(found["day"] for found in pattern.finditer(folded))
    return names and not any(ch.isalnum() for ch in pattern.sub("", folded))


def only_hours(text: str) -> bool:
    """Whether the text is a span of hours: "14.00-18.00 Uhr"."""
    return len(text) <= LONGEST_HOURS and len(_NUMBER.findall(text)) >= 2 and not _LONG_WORD.search(text)


@cache
def _pattern(lang: str) -> re.Pattern[str]:
    try:
        days = Locale.parse(lang).days
    except (UnknownLocaleError, ValueError):
        return _pattern("en")
    lists = sentences("days")
    forms = lists["weekdays"].get(lang, "").replace(",", " ").split()
    phrases = [each.strip() for key in ("daily", "weekend", "working") for each in lists[key].get(lang, "").split(",")]
    cldr = (days[use].get(width, {}) for use in ("format", "stand-alone") for width in ("wide", "abbreviated", "short"))
    named = {name.rstrip(".").casefold() for each in cldr for name in each.values()} | {*forms, *phrases}
    links = {*_BETWEEN.split("|"), *(each.strip() for each in lists["to"].get(lang, "").split(","))}
    day, link = ("|".join(map(re.escape, sorted(filter(None, some), key=len, reverse=True))) for some in (named, links))
    words = f"(?P<day>{day})|{link}"
    return re.compile(words if lang in _UNSPACED else rf"(?<!\w)(?:{words})(?!\w)")
