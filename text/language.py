"""What we say to visitors ourselves, in their language: canned replies and errors, from the data files of `prompts/`.

A site's folder may hold files of the same names with the sentences it wants to say otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from prompts.loader import sentences, table
from text.words import words

FALLBACK = "en"


@dataclass(frozen=True)
class Phrases:
    """All canned sentences, and the names of languages."""

    canned: Mapping[str, Mapping[str, str]]  # name -> language -> sentence
    errors: Mapping[str, Mapping[str, str]]  # code -> language -> sentence
    languages: Mapping[str, str]  # tag -> English name

    @classmethod
    def load(cls, overrides: Path | None = None) -> Phrases:
        """Raises: PromptError."""
        return cls(sentences("canned", overrides), sentences("errors", overrides), table("languages"))

    def say(self, name: str, lang: str) -> str:
        """A canned sentence by its name. Raises: KeyError."""
        return _in(lang, self.canned[name])

    def speaks(self, lang: str) -> bool:
        """Whether our own sentences are there in a language; else they are in English."""
        said = self.canned["nothing-found"]
        return lang in said or lang.partition("-")[0] in said

    def nothing_found(self, lang: str) -> str:
        """The site has nothing on the question."""
        return _in(lang, self.canned["nothing-found"])

    def lead_in(self, lang: str) -> str:
        """What comes before a quotation from the pages."""
        return _in(lang, self.canned["lead-in"])

    def error(self, code: str, lang: str) -> str:
        """Plain words for an error's code; never its internals. Unknown codes are said in general words."""
        return _in(lang, self.errors.get(code, self.errors["error"]))

    def name(self, lang: str) -> str:
        """The English name of a language, for prompts: `German`; its tag where we do not know it."""
        return self.languages.get(lang) or self.languages.get(lang.partition("-")[0], lang)


@cache
def stopwords() -> Mapping[str, frozenset[str]]:
    """By language: words that say nothing of what a question is about."""
    return {lang: frozenset(words(said)) for lang, said in table("stopwords").items()}


def spoken(text: str) -> frozenset[str]:
    """Whose stop words a text uses most; several that use the same, none where there are none."""
    said = words(text)
    counts = {lang: sum(word in theirs for word in said) for lang, theirs in stopwords().items()}
    most = max(counts.values(), default=0)
    return frozenset(lang for lang, count in counts.items() if count == most) if most else frozenset()


def language_of(question: str, languages: Sequence[str]) -> str:
    """The language to answer a question in that came without one.

    Args:
        languages: the site's, the first of which it is where nothing speaks for another.
    """
    heard = spoken(question)
    ours = (lang for lang in languages if lang.partition("-")[0] in heard)
    return next(ours, min(heard) if len(heard) == 1 else languages[0])


def _in(lang: str, said: Mapping[str, str]) -> str:
    return said.get(lang) or said.get(lang.partition("-")[0]) or said[FALLBACK]
