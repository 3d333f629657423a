"""What we say ourselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from prompts.loader import PromptError
from prompts.phrases import Phrases

# The widget's ten, and those that visitors of town halls and universities often have.
LANGUAGES = {"ar", "de", "en", "es", "fr", "he", "hu", "it", "nl", "pl", "pt", "ro", "ru", "th", "tr", "uk", "zh"}
PHRASES = Phrases.load()


def test_everything_is_said_in_every_language_we_speak() -> None:
    for said in [*PHRASES.canned.values(), *PHRASES.errors.values()]:
        assert set(said) == LANGUAGES


def test_a_region_speaks_its_language_and_a_stranger_gets_english() -> None:
    assert PHRASES.say("lead-in", "de-AT") == PHRASES.say("lead-in", "de") == "Auf der Website steht:"
    assert PHRASES.say("nothing-found", "xx") == PHRASES.say("nothing-found", "en")


def test_an_error_is_said_by_its_code_and_never_by_its_insides() -> None:
    assert "Minute" in PHRASES.error("model-busy", "de")
    assert PHRASES.error("KeyError: secret", "en") == "Something went wrong. Please ask again."


def test_languages_have_names() -> None:
    assert [PHRASES.name(tag) for tag in ("de", "pt-BR", "no", "tlh")] == ["German", "Portuguese", "Norwegian", "tlh"]


def test_a_site_says_some_things_its_own_way(tmp_path: Path) -> None:
    (tmp_path / "canned.yaml").write_text("lead-in:\n  de: 'Wir schreiben dazu:'\n", encoding="utf-8")
    phrases = Phrases.load(tmp_path)
    assert phrases.say("lead-in", "de") == "Wir schreiben dazu:"
    assert phrases.say("lead-in", "fr") == PHRASES.say("lead-in", "fr")


def test_a_site_cannot_say_what_nobody_asks_for(tmp_path: Path) -> None:
    (tmp_path / "canned.yaml").write_text("leadin:\n  de: x\n", encoding="utf-8")
    with pytest.raises(PromptError, match=r"canned\.yaml.*'leadin'"):
        Phrases.load(tmp_path)
