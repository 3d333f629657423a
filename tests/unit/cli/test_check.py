"""What `pagewire check` says of an answer."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from cli.check import chosen, example_questions, judged
from cli.main import app
from pipelines.runtime.errors import WrongUse
from schemas.answer import Answered, Done, Failed, SourcesFound
from schemas.query import Source
from tests.asking import source
from wiring.settings import ChatSettings, Settings, SiteSettings

CITED = source(1, "A card costs 12 euros.", title="Fees").model_copy(update={"cited": True})
SEEN = source(1, "A card costs 12 euros.")


def answered(text: str, *sources: Source) -> Answered:
    return Answered(text=text, citations=(), sources=sources, extractive=True)


def test_an_answer_that_cites_a_page_is_fine() -> None:
    said = judged("en", "What does a card cost?", [answered("12 euros.", CITED), Done()])
    assert (said.problem, said.page, said.url, said.answer) == ("", "Fees", "/p1", "12 euros.")


def test_why_a_question_fails() -> None:
    found, none = SourcesFound(grade=0, sources=(SEEN,)), SourcesFound(grade=4, sources=(SEEN,))
    sorry = answered("Sorry.", SEEN)
    assert judged("en", "?", [none, sorry, Done()]).problem == "refused"
    assert judged("en", "?", [found, sorry, Done()]).problem == "no page cited"
    assert judged("en", "?", [found, Failed(code="timeout", message="Too long."), Done()]).problem == "failed: timeout"
    assert judged("en", "?", [found]).problem == "no answer in time"


def test_which_questions_are_asked() -> None:
    chat = ChatSettings(examples={"de": (" Was? ", "Wo?"), "en": ("What?",)})
    settings = Settings(sites={"town": SiteSettings(chat=chat), "bare": SiteSettings(), "demo": SiteSettings()})
    questions = example_questions(settings, "town")
    assert chosen(questions, "town", None) == [("de", "Was?"), ("de", "Wo?"), ("en", "What?")]
    assert chosen(questions, "town", "en") == [("en", "What?")]
    with pytest.raises(WrongUse, match=r"sites\.town\.chat\.examples.* in fr.*de, en"):
        chosen(questions, "town", "fr")
    with pytest.raises(WrongUse, match="bare"):
        chosen(example_questions(settings, "bare"), "bare", None)
    assert len(chosen(example_questions(settings, "demo"), "demo", None)) >= 8


def test_a_site_without_questions_is_wrong_use(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    config = str(tmp_path) + "/pagewire.yaml"
    with open(config, "w", encoding="utf-8") as file:
        file.write("sites: {town: {}}")
    monkeypatch.setenv("PAGEWIRE_CONFIG", config)
    assert CliRunner().invoke(app, ["check", "town"]).exit_code == 2
