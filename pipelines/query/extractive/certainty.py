"""Certainty: decides whether a unit is quoted as the answer, or only shown on a card.

    "What does a library card cost?"   "| Library card | €12 a year |"      ─▶ quoted: the price of a library card
    "What does a cat's tax cost?"      "| First dog | €84 |"                 ─▶ card: the price of something else
    "How heavy is the cargo bike?"     "| Cargo bike | €2,690 | 100 kg |"    ─▶ card: 100 kg may be the load

The rules favour precision: the question asks for a kind of figure (prompts/wants.yaml), the unit has such a figure, and
all other words of the question are in the unit or in its headings. A sentence in the middle of a paragraph needs the
sentence before it, so it is only shown. Figures: docs/reference/quality.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Literal

from prompts.loader import sentences, table
from schemas.query import Evidence, Source, Sure
from text.figures import figures
from text.language import spoken, stopwords
from text.likeness import ENDING, Likeness
from text.markdown import cells, plain
from text.measures import measures
from text.words import stems, words

LEAST = 0.5  # least chance of the best unit, where the embedder has a profile
LONGEST = 12  # content words of a question; a longer one tells a story
SHORT, SAME = 4, 0.85  # letters of a short word, which many words contain by chance, and the likeness that it needs
ALIKE = 0.75  # likeness that a longer word needs: "tax" is a part of "cat tax", but names no cat
READ = 2_000  # characters of a unit to search for figures

Want = Literal["price", "opening", "when", "duration", "contact"]
WANTS: tuple[Want, ...] = ("duration", "contact", "price", "opening", "when")
LENGTHS = frozenset({"minute", "month"})
QUESTION_MARKS = ("?", "？", "؟")


def certain(question: str, lang: str, best: Evidence, source: Source, sure: Sure | None) -> bool:
    """Whether the best unit answers the question by itself.

    Args:
        question: the search text.
        lang: the visitor's language.
        source: the unit's source.
    """
    if sure is not None and sure.unit is not None and sure.unit < LEAST:
        return False
    langs = languages(question, lang, source.lang)
    wants, subject = asked(question, langs)
    named = set(subject) - unnamed(langs)
    if not wants or not named or len(subject) > LONGEST or (best.kind == "prose" and not _begins(best, source)):
        return False
    own = plain(best.text[:READ])
    found = figures(own, (source.lang.partition("-")[0], "en"))
    # "Passport, aged 24 years or over: 70 euros" has an age and no duration.
    if "duration" in wants and "price" not in wants and any(figure.family == "price" for figure in found):
        return False
    # Opening hours are in tables and lists; hours with a date are an exception.
    dated = any(figure.kind == "date" for figure in found)
    if "opening" in wants and (best.kind not in ("row", "item") or dated):
        return False
    if "price" in wants and (
        _is_narrower(best, question) or not _whole_price(best, own, question, (*langs, source.lang.partition("-")[0]))
    ):
        return False
    if "opening" not in wants and "when" not in wants and not is_named(best, named):
        return False
    # Below "Are there showers?", "Yes, free; or hire a towel for 2 pounds" is no price of a towel.
    if _is_question(above := best.headings[-1] if best.headings else "") and not _names(above, named):
        return False
    # On the page "Swimming", "Front crawl for adults costs 88 euros" is no price of swimming for adults.
    title = "" if "price" in wants and not _name(best) else source.title
    return all(holds(want, own, source.lang) for want in wants) and covered(subject, best, title)


def languages(question: str, visitor: str, page: str) -> Sequence[str]:
    """The languages that a question may be in: the visitor's, those of its words, the page's."""
    return tuple(dict.fromkeys((visitor.partition("-")[0], *sorted(spoken(question)), page.partition("-")[0])))


def names_nothing(question: str, langs: Iterable[str]) -> bool:
    """Whether a question asks for a figure without naming a subject: "what does it cost"."""
    langs = tuple(langs)
    wants, subject = asked(question, langs)
    return bool(wants) and unnamed(langs).issuperset(subject)


def _whole_price(best: Evidence, text: str, question: str, langs: Sequence[str]) -> bool:
    """Whether the text has the whole price for any day, and not only a part of it, such as a surcharge.

    Args:
        langs: the question's languages, and the text's language last.
    """
    said, wanted = f" {' '.join(words(f'{best.header} {text}'))} ", set(words(question))
    parts = {phrase for tag in langs for phrase in _phrases("parts").get(tag, ())}
    if any(f" {part} " in said for part in parts - wanted):
        return False
    if any(not wanted.isdisjoint(measures(lang).weekdays) for lang in langs):
        return False
    prices = {figure.numbers for figure in figures(text, (langs[-1], "en")) if figure.family == "price"}
    return best.kind == "row" or len(prices) <= 1


def is_named(best: Evidence, subject: Iterable[str]) -> bool:
    """Whether the unit itself, and not only its headings, names the question's subject.

    "An ID card takes three weeks" below the heading "ID cards and passports" is no answer about passports. Of a row or
    an item only its name counts.

    Args:
        subject: words of the question's subject (`asked`).
    """
    return _names(plain(itself(best)[:READ]), subject)


def _is_question(heading: str) -> bool:
    return plain(heading[:READ]).rstrip().endswith(QUESTION_MARKS)


def _names(text: str, subject: Iterable[str]) -> bool:
    called = Likeness(words(text))
    return any(
        like >= _alike(word) and not _is_of_it(other, word)
        for word in subject
        for other, like in called.of(word).items()
    )


def _is_of_it(other: str, word: str) -> bool:
    """Whether a compound begins with the word, so that it names something else: "Urnenwahlgrab" is no "Urne"."""
    return other.startswith(word) and len(other) > len(word) + ENDING


def itself(unit: Evidence) -> str:
    """The text by which a unit names its subject: the name of a row or an item, or else all of it."""
    return _name(unit) or unit.text


def _name(best: Evidence) -> str:
    """The name of a row (its first cell) or of an item (before a colon); empty where it has none."""
    if best.kind == "row":
        return next((cell for cell in cells(best.text) if cell), "")
    return best.text.partition(":")[0] if best.kind == "item" and ":" in best.text else ""


def _is_narrower(best: Evidence, question: str) -> bool:
    """Whether most words of a row's or item's name are not in the question: "Parties for a child"."""
    name = _name(best)
    empty = frozenset[str]().union(*stopwords().values())
    called = [word for word in dict.fromkeys(words(plain(name[:READ]))) if word not in empty]
    asked = Likeness(words(question))
    return 2 * sum(bool(asked.of(word)) for word in called) < len(called)


def unnamed(langs: Iterable[str]) -> set[str]:
    """Words of questions that name no subject."""
    return {phrase for tag in langs for phrase in _phrases("unnamed").get(tag, ())}


def asked(question: str, langs: Iterable[str]) -> tuple[list[Want], list[str]]:
    """The kinds of figures that a question asks for, and the words of its subject; both empty for a negated question.

    Args:
        langs: languages that the question may be in.
    """
    said, left = f" {' '.join(words(question))} ", list(dict.fromkeys(words(question)))
    empty = frozenset[str]().union(*stopwords().values())
    wants: list[Want] = []
    for lang in langs:
        if any(no in said for no in _denials(lang)):
            return [], []
        for want in WANTS:
            # German "auf" means open only at the end of a question; elsewhere it is a preposition.
            phrases = (
                (each, said.endswith if each in empty else said.__contains__) for each in _phrases(want).get(lang, ())
            )
            if found := [phrase for phrase, asks in phrases if asks(f" {phrase} ")]:
                wants.append(want)
                left = [word for word in left if not any(word in phrase.split() for phrase in found)]
    days = frozenset[str]().union(*(day_words(lang) for lang in langs))
    if "opening" in wants:  # "how long is it open" asks for hours, not for a duration
        wants = [want for want in wants if want in ("opening", "when")]
    return list(dict.fromkeys(wants)), [word for word in left if word not in empty and word not in days]


def holds(want: Want, text: str, lang: str) -> bool:
    """Whether a text has a figure of this kind."""
    found = figures(text, (lang.partition("-")[0], "en"))
    kinds, families = {figure.kind for figure in found}, {figure.family for figure in found}
    said = f" {' '.join(words(text))} "
    if want == "price":
        free = _phrases("free")
        return "price" in families or any(f" {each} " in said for each in free.get(lang.partition("-")[0], free["en"]))
    if want == "contact":
        return not kinds.isdisjoint({"phone", "address"})
    if want == "duration":
        return not families.isdisjoint(LENGTHS)
    if want == "opening":
        return not kinds.isdisjoint({"time", "weekday"})
    return not kinds.isdisjoint({"time", "date", "weekday"})


def covered(subject: Iterable[str], best: Evidence, title: str) -> bool:
    """Whether the unit, its headings or the title have all words of the subject.

    Inflected, compound and misspelled words count; numbers must be equal.
    """
    below = " ".join((*best.headings, best.intro, best.header, best.text))
    there = Likeness(words(below if _narrows(best.headings, title) else f"{title} {below}"))
    return all(max(there.of(word).values(), default=0.0) >= _alike(word) for word in subject)


def opening_words(lang: str) -> frozenset[str]:
    """The words for "open" in a language."""
    return frozenset(word for phrase in _phrases("opening").get(lang, ()) for word in phrase.split())


def _narrows(headings: Iterable[str], title: str) -> bool:
    """Whether a heading names only a part of the title's subjects: "Pool opening hours" on the page "Pool and lido"."""
    empty = frozenset[str]().union(*stopwords().values())
    named, *below = (set(stems(" ".join(w for w in words(each) if w not in empty))) for each in (title, *headings))
    return any(0 < len(named & heading) < len(named) for heading in below)


