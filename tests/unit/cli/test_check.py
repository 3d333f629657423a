"""What `pagewire eval check` says of an answer."""

from __future__ import annotations

import pytest

from cli.check import chosen, example_questions, judged, judged_as
from pipelines.evaluate.dataset import Case
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


def test_what_an_editor_has_put_right_is_to_be_as_it_was_said() -> None:
    page = Case.model_validate({"question": "Card?", "lang": "en", "pages": ["p1"]})
    refused = Case.model_validate({"question": "Sue?", "lang": "en", "expect": "refuse"})
    other = CITED.model_copy(update={"page_id": "p9"})
    no = answered("Ask a lawyer.", SEEN)
    for case, said, problem in (
        (page, answered("12 euros.", CITED), ""),
        (page, answered("12 euros.", other), "not from the page of its correction, p1"),
        (page, no, "not from the page of its correction, p1"),
        (refused, no, ""),
        (refused, answered("12 euros.", CITED), "answered, but an editor refuses it"),
    ):
        assert judged_as(case, [SourcesFound(grade=0, sources=(SEEN,)), said, Done()]).problem == problem
    assert judged_as(page, []).problem == "no answer in time"


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
