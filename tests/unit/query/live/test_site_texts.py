"""What a site says in fixed words, and which of them are its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.query.live.site_prompts import PROMPTS
from pipelines.query.live.site_texts import site_texts
from pipelines.runtime.errors import SettingsError
from prompts.loader import HERE
from wiring.settings import Settings, SiteSettings


def settings(folder: Path | None, **more: object) -> Settings:
    site = SiteSettings.model_validate({"prompts": folder} | more)
    return Settings(sites={"town": site, "village": SiteSettings()})


def test_a_site_without_files_says_what_we_bring() -> None:
    found = site_texts(settings(None), "town")
    assert {one.name for one in found.prompts} == set(PROMPTS)
    assert not any(one.own or any(each.own for each in one.examples) for one in found.prompts)
    assert not any(one.own for one in found.sentences)
    assert (found.contact, found.glossary) == ({}, ())
    answer = next(one for one in found.prompts if one.name == "answer")
    assert {part.role for part in answer.parts} == {"system", "user"}
    assert {(each.lang, each.count > 0) for each in answer.examples} == {("de", True), ("en", True)}


def test_what_is_its_own_is_told_by_file_sentence_and_language(tmp_path: Path) -> None:
    ours = (HERE / "courtesy.yaml").read_text(encoding="utf-8")
    (tmp_path / "courtesy.yaml").write_text(ours.replace("friendly", "cheerful"), encoding="utf-8")
    (tmp_path / "canned.yaml").write_text("lead-in: {en: 'We write:'}\n", encoding="utf-8")
    (tmp_path / "examples").mkdir()
    example = (HERE / "examples" / "answer.de.yaml").read_text(encoding="utf-8")
    (tmp_path / "examples" / "answer.de.yaml").write_text(example.replace("title: ", "title: X", 1), encoding="utf-8")
    found = site_texts(settings(tmp_path), "town")
    prompts = {one.name: one for one in found.prompts}
    assert [name for name, one in prompts.items() if one.own] == ["courtesy"]
    assert [(each.lang, each.own) for each in prompts["answer"].examples] == [("de", True), ("en", False)]
    assert [(one.name, one.own) for one in found.sentences if one.own] == [("lead-in", ("en",))]
    said = next(one.said for one in found.sentences if one.name == "lead-in")
    assert (said["en"], said["de"]) == ("We write:", "Auf der Website steht:")
    assert not any(one.own for one in site_texts(settings(tmp_path), "village").prompts)


def test_the_glossary_is_as_it_is_configured() -> None:
    given = {"contact": {"en": "Ask us."}, "glossary": {"Fundbüro": {"en": ["lost property", "wallet"]}, "Bad": {}}}
    found = site_texts(settings(None, **given), "town")
    assert found.contact == given["contact"]
    assert [(one.term, one.names) for one in found.glossary] == [
        ("Fundbüro", {"en": ("lost property", "wallet")}),
        ("Bad", {}),
    ]


def test_a_wrong_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "canned.yaml").write_text("lead-in: []\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"sites\.town\.prompts: .*canned\.yaml"):
        site_texts(settings(tmp_path), "town")
