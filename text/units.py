"""Splits a page into units, which can be quoted alone, with the context that a reader needs.

    ## Fees                                    unit                       above      intro
    A card costs, for a year:           ─▶     "- Adults: €12"            Fees       A card costs, for a year:
    - Adults: €12                              "- Children: nothing"      Fees       A card costs, for a year:
    - Children: nothing                        "It is not transferable."  -          -     with the sentence before

A unit is a sentence, a list item, a table's row or a definition of a definition list. A sentence that depends on the
previous one ("After that ...") is joined with it, a question ("In a hurry?") with its answer, days with their hours:
the names of days come from Unicode's CLDR (babel), other forms and the words of a range from `prompts/days.yaml`.
Searches use a unit's `sense`, which includes the page's title and headings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby, zip_longest

from babel import Locale, UnknownLocaleError

from prompts.loader import sentences, table
from text.markdown import Kind, cells, inline, plain, valid
from text.sentences import Sentence, ended, split
from text.words import words

LONGEST_INTRO = 300  # characters of the introduction of a list or a table
INTRODUCING = (":", "：", "...", "…")
ASKING = ("?", "？", "؟")
MOST_LEANING = 2  # previous sentences that are joined with a dependent one


@dataclass(frozen=True)
class Unit:
    """A unit at `text[start:end]`, in the page's Markdown."""

    start: int
    end: int
    kind: Kind
    text: str
    headings: tuple[str, ...] = ()  # above it, the outermost first; plain text
    intro: str = ""  # Markdown: the sentence that introduces its list or table
    header: str = ""  # Markdown: for a row, its table's header row; for a definition, its term
    block: int = 0  # start of its list or table; its own start if it has none

    @property
    def said(self) -> str:
        """Its plain text, with column names before cells, and the term before a definition."""
        if self.kind == "code":
            return " ".join(self.text.split())
        if self.kind != "row":
            return ": ".join(filter(None, (plain(self.header).rstrip(" :"), plain(self.text))))
        names, found = ([inline(cell) for cell in cells(row)] for row in (self.header, self.text))
        if len(found) > len(names):
            names = []  # it is unknown which cell has no name
        pairs = ((name.rstrip(" :"), cell) for name, cell in zip_longest(names, found, fillvalue="") if cell)
        return "; ".join(f"{name}: {cell}" if name else cell for name, cell in pairs).replace(":; ", ": ")

    def sense(self, title: str) -> str:
        """Its text with title and headings, for an embedder."""
        return ". ".join(part for part in (title, *self.headings, plain(self.intro), self.said) if part)


def units(text: str, lang: str = "") -> list[Unit]:
    """All units of a page's text, in reading order."""
    return list(_joined(_completed(_alone(text, lang), text, lang), text, lang))


def asks(text: str) -> bool:
    """Whether a unit only asks: what stands below it may answer, it does not."""
    return text.rstrip().rstrip("*_").endswith(ASKING) and not any(
        mark in text.rstrip("*_ \n")[:-1] for mark in ".!。！"
    )


def leans(sentence: str, lang: str) -> bool:
    """Whether a sentence depends on the previous one, by its beginning."""
    openers = _openers().get(lang.partition("-")[0].lower())
    return openers is not None and openers.match(f"{' '.join(words(sentence[:80]))} ") is not None


def _alone(text: str, lang: str) -> Iterator[Unit]:
    """A unit for each sentence, item and row, and for each heading with a figure and nothing below it."""
    headings: dict[int, str] = {}
    intro = ""
    bare: Unit | None = None  # of a heading that nothing stands below yet
    for (kind, _), group in groupby(_numbered(split(text, lang)), key=lambda each: (each[0].kind, each[1])):
        blocks = [sentence for sentence, _ in group]
        first = blocks[0]
        if kind == "heading":
            line = text[first.start : first.end]
            level = len(line) - len(line.lstrip("#")) or 6
            if bare is not None and level <= max(headings):
                yield bare
            headings = {each: said for each, said in headings.items() if each < level}
            bare = _of_heading(line, first.start, tuple(headings[each] for each in sorted(headings)))
            headings[level] = plain(line)
            intro = ""
            continue
        bare = None
        above = tuple(headings[level] for level in sorted(headings) if headings[level])
        heads = {sentence.header for sentence in blocks if sentence.header}
        for sentence in blocks:
            if (sentence.start, sentence.end) in heads:
                continue
            header = text[slice(*sentence.header)] if sentence.header else ""
            said = text[sentence.start : sentence.end]
            if not any(ch.isalnum() for ch in valid(said)):
                continue
            listed = kind in ("item", "row")
            block = first.start if listed else sentence.start
            yield Unit(sentence.start, sentence.end, kind, said, above, intro if listed else "", header, block)
        last = text[blocks[-1].start : blocks[-1].end]
        introduces = kind == "prose" and (last.rstrip().endswith(INTRODUCING) or not ended(last) or asks(last))
        intro = last if introduces and len(last) <= LONGEST_INTRO else ""
    if bare is not None:
        yield bare


