"""The console's texts in its languages, from `words.yaml` in this folder."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import yaml
from babel import Locale
from pydantic import TypeAdapter

from prompts.strict_yaml import UniqueKeys

# Language -> (locale of its dates and numbers, its own name).
LANGUAGES = {"en": ("en_GB", "English"), "de": ("de_DE", "Deutsch")}
FALLBACK = "en"


class Say:
    """The texts of one language by name: `say("sign-in")`. Keyword arguments fill `{name}` in a text."""

    def __init__(self, lang: str) -> None:
        self.lang = lang
        self.locale = Locale.parse(LANGUAGES[lang][0])

    def __call__(self, name: str, /, **values: object) -> str:
        """Raises: KeyError: no text has this name."""
        return catalogue()[name][self.lang].format_map(values)

    def knows(self, name: str) -> bool:
        return name in catalogue()


@cache
def catalogue() -> Mapping[str, Mapping[str, str]]:
    """Name -> language -> text. Raises: ValidationError: not a catalogue; KeyError: a text lacks a language."""
    raw = (files("gateway.console") / "words.yaml").read_text("utf-8")
    words = yaml.load(raw, UniqueKeys)  # noqa: S506
    found = TypeAdapter(dict[str, dict[str, str]]).validate_python(words)
    return {name: {lang: said[lang] for lang in LANGUAGES} for name, said in found.items()}
