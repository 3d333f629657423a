"""Struck keys are told from words, and what may be a name is not called gibberish."""

from __future__ import annotations

import pytest

from bench.trigrams import listed
from text.plausible import LISTED, gibberish


@pytest.mark.parametrize("said", ["asdkj qwpoe zzrt", "qwertz", "sdfgsdfg", "aaaaaa", "lkjh xkcdq", "!!!", "🙂🙂"])
def test_struck_keys(said: str) -> None:
    assert gibberish(said)


@pytest.mark.parametrize(
    "said",
    [
        "Luftfahrt",
        "hymn",
        "were",
        "Retter",
        "Kfz",
        "DVDs",
        "GPhC",
        "IPCC",
        "xyz",
        "4711",
        "Kyiv",
        "Szczecin",
        "Nguyễn",
        "strengths",
        "Öffnungszeiten asdf",
        "ประชุม",
        "会议",
    ],
)
def test_words_names_and_figures(said: str) -> None:
    assert not gibberish(said)


def test_the_list_holds_most_runs_of_what_it_is_made_from() -> None:
    """CLDR changes a little with every version; what was made from another still fits."""
    made, kept = set(listed().split("\n")[1:9]), set(LISTED.read_text(encoding="utf-8").split("\n")[1:9])
    longest = max(made, key=len)
    assert any(line[0] == longest[0] and abs(len(line) - len(longest)) < len(longest) / 10 for line in kept)
