"""Follow-ups without a model: what a question may lean on, and what its words tell of whether it does.

    "What does a library card cost?"   "And for children?"  ─▶  it begins as one, and names one thing
    "What does a library card cost?"   "Where is the pool?" ─▶  it names what it is about

By words alone: how it begins, what it says "it" to, and whether it names anything of its own. Whether it leans is
decided with what the search finds for it (pipelines.query.extractive.leaning); of the questions further back only these
signs tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from prompts.loader import sentences
from schemas.query import MAX_QUESTION, Earlier, Signs, Turn
from text.language import spoken, stopwords
from text.words import words

BACK = 3  # questions, at most, that are asked together with one that leans on them
NAMED = 2  # things a question may name that begins with "and", to lean on the one before


@dataclass(frozen=True)
class _Marks:
    """What gives a question away as a follow-up, in one language."""

    openers: tuple[str, ...]
    pronouns: frozenset[str]
    generic: frozenset[str]


def earlier(question: str, history: Sequence[Turn]) -> Earlier | None:
    """What a question may lean on; None where nothing was asked before it.

    Args:
        history: without greetings and thanks.
    """
    if not history:
        return None
    before = continued(history[-1].question, history[:-1])
    return Earlier(question=before, pages=history[-1].pages, signs=signs(question))


def signs(question: str) -> Signs:
    """What the words of a question tell, in all languages that it may be in."""
    said = words(question)
    langs = [lang for lang in spoken(question) if lang in _marks()]
    heard = [_marks()[lang] for lang in langs]
    empty = frozenset[str]().union(
        *stopwords().values(), *(marks.generic | marks.pronouns for marks in _marks().values())
    )
    return Signs(
        leans=any(_leans(said, lang) for lang in langs),
        opens=any(_begins(some, marks) for marks in heard for some in (said, said[1:])),
        refers=any(not marks.pronouns.isdisjoint(said) for marks in heard),
        named=sum(word not in empty for word in dict.fromkeys(said)),
    )


def continued(question: str, history: Sequence[Turn]) -> str:
    """The question, after the earlier ones of its conversation that it leans on."""
    asked = [question]
    for turn in reversed(history[-BACK:]):
        if not leans(asked[0]):
            break
        asked.insert(0, turn.question)
    together = " ".join(asked)
    return together if len(together) <= MAX_QUESTION else question


def leans(question: str) -> bool:
    """Whether a question can hardly be understood without the one before it."""
    said = words(question)
    return any(_leans(said, lang) for lang in spoken(question) if lang in _marks())


def _leans(said: Sequence[str], lang: str) -> bool:
    marks = _marks()[lang]
    empty = stopwords()[lang] | marks.generic
    named = sum(word not in empty for word in said)
    if not named:
        return True
    return (_begins(said, marks) and named <= NAMED) or (named == 1 and not marks.pronouns.isdisjoint(said))


def _begins(said: Sequence[str], marks: _Marks) -> bool:
    return f"{' '.join(said)} ".startswith(marks.openers)


@cache
def _marks() -> Mapping[str, _Marks]:
    """By language."""
    found = sentences("follow-ups")
    return {
        lang: _Marks(
            openers=tuple(f"{' '.join(words(opener))} " for opener in openers.split(",")),
            pronouns=frozenset(words(found["pronouns"][lang])),
            generic=frozenset(words(found["generic"][lang])),
        )
        for lang, openers in found["openers"].items()
    }
