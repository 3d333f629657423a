"""Facts that a page tells machines and does not show: they go behind its text, where they can be found and quoted.

structured data ─▶ questions with answers, opening hours, prices, events ─▶ not on the page, not against it ─▶ Markdown

The page that visitors see is right. A fact is left out where the page shows the same, or other figures for it:
structured data are invisible, and so they are often older than the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import groupby, pairwise
from urllib.parse import urlsplit

from babel import Locale, UnknownLocaleError
from babel.numbers import format_currency

from pipelines.ingest.documents.event_dates import is_on, written
from prompts.loader import sentences
from schemas.page import DayHours, OpeningHours, PageEvent, PageMetadata, PageProduct, PageQuestion
from text.figures import Figure, figures
from text.markdown import escaped, plain
from text.tables import lines_of
from text.units import ASKING, units
from text.words import words

LONGEST = 100_000  # characters of a page; a longer one is taken to show what it has to say
SHOWN = 0.8  # least share of an answer's runs of words on the page
RUN = 3  # words
COMPARED = 100  # different figures of a family, on the page or in an answer
NEAR = 100  # characters between a weekday and its hours, at most
_MISTAKEN = ("price", "time")  # families of figures that an answer must not have otherwise than the page


@dataclass(frozen=True)
class PageFacts:
    """What structured data add to a page."""

    markdown: str = ""
    names: tuple[str, ...] = ()  # what it is, for an editor

    @property
    def note(self) -> str | None:
        return f"searchable from the page's structured data, not shown on it: {', '.join(self.names)}" if self else None

    def __bool__(self) -> bool:
        return bool(self.markdown)


@dataclass(frozen=True)
class VisiblePage:
    """The page as its visitors see it."""

    markdown: str
    lang: str
    url: str = ""
    title: str = ""


def facts_of(data: PageMetadata | None, page: VisiblePage) -> PageFacts:
    """What of the structured data the page does not show and does not contradict."""
    kinds = (data.faq, data.opening, data.products, data.events) if data else ()
    if data is None or not any(kinds) or len(page.markdown) > LONGEST:
        return PageFacts()
    seen = figures(page.markdown, (page.lang,))
    hours = [] if _shows_hours(seen) else [one for one in data.opening if one.hours and _is_about(one, page)]
    parts = [
        (f"answers ({len(asked)})", [f"## {escaped(one.question)}\n\n{one.answer}" for one in asked])
        for asked in [_unanswered(data.faq, page, seen)]
        if asked
    ]
    parts += [("opening hours", [_hours(one, page.lang) for one in hours])] if hours else []
    table = _prices(data.products, page, seen)
    parts += [("prices", [table])] if table else []
    table = _events(data.events, page, seen)
    parts += [("events", [table])] if table else []
    return PageFacts("\n\n".join(text for _, texts in parts for text in texts), tuple(name for name, _ in parts))


def _unanswered(faq: Sequence[PageQuestion], page: VisiblePage, seen: Sequence[Figure]) -> list[PageQuestion]:
    """Questions that the page neither answers nor has answers with other prices or times to."""
    if not faq:
        return []
    there = set(_runs(plain(page.markdown)))
    asked = _answered(page)
    shown = _different(seen)
    return [
        one
        for one in faq
        if _key(one.question) not in asked
        and not _is_there(one.answer, there)
        and not _contradicts(_different(figures(one.answer, (page.lang,))), shown)
    ]


def _answered(page: VisiblePage) -> frozenset[str]:
    """The questions with something below them, or behind them in the same unit."""
    found: set[str] = set()
    for unit in units(page.markdown, page.lang):
        asked = max(unit.text.find(mark) for mark in ASKING) + 1
        found.update(map(_key, (*unit.headings[-1:], plain(unit.header), plain(unit.intro))))
        found.update([_key(plain(unit.text[:asked]))] if unit.text[asked:].strip(" *_\n") else ())
    return frozenset(found - {""})


def _key(text: str) -> str:
    return " ".join(words(text))


def _runs(text: str) -> Iterator[tuple[str, ...]]:
    found = words(text)
    return zip(*(found[n:] for n in range(min(RUN, len(found) or 1))), strict=False)


def _is_there(answer: str, there: set[tuple[str, ...]]) -> bool:
    runs = list(_runs(plain(answer)))
    return sum(run in there for run in runs) >= SHOWN * len(runs)


def _different(found: Iterable[Figure]) -> dict[str, list[Figure]]:
    """The figures by family, each value once."""
    values = {(one.family, one.numbers, one.times, one.unit): one for one in found if one.family in _MISTAKEN}
    return {family: [one for one in values.values() if one.family == family] for family in _MISTAKEN}


def _contradicts(said: Mapping[str, Sequence[Figure]], seen: Mapping[str, Sequence[Figure]]) -> bool:
    """Whether the page shows figures of the same family, and not this one; also where there are too many to compare."""
    for family in _MISTAKEN:
        mine, theirs = said[family], seen[family]
        if theirs and mine and (len(mine) > COMPARED or len(theirs) > COMPARED):
            return True
        if theirs and not all(any(one.bears(figure) for one in theirs) for figure in mine):
            return True
    return False


def _shows_hours(seen: Sequence[Figure]) -> bool:
    """Whether the page shows weekdays with times, or a span of times."""
    timed = [figure for figure in seen if figure.kind in ("weekday", "time")]
    return any(
        second.start - first.end <= NEAR and "time" in (first.kind, second.kind) for first, second in pairwise(timed)
    )


def _is_about(place: OpeningHours, page: VisiblePage) -> bool:
    """Whether the page is the place's own: many sites have the data of their business on every page."""
    here, there = _location(page.url), _location(place.url)
    own = here is not None and there in (here, ("", here[1]))
    name = words(place.name)
    return own or (bool(name) and set(name) <= set(words(page.title)))


