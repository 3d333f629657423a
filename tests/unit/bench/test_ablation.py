"""A part of the search is taken away as long as it is measured without it, and only then."""

from __future__ import annotations

import numpy as np
import pytest

import pipelines.query.retrieve.retrieve as stage
from bench.ablation import WITHOUT
from pipelines.query.extractive import assessment, ranking
from pipelines.query.search import search
from pipelines.query.search.ports import Hit, HitUnit

PLACES = {
    "fuse": search,
    "in_language": search,
    "language_by_words": search,
    "LOOKED_INTO": stage,
    "weigh": assessment,
    "APART_COSINE": ranking,
    "SHARED": ranking,
    "STANDING": ranking,
    "PAGE": ranking,
    "Likeness": ranking,
    "ordered": ranking.Findings,
}


def parts_in_place() -> dict[str, object]:
    return {name: getattr(place, name) for name, place in PLACES.items()}


@pytest.mark.parametrize("part", [part for part in WITHOUT if part != "nothing"])
def test_a_part_is_away_while_it_is_measured_and_back_afterwards(part: str) -> None:
    before = parts_in_place()
    with WITHOUT[part]():
        assert parts_in_place() != before
    assert parts_in_place() == before


@pytest.mark.parametrize(
    ("part", "word", "finds"),
    [
        ("nothing", "librery", True),
        ("misspelled words", "librery", False),
        ("misspelled words", "libraries", True),
        ("inflected, compound words", "libraries", False),
        ("inflected, compound words", "library", True),
        ("units' cosine", "librery", True),
    ],
)
def test_without_a_part_its_words_are_not_found(part: str, word: str, finds: bool) -> None:
    vector = np.array([1.0, 0.0], np.float32)
    unit = HitUnit(start=0, text="The library.", kind="prose", vector=vector)
    hit = Hit(
        page_key="town:en:a", page_id="a", lang="en", title="", url="/a", field="content", ord=0, text="The library.",
        revision=1, units=(unit,),
    )  # fmt: skip
    with WITHOUT[part]():
        [found] = ranking.weigh(word, vector, [hit], (), [], 10).units
    assert (found.shared > 0) == finds
