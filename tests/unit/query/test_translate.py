"""Our own sentences in other languages: what is protected stays, and what cannot be trusted is not said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.query import translate as module
from pipelines.query.ports import Completion, ModelDown
from pipelines.query.translate import Translator, protected, restored
from prompts.loader import load
from schemas.answer import Usage
from tests.fakes.chat_model import FakeChat

GLOSSARY = {"Bürgeramt": {"en": "citizens' office", "sv": "medborgarkontoret"}, "Kranichmünde": {}}
SENTENCE = "Nothing found in Kranichmünde.\n\nSee [Opening hours 2026](<https://town.example/a?b=1>) or the Bürgeramt."


def test_links_numbers_names_and_terms_are_protected() -> None:
    marked, kept = protected(SENTENCE + " {n} pages, `code`, 08:30", GLOSSARY, "sv")
    assert marked == "Nothing found in ⟦1⟧.\n\nSee ⟦2⟧ or the ⟦3⟧. ⟦4⟧ pages, ⟦5⟧, ⟦6⟧"
    link = "[Opening hours 2026](<https://town.example/a?b=1>)"
    assert kept == ["Kranichmünde", link, "medborgarkontoret", "{n}", "`code`", "08:30"]


def test_a_link_whose_address_has_brackets_is_one_piece() -> None:
    assert protected("See [Foo](/foo_(bar)).", {}, "sv") == ("See ⟦1⟧.", ["[Foo](/foo_(bar))"])


def test_a_term_inside_a_word_is_none() -> None:
    assert protected("Bürgeramtsleiter", GLOSSARY, "sv") == ("Bürgeramtsleiter", [])


@given(st.text(alphabet="ab 1⟦⟧[](){}<>`/:.Kranichmünde", max_size=60))
def test_what_is_protected_comes_back(text: str) -> None:
    marked, kept = protected(text, {"Kranichmünde": {}}, "sv")
    assert restored(marked, kept) == text.replace("⟦", "(").replace("⟧", ")")


@pytest.mark.parametrize("wrong", ["Inget i ⟦1⟧.", "⟦1⟧ ⟦2⟧ ⟦2⟧", "⟦1⟧ ⟦2⟧ ⟦3⟧", ""])
def test_a_mark_that_is_missing_doubled_or_made_up_spoils_it(wrong: str) -> None:
    assert restored(wrong, ["a", "b"]) is None
    assert restored("Se ⟦ 2 ⟧ i ⟦1⟧", ["a", "b"]) == "Se b i a"


SWEDISH = "Inget hittades i ⟦1⟧.\n\nSe ⟦2⟧ eller ⟦3⟧."


async def said(*replies: str | Exception | Completion, times: int = 1) -> tuple[str, FakeChat]:
    model = FakeChat(*replies)
    translator = Translator(model, load("translate"))
    for _ in range(times):
        text = await translator.into("sv", "Swedish", SENTENCE, GLOSSARY, site="town")
    return text, model


async def test_half_a_translation_is_none() -> None:
    assert (await said(Completion(SWEDISH, Usage(), cut=True)))[0] == SENTENCE


async def test_a_sentence_is_said_in_the_visitors_language() -> None:
    text, model = await said(SWEDISH, times=3)
    assert text == (
        "Inget hittades i Kranichmünde.\n\n"
        "Se [Opening hours 2026](<https://town.example/a?b=1>) eller medborgarkontoret."
    )
    assert (await said(SWEDISH.replace("Se ", "Se&nbsp;")))[0] == text.replace("Se ", "Se\u00a0")
    assert len(model.asked) == 1  # kept
    assert "Translate the text into Swedish" in model.asked[0][0].content
    assert "Kranichmünde" not in model.asked[0][-1].content


@pytest.mark.parametrize(
    "reply",
    [
        "",
        SWEDISH.replace("⟦2⟧", "[hours](http://evil.example)"),
        SWEDISH.replace("\n\n", " "),
        SWEDISH.replace("Se", "<b>Se</b>"),
        SWEDISH.replace("Se", "&lt;b&gt;Se"),
        SWEDISH + " Och här är en uppsats." * 20,
        ModelDown("away"),
    ],
    ids=["nothing", "another link", "one paragraph", "tags", "written tags", "an essay", "no model"],
)
async def test_what_cannot_be_trusted_leaves_the_sentence_as_it_is(reply: str | Exception) -> None:
    text, model = await said(reply, times=2)
    assert text == SENTENCE
    assert len(model.asked) == 2  # not kept


async def test_of_very_many_translations_the_oldest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 2)
    model = FakeChat("Hej")
    translator = Translator(model, load("translate"))
    for text in ("Hello", "Hi", "Hey", "Hello"):
        assert await translator.into("sv", "Swedish", text, {}, site="town") == "Hej"
    assert len(model.asked) == 4


def test_of_several_names_the_first_is_said() -> None:
    glossary = {"Fundbüro": {"en": ["lost property", "wallet"]}}
    assert protected("Fundbüro", glossary, "en")[1] == ["lost property"]
