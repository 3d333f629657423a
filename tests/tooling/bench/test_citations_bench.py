"""The set of true and false sentences, and what is reported of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.citations import Judged, asked, judge_of, judged, part_of, passages
from pipelines.query.answer.grounding import Doubt
from pipelines.query.answer.judging import Claim, Judge, Verdicts
from pipelines.runtime.errors import SettingsError
from pipelines.runtime.settings import JudgeName
from schemas.query import Question


def test_the_set_has_two_hundred_sentences_and_both_halves_have_their_share_of_languages() -> None:
    every = passages()
    sentences = [one for each in every for one in judged(each)]
    assert len(sentences) == 200
    assert sum(one.fault is not None for one in sentences) == 97
    tuned, reported = part_of(every, "tune"), part_of(every, "report")
    assert sorted(each.passage for each in [*tuned, *reported]) == sorted(each.passage for each in every)
    assert [each.group for each in tuned].count("de") == [each.group for each in reported].count("de") == 8
    assert part_of(every[::-1], "report")[::-1] == reported


def test_a_sentence_is_judged_by_its_own_passage() -> None:
    [card] = [each for each in passages() if each.question == "What does a library card cost?"]
    found = list(judged(card))
    assert [(one.fault, one.doubt is None) for one in found[:3]] == [(None, True)] * 3
    assert found[3] == Judged("en", "A card costs 99 euros.", "number", Doubt("figure", "99 euros"))


class Scripted:
    """Finds all that it is asked about not borne out; or dies."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.claims: list[Claim] = []

    async def entailed(self, claims: Sequence[Claim], request: Question) -> Verdicts:
        self.claims += claims
        if self.error is not None:
            raise self.error
        return Verdicts((0.0,) * len(claims))


async def test_a_judge_is_asked_about_what_the_rules_leave() -> None:
    [card] = [each for each in passages() if each.question == "What does a library card cost?"]
    ruled, scripted = list(judged(card)), Scripted()
    found, spoke = await asked(card, ruled, Judge(scripted.entailed, 0.5, 5.0))
    assert spoke
    assert [claim.sentence for claim in scripted.claims] == [one.sentence for one in ruled if one.doubt is None]
    assert all(claim.sources[0].text == card.passage for claim in scripted.claims)
    assert [one.doubt for one in found if one.doubt in [r.doubt for r in ruled]] == [r.doubt for r in ruled if r.doubt]
    assert all(one.doubt is not None for one in found)


async def test_without_a_verdict_the_rules_are_reported() -> None:
    [card] = [each for each in passages() if each.question == "What does a library card cost?"]
    ruled = list(judged(card))
    assert await asked(card, ruled, Judge(Scripted(RuntimeError("away")).entailed, 0.5, 5.0)) == (ruled, False)


@pytest.mark.parametrize("name", ["model", "reranker"])
async def test_a_judge_that_is_not_configured_is_said_to_be_missing(
    name: JudgeName, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PAGEWIRE_LLM_MODEL", raising=False)
    with pytest.raises(SettingsError, match="names none"):
        async with judge_of(name):
            pass