def _begins(unit: Evidence, source: Source) -> bool:
    """Whether the unit is the first sentence of its paragraph."""
    before = source.text[: max(source.text.find(unit.text), 0)].rstrip(" ")
    return not before or before.endswith("\n")


def _alike(word: str) -> float:
    """The likeness that another word needs to count as this one: "Ried" is not "carried"; numbers must be equal."""
    if re.search(r"\d", word):
        return 1.0
    return SAME if len(word) <= SHORT else ALIKE


@cache
def _phrases(name: str) -> Mapping[str, tuple[str, ...]]:
    """Language -> phrases, each as its words."""
    said = sentences("wants")[name]
    return {lang: tuple(" ".join(words(phrase)) for phrase in listed.split(",")) for lang, listed in said.items()}


@cache
def _denials(lang: str) -> tuple[str, ...]:
    """The words of negation in a language, with spaces around them; for "isn't" only the ending."""
    listed = table("negations").get(lang, "").split()
    return tuple(("" if each == "n't" else " ") + " ".join(words(each)) + " " for each in listed)


@cache
def day_words(lang: str) -> frozenset[str]:
    """The names of weekdays, and "today" and "tomorrow", in a language: they name no subject."""
    lists = sentences("days")
    said = " ".join(lists[name].get(lang, "") for name in ("today", "tomorrow", "after-tomorrow", "weekdays"))
    return frozenset(words(said)) | frozenset(measures(lang).weekdays)
