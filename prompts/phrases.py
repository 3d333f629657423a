"""Our own sentences for visitors, in their language: canned replies and errors, from the data files in this folder.

A site's folder may have files of the same names whose sentences replace ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from prompts.loader import sentences, table

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
        """Whether our sentences exist in a language; else they are in English."""
        said = self.canned["nothing-found"]
        return lang in said or lang.partition("-")[0] in said

    def error(self, code: str, lang: str) -> str:
        """The sentence for an error's code; a general one for unknown codes."""
        return _in(lang, self.errors.get(code, self.errors["error"]))

    def name(self, lang: str) -> str:
        """The English name of a language, for prompts: `German`; the tag of an unknown one."""
        return self.languages.get(lang) or self.languages.get(lang.partition("-")[0], lang)


def _in(lang: str, said: Mapping[str, str]) -> str:
    return said.get(lang) or said.get(lang.partition("-")[0]) or said[FALLBACK]