def _location(url: str) -> tuple[str, str] | None:
    """Host and path; None: there are none."""
    with suppress(ValueError):
        parts = urlsplit(url)
        return (parts.netloc, parts.path.rstrip("/")) if url else None
    return None


def _hours(place: OpeningHours, lang: str) -> str:
    say, days = _phrases(lang), _locale(lang).days["stand-alone"]["wide"]
    heading = ": ".join(filter(None, (say["opening-hours"], escaped(place.name))))
    rows = [
        [str(days[day]), ", ".join(filter(None, map(_span, hours))) or say["closed"]]
        for day, hours in groupby(sorted(place.hours, key=lambda one: one.day), key=lambda one: one.day)
    ]
    return f"## {heading}\n\n{lines_of([say['day'], say['opening-hours']], rows)}"


def _span(hours: DayHours) -> str:
    return f"{hours.opens}–{hours.closes}" if hours.opens and hours.closes else ""


def _prices(products: Sequence[PageProduct], page: VisiblePage, seen: Iterable[Figure]) -> str:
    """A table of what the page does not show of its products; empty if it shows it."""
    say, visible = _phrases(page.lang), page.markdown.casefold()
    priced = any(figure.family == "price" for figure in seen)
    # A list changes too often: what is on its own page is newer.
    stock = len(products) == 1 and not any(
        phrase in visible for state in ("in-stock", "out-of-stock", "pre-order") for phrase in _forms(state, page.lang)
    )
    rows = []
    for one in products:
        price = "" if priced or one.price is None or _has(page, one) else _amount(one, page.lang)
        state = say[one.availability].partition(",")[0] if stock and one.availability else ""
        if (price or state) and any(map(str.isalnum, one.name)):
            rows.append((_cell(one.name), _cell(price), _cell(state)))
    return _table([say[name] for name in ("product", "price", "availability")], rows)


def _events(events: Sequence[PageEvent], page: VisiblePage, seen: Sequence[Figure]) -> str:
    """A table of when and where the events are that the page names; empty if it shows it.

    A page that shows a date shows when. If it is the event's own, the place can be relied on as well.
    """
    if not events:
        return ""
    say, shown = _phrases(page.lang), f" {_key(f'{page.title} {plain(page.markdown)}')} "
    dates = [figure for figure in seen if figure.kind in ("date", "weekday")]
    is_timed = any(figure.kind == "time" for figure in seen)
    rows = []
    for one in dict.fromkeys(events):
        if f" {_key(one.name)} " not in shown or (dates and not is_on(dates, one)):
            continue
        when = "" if dates else written(one, _locale(page.lang), with_time=not is_timed)
        place = "" if f" {_key(one.place.partition(',')[0])} " in shown else one.place
        if when or place:
            rows.append(tuple(map(_cell, (one.name, when, place))))
    return _table([say[name] for name in ("event", "date", "place")], rows)


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Below a heading, the columns that have something; empty without rows."""
    kept = [n for n in range(len(names)) if any(row[n] for row in rows)]
    if not rows:
        return ""
    return f"## {names[kept[1]]}\n\n{lines_of([names[n] for n in kept], [[row[n] for n in kept] for row in rows])}"


def _has(page: VisiblePage, product: PageProduct) -> bool:
    """Whether the page has the number, perhaps without a currency."""
    whole, _, cents = f"{product.price:.2f}".partition(".")
    return any(f"{whole}{mark}{cents}" in page.markdown for mark in ".,")


def _amount(product: PageProduct, lang: str) -> str:
    said = format_currency(product.price or 0, product.currency, locale=_locale(lang))
    return said.replace("\u00a0", " ").replace("\u202f", " ")


def _cell(text: str) -> str:
    return escaped(text).replace("|", r"\|")


def _forms(state: str, lang: str) -> list[str]:
    return [phrase.strip().casefold() for phrase in _phrases(lang)[state].split(",")]


@cache
def _phrases(lang: str) -> dict[str, str]:
    primary = lang.partition("-")[0].lower()
    return {name: said.get(primary, said["en"]) for name, said in sentences("structured-data").items()}


@cache
def _locale(lang: str) -> Locale:
    """Of the language that phrases are in."""
    primary = lang.partition("-")[0].lower()
    try:
        return Locale.parse(primary if primary in sentences("structured-data")["day"] else "en")
    except (UnknownLocaleError, ValueError):
        return Locale("en")
