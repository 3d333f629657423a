"""What a list of results shows of a hit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipelines.query.search.ports import Hit, HitUnit
from pipelines.query.search.snippet import LONGEST, searched, snippet, text_fragment
from schemas.http import Snippet
from schemas.ingest import UnitKind

AWAY, NEAR = np.array([1, 0], np.float32), np.array([0, 1], np.float32)


def unit(text: str, kind: UnitKind = "prose", headings: tuple[str, ...] = (), vector: np.ndarray = AWAY) -> HitUnit:
    return HitUnit(start=0, text=text, kind=kind, headings=headings, vector=vector)


def hit(*units: HitUnit, text: str = "") -> Hit:
    return Hit(
        page_key="town:en:pool",
        field="content",
        ord=0,
        page_id="pool",
        lang="en",
        title="Pool",
        url="/pool",
        text=text or "\n".join(each.text for each in units),
        revision=1,
        units=units,
    )


def said(shown: Snippet) -> str:
    return "".join(f"<{part.text}>" if part.match else part.text for part in shown.parts)


def test_the_sentence_with_the_words_and_what_follows_it() -> None:
    shown = snippet(
        hit(
            unit("Welcome to the pool."),
            unit("## Fees", "heading"),
            unit("A **ticket** costs 4 euros.", headings=("Visit", "Fees")),
            unit("Children swim for free."),
        ),
        "What do the tickets cost?",
    )
    assert said(shown) == "A <ticket> <costs> 4 euros. Children swim for free."
    assert shown.fragment == ":~:text=A%20ticket%20costs%204%20euros."
    assert shown.heading == "Fees"


def test_where_no_word_is_there_the_nearest_sentence_is_shown() -> None:
    units = [unit("The pool is open daily."), unit("Bring a towel.", vector=NEAR)]
    assert said(snippet(hit(*units), "Handtuch", NEAR)) == "Bring a towel."
    assert said(snippet(hit(*units), "Handtuch")) == "The pool is open daily. Bring a towel."
    assert said(snippet(hit(*units), "Handtuch", np.ones(3, np.float32))).startswith("The pool")  # of another model


def test_of_a_row_the_browser_looks_for_one_cell() -> None:
    shown = snippet(hit(unit("| Adults, all day | 4 € |", "row")), "adults")
    assert shown.fragment == ":~:text=Adults%2C%20all%20day"


def test_a_hit_without_sentences_shows_its_text_and_jumps_nowhere() -> None:
    shown = snippet(hit(text="Swim and sauna"), "sauna")
    assert (said(shown), shown.fragment) == ("Swim and <sauna>", "")


def test_a_long_text_is_cut_at_a_space() -> None:
    shown = snippet(hit(text="swim daily " * 100), "x")
    assert LONGEST // 2 < len(said(shown)) <= LONGEST + 1
    assert said(shown).endswith(("swim…", "daily…"))
    assert len(said(snippet(hit(text="x" * 1_000), "y"))) == LONGEST + 1


def test_words_that_say_nothing_are_not_marked_unless_there_are_no_others() -> None:
    assert searched("the pool", "en") == searched("pool", "en")
    assert searched("the", "en")


@pytest.mark.parametrize(
    ("lang", "text", "query", "shown"),
    [
        ("hi", "नगरपालिका कार्यालय खुला है", "कार्यालय", "नगरपालिका <कार्यालय> खुला है"),
        ("th", "สำนักงานเปิดวันจันทร์", "สำนักงาน", "<สำนักงาน>เปิดวันจันทร์"),
        ("ja", "市役所は月曜日に開いています", "市役所", "<市役所>は月曜日に開いています"),
        ("fr", "Les horaires de l’école", "école", "Les horaires de l’<école>"),
    ],
)
def test_words_are_marked_in_scripts_with_vowel_signs_or_without_spaces(
    lang: str, text: str, query: str, shown: str
) -> None:
    assert said(snippet(replace(hit(unit(text)), lang=lang), query)) == shown


def test_a_long_sentence_is_found_by_its_ends() -> None:
    assert text_fragment("a-b c, d") == ":~:text=a%2Db%20c%2C%20d"
    assert text_fragment("1 2 3 4 5 6 7 8 9 10 11 12") == ":~:text=1%202%203%204%205,8%209%2010%2011%2012"
    assert text_fragment(" ") == ""
    assert text_fragment("\ud83d") == ":~:text=%3F"
