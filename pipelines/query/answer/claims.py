"""Claims: splits a text into comparable parts: sentences, clauses, figures, names, negations.

    "Adults pay 12 euros, children nothing." ─▶ clause {adult, pay} 12 EUR │ clause {child}, negated

A page's passage and a model's sentence are parsed by the same code, so parsing errors mostly cancel out.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from operator import attrgetter

from pipelines.query.answer.amounts import FREE, limits, of_part_of_day, paying, spelled, unfigured
from prompts.loader import table
from text.figures import Figure, figures, weekdays_between
from text.language import stopwords
from text.markdown import cells, inline, plain
from text.measures import measures
from text.sentences import split
from text.words import STEM, words

# Separates two statements; a match inside a figure does not count.
_SEPARATOR = re.compile(
    r"[;:]|,\s|[.!?。！？；，、]\s?|\n|\s[-–—]\s(?=\D)"
    r"|\s(?:and|but|that|which|und|aber|sondern|et|mais|qui|y|pero|e|ma|che|és|de|i|ale|oraz|și|dar|care)\s"
)
_START = attrgetter("start")
COSTLESS = "gratis"  # replaces all phrases for "free of charge" before words are compared
_CELLS = " | "  # between the cells of a table row, so that no figure or name spans two cells
_ANSWER_WORD = re.compile(r"^\W*\w+,\s")  # No, you do not
_NAME_WORD = re.compile(r"(?<!\w)[^\W\d_][\w'’-]*")
_NUMBER_SIGN = re.compile(r"(?<!\w)nos?\.(?=\s?\d)", re.IGNORECASE)  # "No. 5" is no negation
_POSSESSIVE = re.compile(r"['’]s?$")
_HOUSE = re.compile(r" (\d{1,4}[a-z]?)(?!\w|[.,:]\d)")
NOUNS_ARE_CAPITALISED = frozenset(("de", "lb"))
_TITLES = frozenset(
    (
        *("Dr", "Frau", "Herr", "Herrn", "Madame", "Mlle", "Mme", "Monsieur", "Mr", "Mrs", "Ms", "Pan", "Pani", "Prof"),
        *("Señor", "Señora", "Signor", "Signora", "Sr", "Sra"),
    )
)


@dataclass(frozen=True)
class Clause:
    """A part of a sentence with one statement, or a whole sentence taken as one statement."""

    text: str
    subject: frozenset[str]  # stems of the words that carry meaning
    saying: frozenset[str]  # stems of all words but negations
    figures: tuple[Figure, ...]
    days: frozenset[int]  # of the week that it is about; empty: it names none
    denies: bool  # it has a negation


@dataclass(frozen=True)
class Sentence:
    """A sentence, list item, heading or table's row."""

    text: str  # without Markdown
    figures: tuple[Figure, ...]
    clauses: tuple[Clause, ...]
    whole: Clause


@dataclass(frozen=True)
class Name:
    """Capitalised words in a row, and the number right behind them, as of a house or a room."""

    words: tuple[str, ...]
    number: str
    first: bool  # the sentence begins with it
    title: str  # the word right before them if it says what is named: via, place, Frau; else empty


@dataclass(frozen=True)
class Passage:
    """A text of a source, which sentences are compared with."""

    folded: str
    words: frozenset[str]
    figures: tuple[Figure, ...]
    days: frozenset[int]
    any_day: bool  # it says "every day", or means several days without naming them
    neighbours: frozenset[tuple[str, str]]  # of names: two adjacent words, or the last word and the number
    sentences: tuple[Sentence, ...]

    @property
    def clauses(self) -> Iterator[Clause]:
        return (clause for sentence in self.sentences for clause in sentence.clauses)


def sentence(markdown: str, langs: Sequence[str]) -> Sentence:
    """One sentence, or one row of a table, whose cells form one statement."""
    row = markdown.lstrip().startswith("|")
    text = _CELLS.join(map(inline, cells(markdown))) if row else plain(markdown)
    said = list(spelled(text, figures(text, langs), langs))
    found = tuple(sorted([*said, *unfigured(text, langs, said)], key=_START))
    whole = _clause(text, 0, len(text), found, langs)
    parts = [whole] if row else [_clause(text, begin, end, found, langs) for begin, end in _cuts(text, found)]
    return Sentence(text, found, tuple(_with_days(parts)), whole)


def passage(markdown: str, langs: Sequence[str]) -> Passage:
    sentences = tuple(sentence(markdown[s.start : s.end], langs) for s in split(markdown, langs[0]))
    said = words(" ".join(s.text for s in sentences))
    spoken = f" {' '.join(said)} "
    return Passage(
        folded=markdown.casefold(),
        words=frozenset(said),
        figures=tuple(figure for s in sentences for figure in s.figures),
        days=frozenset(day for s in sentences for day in s.whole.days),
        any_day=any(phrase in spoken for lang in langs for phrase in _every_day(lang)),
        neighbours=frozenset(pair for s in sentences for name in names(s, langs) for pair in _neighbours(name)),
        sentences=sentences,
    )


def names(said: Sentence, langs: Sequence[str]) -> Iterator[Name]:
    """Possible names: capitalised words other than days, months, titles and words without meaning."""
    nouns = langs[-1] in NOUNS_ARE_CAPITALISED
    taken = [figure for figure in said.figures if figure.kind in ("date", "weekday", "address")]
    dull = _dull(tuple(langs))
    run: list[str] = []
    end, first, before, title = 0, False, "", ""
    for match in _NAME_WORD.finditer(said.text):
        word = _POSSESSIVE.sub("", match.group())
        name = word[:1].isupper() and word.casefold() not in dull and word not in _TITLES
        name = name and not _in_figure(taken, match.start(), match.end())
        name = name and not (nouns and measures(langs[-1]).unit(word))  # anderthalb Wochen
        if run and not (name and said.text[end : match.start()] == " "):
            yield _named(run, said.text, end, first, title)
            run = []
        if name:
            first = first if run else not any(map(str.isalnum, said.text[: match.start()]))
            title = title if run else before
            run.append(word)
            end = match.end()
        tells = word in _TITLES or not (nouns or name or word.casefold() in dull)
        before = word.casefold() if tells and said.text[match.end() : match.end() + 1] == " " else ""
    if run:
        yield _named(run, said.text, end, first, title)


