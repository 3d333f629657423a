"""The set of true and false sentences, and what is reported of it."""

from __future__ import annotations

from bench.citations import Judged, judged, part_of, passages
from pipelines.query.answer.grounding import Doubt


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