def _of_heading(line: str, start: int, above: tuple[str, ...]) -> Unit | None:
    """The unit of a heading that says a figure: some pages write notices as headings, with nothing below them."""
    said = line.lstrip("# ")
    if not any(ch.isdigit() for ch in said):
        return None
    begin = start + len(line) - len(said)
    return Unit(begin, begin + len(said), "prose", said, above, block=begin)


def _numbered(sentences: Sequence[Sentence]) -> Iterator[tuple[Sentence, int]]:
    """Sentences with block numbers: a new one for each sentence of prose, the same within a list or a table."""
    number = 0
    for before, sentence in zip([None, *sentences], sentences, strict=False):
        together = before is not None and before.kind == sentence.kind and sentence.kind in ("item", "row")
        if together and before and sentence.kind == "row" and sentence.header != before.header:
            together = sentence.header == (before.start, before.end)  # the header row itself has no `header`
        number += not together
        yield sentence, number


def _completed(alone: Iterator[Unit], text: str, lang: str) -> Iterator[Unit]:
    """Join a question with the next sentence, which answers it, and days with the hours in the next sentences."""
    before: Unit | None = None
    for each in alone:
        unit = each
        if before is not None:
            together = before.kind == unit.kind == "prose" and before.headings == unit.headings
            if together and (asks(before.text) or _needs_hours(before, unit, lang)):
                unit = replace(before, end=unit.end, text=text[before.start : unit.end])
            elif not asks(before.text) or before.kind != "prose":
                yield before
        before = unit
    if before is not None and not (before.kind == "prose" and asks(before.text)):
        yield before


def _needs_hours(days: Unit, unit: Unit, lang: str) -> bool:
    """Whether `days` has no hours yet, or has some in a paragraph of their own, and `unit` is further ones."""
    if len(days.text) > LONGEST_DAYS:
        return False
    first, _, hours = days.text.partition("\n")
    return only_days(days.text, lang) or bool(hours and only_days(first, lang) and only_hours(plain(unit.text)))


def _joined(alone: Iterator[Unit], text: str, lang: str) -> Iterator[Unit]:
    """Join dependent sentences with the previous ones, and turn introductions of lists into `intro`."""
    before: Unit | None = None
    joined = 0
    for unit in alone:
        same = before is not None and before.kind == unit.kind == "prose" and before.headings == unit.headings
        if (
            before
            and same
            and joined < MOST_LEANING
            and "\n\n" not in text[before.end : unit.start]
            and leans(unit.text, lang)
        ):
            yield replace(before, end=unit.end, text=text[before.start : unit.end])
            before = replace(before, end=unit.end, text=text[before.start : unit.end])
            joined += 1
            continue
        yield unit
        before, joined = unit, 0


@cache
def _openers() -> dict[str, re.Pattern[str]]:
    return {lang: re.compile("|".join(map(_opener, said.split(",")))) for lang, said in table("leaning").items()}


def _opener(said: str) -> str:
    """A pattern for an opener, where `*` is any word."""
    return " ".join(r"\S+" if part == "*" else re.escape(" ".join(words(part))) for part in said.split()) + " "


LONGEST_DAYS = 80  # characters of a text that only names days
LONGEST_HOURS = 40
_BETWEEN = "and|und|et|y|e|i|en|ve|și|si|és|es|та|и|on|am|le|les|los|las|il|la|de|od|do|du|dal|ab|from|von|van|z"
_UNSPACED = frozenset({"zh", "ja", "th", "lo", "my", "km"})
_LONG_WORD = re.compile(r"[^\W\d_]{5}|[€$£%¥]")
_NUMBER = re.compile(r"\d+")


def only_days(text: str, lang: str) -> bool:
    if len(text) > LONGEST_DAYS:
        return False
    pattern = _days_pattern(lang.partition("-")[0].lower())
    folded = text.casefold()
    names = any(found["day"] for found in pattern.finditer(folded))
    return names and not any(ch.isalnum() for ch in pattern.sub("", folded))


def only_hours(text: str) -> bool:
    """Whether the text is a span of hours: "14.00-18.00 Uhr"."""
    return len(text) <= LONGEST_HOURS and len(_NUMBER.findall(text)) >= 2 and not _LONG_WORD.search(text)


@cache
def _days_pattern(lang: str) -> re.Pattern[str]:
    try:
        days = Locale.parse(lang).days
    except (UnknownLocaleError, ValueError):
        return _days_pattern("en")
    lists = sentences("days")
    forms = lists["weekdays"].get(lang, "").replace(",", " ").split()
    phrases = [each.strip() for key in ("daily", "weekend", "working") for each in lists[key].get(lang, "").split(",")]
    cldr = (days[use].get(width, {}) for use in ("format", "stand-alone") for width in ("wide", "abbreviated", "short"))
    named = {name.rstrip(".").casefold() for each in cldr for name in each.values()} | {*forms, *phrases}
    links = {*_BETWEEN.split("|"), *(each.strip() for each in lists["to"].get(lang, "").split(","))}
    day, link = ("|".join(map(re.escape, sorted(filter(None, some), key=len, reverse=True))) for some in (named, links))
    either = f"(?P<day>{day})|{link}"
    return re.compile(either if lang in _UNSPACED else rf"(?<!\w)(?:{either})(?!\w)")