def _named(run: Sequence[str], text: str, end: int, first: bool, title: str) -> Name:
    house = _HOUSE.match(text, end)
    return Name(tuple(run), house[1] if house else "", first, title)


def _neighbours(name: Name) -> Iterator[tuple[str, str]]:
    folded = [word.casefold() for word in name.words]
    yield from zip(folded, [*folded[1:], name.number], strict=True)
    if name.title:
        yield name.title, folded[0]


def _cuts(text: str, found: Sequence[Figure]) -> Iterator[tuple[int, int]]:
    begin = 0
    for match in _SEPARATOR.finditer(text):
        if _in_figure(found, match.start(), match.end() - 1):
            continue
        if text[begin : match.start()].strip():
            yield begin, match.start()
        begin = match.end()
    if text[begin:].strip():
        yield begin, len(text)


def _in_figure(found: Sequence[Figure], start: int, end: int) -> bool:
    """Whether a figure overlaps `text[start:end]`. Figures are sorted and disjoint."""
    behind = bisect_left(found, end, key=_START)
    return behind > 0 and start < found[behind - 1].end


def _clause(text: str, begin: int, end: int, found: Sequence[Figure], langs: Sequence[str]) -> Clause:
    first, behind = (bisect_left(found, place, key=_START) for place in (begin, end))
    inside = tuple(figure for figure in found[first:behind] if figure.end <= end)
    denials, inside_words = _denials(tuple(langs)), _inside_words(tuple(langs))
    # The text behind the clause distinguishes the sign of a number from a negation.
    read = _NUMBER_SIGN.sub(_blank, text[begin : end + 3])[: end - begin]
    for figure in inside:
        if figure.said == FREE:  # "pay nothing" is no negation
            at, until = figure.start - begin, figure.end - begin
            read = read[:at] + COSTLESS.ljust(until - at)[: until - at] + read[until:]
    part = inside_words.sub(_blank, read)
    named = part
    for figure in inside:
        if figure.kind == "number":  # neither a spelled number nor its unit names the subject
            at, until = figure.start - begin, figure.end - begin
            named = named[:at] + " " * (until - at) + named[until:]
    spoken = words(part)
    answer = _ANSWER_WORD.match(part)
    return Clause(
        text=text[begin:end].strip(),
        subject=_stems(w for w in words(named) if w not in _dull(tuple(langs)) and not w.isdigit()),
        saying=_stems(word for word in spoken if word not in denials),
        figures=inside,
        days=weekdays_between(inside, text),
        denies=not limits(part, langs)
        and (part != read or any(word in denials for word in (words(part[answer.end() :]) if answer else spoken))),
    )


def says_open(text: str, langs: tuple[str, ...]) -> bool:
    return not _listed("openings", langs).isdisjoint(words(text))


def is_closed(clause: Clause, langs: tuple[str, ...]) -> bool:
    """Whether a clause negates something for whole days, not for a part of the day."""
    return clause.denies and not of_part_of_day(clause.text, langs)


def _with_days(clauses: Sequence[Clause]) -> Iterator[Clause]:
    """`Mon, Tue 9-12, 14-18, Wed closed`: days apply to the hours behind them, up to the next days."""
    current: frozenset[int] = frozenset()
    complete = True  # hours have followed the days
    for clause in clauses:
        hours = any(figure.kind == "time" for figure in clause.figures)
        if clause.days:
            current = clause.days if complete else current | clause.days
            complete = hours
        else:
            complete = complete or hours
        yield replace(clause, days=current if hours else clause.days)


def _stems(said: Iterable[str]) -> frozenset[str]:
    return frozenset(word[:STEM] for word in said if len(word) > 1)


@cache
def _dull(langs: tuple[str, ...]) -> frozenset[str]:
    """Words that do not name the subject of a sentence: stop words, negations, words of paying."""
    return _denials(langs).union(
        paying(langs), *(stopwords().get(lang.partition("-")[0], frozenset()) for lang in langs)
    )


def _blank(match: re.Match[str]) -> str:
    return " " * len(match.group())


@cache
def _listed(name: str, langs: tuple[str, ...]) -> frozenset[str]:
    """The words of a table by language."""
    return frozenset(word for lang in langs for word in table(name).get(lang.partition("-")[0], "").split())


@cache
def _denials(langs: tuple[str, ...]) -> frozenset[str]:
    return frozenset(word for word in _listed("negations", langs) if "'" not in word)


@cache
def _inside_words(langs: tuple[str, ...]) -> re.Pattern[str]:
    """Negations inside words: n't at the end, n' at the beginning, as the apostrophe shows; and whole words: can't."""
    parts = [word.split("'") for word in sorted(_listed("negations", langs)) if "'" in word]
    either = [
        rf"(?<{'=' if behind and len(before) == 1 else '!'}\w){before}['’ʼ]{behind}(?{'!' if behind else '='}\w)"
        for before, behind in parts
    ]
    return re.compile("|".join(either) or r"(?!)", re.IGNORECASE)


@cache
def _every_day(lang: str) -> frozenset[str]:
    said = table("every-day").get(lang.partition("-")[0])
    return frozenset(f" {phrase.strip()} " for phrase in said.split(",")) if said else frozenset()
