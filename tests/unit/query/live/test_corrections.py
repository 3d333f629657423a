"""Corrections as the stages know them: words that mean others, and which corrections there are."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pipelines.query.live.corrections import (
    CorrectionSet,
    SiteCorrections,
    StoredCorrection,
    correction_id,
    page_content,
    synonym_circle,
    with_synonyms,
    written_correction,
)
from pipelines.query.live.glossary import terms, terms_back, widened
from pipelines.query.live.site_prompts import SitePrompts
from schemas.correction import Correction
from schemas.text_version import TextVersion
from tests.asking import NOON
from wiring.settings import SiteSettings


def means(word: str, other: str, both: bool = False) -> Correction:
    return Correction(kind="synonym", lang="de", word=word, means=other, both=both)


def version(name: str, text: str | None, n: int = 1) -> TextVersion:
    at = NOON + timedelta(minutes=n)
    return TextVersion(site="town", kind="corrections", name=name, version=n, text=text, by="ada", at=at)


@pytest.mark.parametrize(
    ("both", "asked", "searched"),
    [
        (False, "Was kostet ein Perso?", "Was kostet ein Perso? Personalausweis"),
        (False, "Was kostet ein Personalausweis?", "Was kostet ein Personalausweis?"),
        (True, "Was kostet ein Personalausweis?", "Was kostet ein Personalausweis? Perso"),
        (False, "Wie viele Personen?", "Wie viele Personen?"),  # a short word is the beginning of others by chance
    ],
)
def test_a_synonym_is_searched_one_way_or_both_and_never_said(both: bool, asked: str, searched: str) -> None:
    prompts = SitePrompts()
    prompts.take([version("w1", written_correction(means("Perso", "Personalausweis", both)))])
    site = SiteSettings(glossary={"Fundbüro": {"de": "Fundstelle"}})
    glossary = prompts.of("town").searched_by(site)
    assert widened(glossary, "de", asked) == searched
    assert widened(glossary, "de", "Fundstelle") == "Fundstelle Fundbüro"  # the site's own is there as well
    assert terms(prompts.of("town").glossary_of(site), "en", asked) == ""
    if "Perso?" in asked:
        assert "Perso: Personalausweis" in terms_back(glossary, asked)


def test_a_synonym_is_added_to_what_the_glossary_calls_a_thing() -> None:
    glossary = with_synonyms(
        {"Fundbüro": {"en": "lost property", "de": "Fundstelle"}}, [means("Verlorenes", "Fundbüro")]
    )
    for name in ("lost property", "Fundstelle", "Verlorenes"):
        assert "Fundbüro" in widened(glossary, "de", f"Wo ist {name}?")


@pytest.mark.parametrize(
    ("synonyms", "circle"),
    [
        ([means("a", "b"), means("b", "c")], False),
        ([means("a", "b", True)], False),  # as it is meant
        ([means("a", "b"), means("b", "A")], True),
        ([means("a", "b"), means("b", "c"), means("c", "a")], True),
        ([means("a", "b", True), means("b", "c"), means("c", "a")], True),
        ([means("a", "a")], True),
        ([means("a", "A", True)], True),
        ([means("Fundbüro", "Verlorenes"), means("Verlorenes", "lost property")], True),  # which the glossary closes
    ],
)
def test_a_circle_is_found(synonyms: list[Correction], circle: bool) -> None:
    assert bool(synonym_circle(synonyms, {"Fundbüro": {"en": ["lost property"]}})) == circle


def test_what_was_taken_back_or_cannot_be_read_is_not_in_force() -> None:
    refusal: dict[str, Any] = {"kind": "refusal", "lang": "en", "questions": ["Why?"], "text": "No."}
    good = written_correction(Correction.model_validate(refusal))
    corrections = SiteCorrections()
    corrections.take([version("c1", good), version("c2", None), version("c3", '{"kind": "of-tomorrow"}')])
    assert [one.id for one in corrections.of("town").kept] == ["c1"]
    assert corrections.of("other").kept == ()


def test_a_question_has_one_correction_whatever_its_kind_and_a_page_one_content_however_it_is_cut() -> None:
    one = Correction(kind="refusal", lang="en", questions=("Where is the cinema?", "Cinema?"), text="There is none.")
    other = one.model_copy(update={"questions": ("where is THE cinema",), "text": "Gone."})
    id = correction_id(one, CorrectionSet())
    assert correction_id(one, CorrectionSet()) == id  # a request may be repeated
    assert correction_id(other, CorrectionSet((StoredCorrection("c7", NOON, one),))) == "c7"
    changed = one.model_copy(update={"questions": ("Is there a theatre?",)})
    assert correction_id(one, CorrectionSet((StoredCorrection(id, NOON, changed),))) != id
    assert page_content(["Open daily. ", "Closed\non Sunday."]) == page_content(["Open daily. Closed ", "on Sunday."])
    assert page_content(["Open daily."]) != page_content(["Open weekly."])
