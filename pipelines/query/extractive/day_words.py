"""Day words: the names of days in a language, and how a text is searched for them.

They are from Unicode's CLDR (babel) and from `prompts/days.yaml`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from babel import Locale, UnknownLocaleError

from prompts.loader import sentences
from text.folding import normalized

LAST = -1  # of a month
# The lists of days.yaml that each language has.
LISTS = (
    "today", "tomorrow", "after-tomorrow", "open", "when", "daily", "weekend", "working", "except", "to", "closed",
    "from", "for-now", "holidays",
)  # fmt: skip
UNSPACED = frozenset({"zh", "ja", "th", "lo", "my", "km"})


@dataclass(frozen=True)
class DayWords:
    """The names of days in one language; folded."""

    weekdays: Mapping[str, int]
    short: Mapping[str, int]  # abbreviations, as written: "Mo", "Sat"
    small: Mapping[str, int]  # those that count in a question without their capital
    months: Mapping[str, int]
    ordinals: Mapping[str, int]
    feasts: Mapping[str, int] = field(default_factory=dict)
    listed: Mapping[str, frozenset[str]] = field(default_factory=dict)  # the lists of days.yaml
    spaced: bool = True

    def has(self, name: str, text: str) -> bool:
        """Whether a folded text has a word of the list."""
        return any_name(sorted(self.listed[name], key=len, reverse=True), self.spaced).search(text) is not None


def accentless(text: str) -> str:
    plain = normalized("NFKD", text)
    return unicodedata.normalize("NFC", re.sub("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f]", "", plain)).replace(
        "’", "'"
    )


def folded_text(text: str) -> str:
    return accentless(text).lower()  # no casefold: it would move the places of what comes after an ß


def words_or_english(lang: str) -> DayWords:
    words = day_words(lang.partition("-")[0]) or day_words("en")
    assert words is not None
    return words


@cache
def day_words(lang: str) -> DayWords | None:
    """The words of a language; None if days.yaml does not have it."""
    lists = sentences("days")
    if lang not in lists["today"]:
        return None
    try:
        locale = Locale.parse(lang)
    except (ValueError, UnknownLocaleError):
        return None
    weekdays: dict[str, int] = {}
    short: dict[str, int] = {}
    for width in ("wide", "abbreviated", "short"):
        for context in ("format", "stand-alone"):
            for n, name in locale.days[context][width].items():
                plain = accentless(name).rstrip(".")
                if width == "wide":
                    weekdays[plain.lower()] = n
                elif plain.lower() not in weekdays and len(plain) > 1 and lang not in ("ar", "he", "th"):
                    short[plain] = n
    for n, forms in enumerate(lists["weekdays"].get(lang, "").split(",")):
        for form in map(folded_text, forms.split()):
            # Names as short as abbreviations count as such: "sat" and "sun" are words too.
            if len(form) > 5 or lang in ("ar", "zh", "th", "pt"):
                weekdays[form] = n
            else:
                short[form.capitalize()] = n
    if lang in UNSPACED:
        weekdays |= {name: n for name, n in short.items() if len(name) > 1}
        short = {}
    months = {
        folded_text(name).rstrip("."): n
        for context in ("format", "stand-alone")
        for width in ("wide", "abbreviated")
        for n, name in locale.months[context][width].items()
        if len(name) > 2 or lang in UNSPACED
    }
    ordinals = {
        folded_text(form): n if n < len(named) else LAST
        for named in [lists["ordinal"].get(lang, "").split(",")]
        for n, forms in enumerate(named, 1)
        for form in forms.split()
    }
    feasts = {
        folded_text(form).strip(): n
        for n, forms in enumerate(lists["feasts"].get(lang, "").split(","))
        for form in forms.split("/")
        if form.strip(" -")
    }
    listed = {name: frozenset(folded_text(word).strip() for word in lists[name][lang].split(",")) for name in LISTS}
    small = {
        form: n for n, forms in enumerate(lists["abbreviations"].get(lang, "").split(",")) for form in forms.split()
    }
    return DayWords(weekdays, short, small, months, ordinals, feasts, listed, lang not in UNSPACED)


def any_name(names: Sequence[str], spaced: bool) -> re.Pattern[str]:
    return _any_of(tuple(names), spaced)


@cache
def _any_of(names: tuple[str, ...], spaced: bool) -> re.Pattern[str]:
    either = "|".join(map(re.escape, names))
    return re.compile(rf"(?<!\w)(?:{either})(?!\w)" if spaced else either)
