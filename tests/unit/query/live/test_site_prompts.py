"""A site may say things its own way; a mistake in that is told at start."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.query.live.site_prompts import PROMPTS, SENTENCES, SitePrompts
from pipelines.query.ports import BadTrial
from pipelines.runtime.errors import SettingsError
from prompts.loader import HERE, load, tried, written
from schemas.query import Trial
from tests.asking import question
from wiring.settings import Settings, SiteSettings


def site_prompts(folder: Path | None) -> SitePrompts:
    sites = {"town": SiteSettings(prompts=folder), "village": SiteSettings()}
    return SitePrompts.of_settings(Settings(sites=sites))


def test_every_file_we_ship_is_known() -> None:
    tables = {"languages", "leaning", "stopwords", "follow-ups", "every-day", "negations", "numbers", "amounts"}
    tables |= {
        "courtesies",
        "days",
        "particles",
        "parts",
        "structured-data",
        "other-names",
        "wants",
        "openings",
        "separable-verbs",
    }
    assert {file.stem for file in HERE.glob("*.yaml")} - tables == {*PROMPTS, *SENTENCES}


def test_a_sites_own_files_take_the_place_of_ours_for_that_site_only(tmp_path: Path) -> None:
    ours = (HERE / "courtesy.yaml").read_text(encoding="utf-8")
    (tmp_path / "courtesy.yaml").write_text(ours.replace("friendly", "cheerful"), encoding="utf-8")
    (tmp_path / "canned.yaml").write_text("lead-in: {en: 'We write:'}\n", encoding="utf-8")
    found = site_prompts(tmp_path)
    town, village = found.of("town"), found.of("village")
    assert "cheerful" in town.prompts["courtesy"].system[1].content
    assert town.phrases.say("lead-in", "en") == "We write:"
    assert village.phrases.say("lead-in", "en") == "The website says:"
    assert town.prompts["answer"] == village.prompts["answer"]
    assert site_prompts(None).of("town") == village


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("anwser.yaml", "x", r"anwser\.yaml is none of answer, "),
        ("answer.yaml", "x: [", r"answer\.yaml"),
        ("canned.yaml", "lead-in: []", r"canned\.yaml"),
    ],
)
def test_a_mistake_names_site_and_file(tmp_path: Path, name: str, text: str, complaint: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match=rf"sites\.town\.prompts: .*{complaint}"):
        site_prompts(tmp_path)


def test_a_trial_has_one_prompt_in_the_place_of_its_sites() -> None:
    found, shorter = site_prompts(None), written("rephrase").replace("{site}", "{site}, our town", 1)
    trial = Trial(prompt=shorter, prompt_name="rephrase")
    asked = question().model_copy(update={"trial": trial})
    assert found.asked(asked, "rephrase") == tried(shorter, load("rephrase"))
    assert found.asked(asked, "rephrase") != load("rephrase")
    assert found.asked(asked, "answer") == load("answer")
    assert found.asked(question(), "rephrase") == load("rephrase")
    other = asked.model_copy(update={"trial": trial.model_copy(update={"prompt_name": "answer"})})
    with pytest.raises(BadTrial):
        found.asked(other, "answer")


def test_a_folder_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"sites\.town\.prompts: no such folder"):
        site_prompts(tmp_path / "none")
