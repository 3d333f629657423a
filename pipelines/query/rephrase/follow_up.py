"""Follow-ups without a model: a question that leans on the one before is asked together with it.

    "What does a library card cost?"   "And for children?"  ─▶  both, in one
    "What does a library card cost?"   "Where is the pool?" ─▶  the second alone

Seen by words alone: how it begins, what it says "it" to, and whether it names anything of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from prompts.loader import sentences
from schemas.query import MAX_QUESTION, Turn
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
    return any(_leans(question, lang) for lang in spoken(question) if lang in _marks())


def _leans(question: str, lang: str) -> bool:
    said, marks = words(question), _marks()[lang]
    empty = stopwords()[lang] | marks.generic
    named = sum(word not in empty for word in said)
    if not named:
        return True
    begins = f"{' '.join(said)} ".startswith(marks.openers)
    return (begins and named <= NAMED) or (named == 1 and not marks.pronouns.isdisjoint(said))


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
