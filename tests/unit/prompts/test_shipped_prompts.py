"""The prompts we ship, as a model reads them: a change of their text shows in review."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.query.rephrase.rewrite import values
from prompts.loader import HERE, load
from schemas.query import Turn
from tests.asking import question

SNAPSHOTS = Path(__file__).parent / "snapshots"
HISTORY = (Turn(question="When is the pool open?", answer="Daily from 9 am to 8 pm."),)


@pytest.mark.parametrize(("lang", "language"), [("en", "English"), ("de", "German")])
def test_rephrase(lang: str, language: str) -> None:
    given = values(question(history=HISTORY, lang=lang), site="Town", language=language, history_messages=15)
    messages = load("rephrase").messages(given, lang)
    shown = "\n\n".join(f"=== {m.role}\n{m.content}" for m in messages) + "\n"
    assert shown == (SNAPSHOTS / f"rephrase.{lang}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(p.name.split(".")[0] for p in HERE.glob("examples/*.en.yaml")))
def test_every_prompt_has_examples_in_english_and_german(name: str) -> None:
    assert set(load(name).examples) >= {"en", "de"}
