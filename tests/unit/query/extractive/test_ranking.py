"""The units of what was found, measured against the question once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipelines.query.extractive.confidence import PLACE, graded, least_for_card, sureness
from pipelines.query.extractive.ranking import KEPT, REREAD, Findings, apart, weigh
from pipelines.query.search.ports import Background, Calibration, Hit, HitUnit, SurenessProfile
from schemas.compact import compact
from schemas.query import Gate, Source, Sure, SureOf
from tests.asking import source as cited_source

QUESTION = np.array([1.0, 0.0], np.float32)
TERMS = [("pool", 3), ("open", 2)]


def towards(cosine: float) -> Any:
    return np.array([cosine, (1 - cosine**2) ** 0.5], np.float32)


def unit(text: str, cosine: float, start: int = 0, **fields: Any) -> HitUnit:
    return HitUnit(start=start, text=text, kind=fields.pop("kind", "prose"), vector=towards(cosine), **fields)


def hit(page: str, ord: int, score: float, *units: HitUnit, lang: str = "en") -> Hit:
    return Hit(
        page_key=f"town:{lang}:{page}",
        page_id=page,
        lang=lang,
        title="",
        url=f"/{lang}/{page}",
        field="content",
        ord=ord,
        text=" ".join(each.text for each in units),
        revision=1,
        score=score,
        units=units,
    )


def found(*hits: Hit, near: tuple[Hit, ...] = (), question: str = "When is the pool open?") -> Findings:
    return weigh(question, QUESTION, hits, near, TERMS, 10)


def texts(findings: Findings) -> list[str]:
    return [each.unit.text for each in findings.units]


def test_the_unit_comes_first_that_means_the_same() -> None:
    assert texts(found(hit("a", 0, 0.5, unit("Far.", 0.5)), hit("b", 0, 0.5, unit("Near.", 0.9)))) == ["Near.", "Far."]


def test_units_of_an_untranslated_page_get_back_a_part_of_what_the_language_costs() -> None:
    council, pool = hit("council", 0, 0.5, unit("Sitzung.", 0.89), lang="de"), hit("pool", 0, 0.5, unit("Swim.", 0.9))
    around = hit("council", 1, 0.5, unit("Ort.", 0.888), lang="de")
    assert texts(found(council, pool, near=(around,)))[0] == "Swim."
    raised = found(replace(council, untranslated=True), pool, near=(around,))
    assert texts(raised) == ["Sitzung.", "Ort.", "Swim."]


@pytest.mark.parametrize("question", ["When is the pool open?", "pool hours?", "Is the pool shut?"])
def test_words_for_open_say_one_thing(question: str) -> None:
    near = [unit("Bring a towel to the pool.", 0.8), unit("| Monday | 9–18 |", 0.8, 40, headings=("Opening hours",))]
    assert texts(found(hit("a", 0, 0.5, *near), question=question))[0] == "| Monday | 9–18 |"


def test_words_of_the_question_count_in_a_compound_and_misspelled_too() -> None:
    same = [unit("Nothing at all.", 0.8), unit("The townmuseum is closed.", 0.8, start=20)]
    assert texts(found(hit("a", 0, 0.5, *same), question="Is the museum open?"))[0] == "The townmuseum is closed."
    assert texts(found(hit("a", 0, 0.5, *same), question="townmusuem?"))[0] == "The townmuseum is closed."


def test_words_of_the_headings_belong_to_it() -> None:
    same = [unit("Daily from nine.", 0.8, headings=("Bus",)), unit("Daily at ten.", 0.8, start=9, headings=("Pool",))]
    assert texts(found(hit("a", 0, 0.5, *same)))[0] == "Daily at ten."


def test_of_two_that_say_the_same_the_one_of_the_better_chunk_is_first() -> None:
    better = found(hit("a", 0, 0.4, unit("Worse.", 0.8)), hit("b", 0, 0.9, unit("Better.", 0.8)))
    assert texts(better) == ["Better.", "Worse."]


def test_pages_are_ordered_by_their_best_unit_and_scores_stay_in_order() -> None:
    first = hit("a", 0, 0.9, unit("Far.", 0.4))
    second = hit("b", 3, 0.6, unit("Far, too.", 0.4))
    neighbour = hit("b", 4, 0.0, unit("Near.", 0.95))
    ordered = found(first, second, near=(neighbour,)).ordered([first, second], 2)
    assert [(each.page_id, each.ord) for each in ordered] == [("b", 4), ("b", 3)]
    assert [each.score for each in ordered] == [0.9, 0.6]


def test_what_is_needed_is_among_the_best_chunks() -> None:
    hits = [hit("a", n, 0.9 - n / 10, unit(f"Near {n}.", 0.9)) for n in range(3)]
    ordered = found(*hits).ordered(hits, 2, [hits[2]])
    assert [(each.ord, each.score) for each in ordered] == [(0, 0.9), (2, 0.8)]
    assert found(*hits).ordered(hits, 2, [hits[1]]) == found(*hits).ordered(hits, 2)


class Wants:
    """A reranker that wants a word."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.read: list[str] = []

    async def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        self.read += passages
        return [0.9 if self.word in passage else 0.1 for passage in passages]


async def test_a_reranker_chooses_among_the_best_units_and_their_scores_stay_in_order() -> None:
    units = [unit(f"Sentence {n}.", 0.95 - n / 100, n * 20, headings=("Hours",)) for n in range(REREAD + 2)]
    measured = found(hit("a", 0, 0.5, *units))
    wants = Wants("Sentence 3.")
    reread = await measured.reread("When?", wants)
    assert wants.read[0] == "Hours\nSentence 0."
    assert len(wants.read) == REREAD
    assert texts(reread) == ["Sentence 3.", *[text for text in texts(measured) if text != "Sentence 3."]]
    assert [each.score for each in reread.units] == [each.score for each in measured.units]
    assert [each.cosine for each in reread.units[:2]] == pytest.approx([0.92, 0.95])


async def test_without_units_a_reranker_reads_nothing() -> None:
    assert not (await Findings(()).reread("When?", Wants("x"))).units


def test_hits_without_units_keep_their_order() -> None:
    hits = [hit("b", 0, 0.9), hit("a", 0, 0.6)]
    assert not found(*hits).units
    assert [each.page_id for each in found(*hits).ordered(hits, 5)] == ["b", "a"]


def test_evidence_names_the_source_that_it_stands_in() -> None:
    rows = [unit(f"| {n} | x |", 0.5 + n / 10, n, kind="row", header="| n | k |", block=7) for n in range(3)]
    findings = found(hit("a", 0, 0.5, *rows), hit("b", 0, 0.5, unit("Not among the sources.", 0.99)))
    source = Source(
        n=4, page_id="a", lang="en", title="", url="/en/a", field="content", ord=0, text=rows[0].text + rows[2].text,
        score=0.5, revision=1,
    )  # fmt: skip
    told = findings.cited([source])
    assert [(each.n, each.text, each.header, each.of) for each in told] == [
        (4, "| 2 | x |", "| n | k |", 3),
        (4, "| 0 | x |", "| n | k |", 3),
    ]


def test_translations_are_other_pages() -> None:
    findings = found(hit("a", 0, 0.5, unit("Same.", 0.9), lang="de"))
    english = Source(
        n=1, page_id="a", lang="en", title="", url="/en/a", field="content", ord=0, text="Same.", score=0.5, revision=1
    )
    assert findings.cited([english]) == ()


PROFILE = SurenessProfile(
    unit=Calibration(-8.0, {"cosine": 10.0}), page=Calibration(-5.0, {"cosine": 10.0}), least_unit=0.6, least_page=0.6
)


@pytest.mark.parametrize(("cosine", "of"), [(0.95, "unit"), (0.7, "page"), (0.3, "nothing")])
def test_how_sure_the_best_unit_is_is_told_by_its_signals(cosine: float, of: SureOf) -> None:
    sure = sureness(found(hit("a", 0, 0.5, unit("Said.", cosine))), PROFILE)
    assert sure is not None
    assert sure.of == of
    assert sure.signals["cosine"] == pytest.approx(cosine)


@pytest.mark.parametrize(("foreign", "of"), [(False, "nothing"), (True, "page")])
def test_a_question_in_another_language_is_measured_by_its_own_weights(foreign: bool, of: SureOf) -> None:
    sure = sureness(
        found(hit("a", 0, 0.5, unit("Said.", 0.4))),
        replace(PROFILE, foreign=Calibration(-3.0, {"cosine": 10.0})),
        foreign=foreign,
    )
    assert sure is not None
    assert sure.of == of


@pytest.mark.parametrize(
    ("others", "of"),
    [(("b", "c"), "nothing"), (("b",), "unit"), (("a", "b"), "unit"), (("b", "b"), "unit")],
)
def test_what_fits_as_well_on_many_pages_is_not_sure(others: tuple[str, str], of: SureOf) -> None:
    best = hit("a", 0, 0.5, unit("Said.", 0.95))
    beside = [hit(page, n, 0.5, unit(f"Said as well {n}.", 0.94), lang="de") for n, page in enumerate(others, 1)]
    sure = sureness(found(best, *beside), PROFILE)
    assert sure is not None
    assert sure.of == of


BACKGROUND = Background(units=4, cosine=0.2, score=5.0, spread=2.0, rival=7.0)


def test_a_site_of_one_sentence_is_compared_with_what_units_elsewhere_are_like() -> None:
    alone = found(hit("a", 0, 0.5, unit("Said.", 0.8)))
    assert (alone.signals()["ahead"], alone.signals()["margin"]) == (0, 0)
    best = alone.units[0].score
    signals = alone.signals(BACKGROUND)
    mean = (best + 3 * 5.0) / 4
    spread = ((best**2 + 3 * (2.0**2 + 5.0**2)) / 4 - mean**2) ** 0.5
    assert signals["ahead"] == pytest.approx((best - mean) / spread)
    assert signals["mean"] == pytest.approx((0.8 + 3 * 0.2) / 4)
    assert signals["margin"] == 5.0
    assert signals["pages"] == 0.1


def test_the_only_page_is_no_surer_the_more_it_says_beside() -> None:
    """Nothing stands against it, so it is held against what the best of another page is like elsewhere."""
    units = [unit(f"{number}.", 0.1, start=number) for number in range(9)]
    (best, *_) = (lonely := found(hit("a", 0, 0.5, *units))).units
    assert lonely.signals(BACKGROUND)["margin"] == pytest.approx(best.score - 7.0)


def test_where_enough_is_found_nothing_is_made_up() -> None:
    enough = found(hit("a", 0, 0.5, unit("a", 0.9), unit("b", 0.5)), hit("b", 0, 0.1, unit("c", 0.4), unit("d", 0.3)))
    assert enough.signals(BACKGROUND) == pytest.approx(enough.signals())


def test_nobody_knows_for_an_embedder_that_was_not_calibrated() -> None:
    sure = sureness(found(hit("a", 0, 0.5, unit("Said.", 0.1))), None)
    assert sure is not None
    assert (sure.of, sure.unit) == ("unit", None)
    assert sureness(found(hit("a", 0, 0.5)), PROFILE) is None


@pytest.mark.parametrize(
    ("grade", "of", "writes", "expected"),
    [
        (0, "unit", False, 0),
        (1, "page", False, 1),
        (4, "unit", False, 0),  # the gate refused what the units say
        (4, "page", True, 0),
        (4, "nothing", False, 0),  # its page is likely enough to be shown
        (0, "nothing", True, 0),  # a model may find it all the same
        (5, "nothing", True, 5),
    ],
)
def test_the_gate_is_corrected_by_what_the_units_say(grade: int, of: SureOf, writes: bool, expected: int) -> None:
    assert graded(grade, Sure(of=of, unit=0.5, page=0.5), writes) == expected


def test_a_page_is_shown_from_a_chance_on_that_an_operator_may_raise() -> None:
    assert graded(0, Sure(of="unit", unit=0.9, page=PLACE - 0.01), writes=False) == 4
    assert graded(0, Sure(of="unit", unit=0.9, page=0.5), writes=False, least=0.6) == 4


def test_a_card_needs_a_likelier_page_where_the_gate_doubts_or_was_not_asked() -> None:
    gate = Gate(distance=0.2, entropy=0.5, subject=0.5, by_figures=0)
    least = [least_for_card(gate.model_copy(update={"score": score})) for score in (0.9, 0.2, 0.01)]
    assert least == sorted(least)
    assert (least[1], least_for_card(None)) == (PLACE, least[2])
    assert least_for_card(gate) == PLACE  # of an embedder that nobody has calibrated


@pytest.mark.parametrize(("grade", "writes", "expected"), [(0, False, 5), (3, False, 5), (0, True, 0), (3, True, 3)])
def test_where_no_page_is_likely_to_answer_nobody_says_that_there_are_pages_about_it(
    grade: int, writes: bool, expected: int
) -> None:
    assert graded(grade, Sure(of="nothing", unit=0.1, page=0.2), writes) == expected


def test_without_a_calibration_the_gate_alone_decides() -> None:
    assert graded(4, Sure(of="unit"), False) == 4


def test_the_gate_is_told_the_nearest_units_with_their_titles() -> None:
    findings = found(hit("a", 0, 0.9, unit("Far.", 0.5)), hit("b", 0, 0.1, unit("Near.", 0.6)))
    assert [(each.text.strip(), each.lang) for each in findings.nearest] == [("Near.", "en"), ("Far.", "en")]


# Most of each vector is the first component, which tells nothing; what tells is the second.
CONE = [[0.95, 0.3, 0.0], [0.9, 0.3, -0.316], [0.95, 0.0, 0.312]]
COMMON = compact(np.array([[1.0, 0.0, 0.0]]))[0]


def test_what_all_vectors_have_in_common_tells_nothing() -> None:
    question, same, other = apart(np.array(CONE, np.float32), COMMON)
    assert np.linalg.norm([question, same, other], axis=1) == pytest.approx([1, 1, 1], rel=1e-3)
    assert question @ same == pytest.approx(0.69, abs=0.01)
    assert question @ other == pytest.approx(0, abs=0.01)
    assert not apart(np.array([[1.0, 0.0, 0.0]], np.float32), COMMON).any()  # nothing is left: like nothing


def test_units_are_told_apart_by_what_is_their_own_and_the_gate_by_cosines_as_they_are() -> None:
    question, same, other = np.array(CONE, np.float32)
    units = [
        HitUnit(start=n, text=text, kind="prose", vector=vector)
        for n, (text, vector) in enumerate((("Same.", same), ("Other.", other)))
    ]
    plain = weigh("What?", question, [hit("a", 0, 0.5, *units)], (), TERMS, 10)
    own = weigh("What?", question, [hit("a", 0, 0.5, *units)], (), TERMS, 10, COMMON)
    assert (texts(plain), texts(own)) == (["Same.", "Other."], ["Same.", "Other."])
    spread = [findings.units[0].cosine - findings.units[1].cosine for findings in (plain, own)]
    assert spread == [pytest.approx(0.043, abs=0.01), pytest.approx(0.69, abs=0.01)]
    assert [each.cosine for each in own.nearest] == [each.cosine for each in plain.nearest]
    assert [findings.signals()["common"] for findings in (plain, own)] == [0, pytest.approx(CONE[0][0], abs=0.01)]
    assert own.preferring("b").signals()["common"] == own.signals()["common"]


def test_what_closes_the_best_page_is_kept_among_many_units() -> None:
    many = [unit(f"Sentence number {n}.", 0.9 - n / 1000, 40 * n) for n in range(KEPT + 5)]
    closings = [unit("Closed in May.", 0.1, 4000, block=1), unit("Swim in June.", 0.1, 4040, block=2)]
    best, other = hit("pool", 0, 0.5, *many, *closings), hit("lido", 0, 0.5, unit("Closed in March.", 0.1))
    sources = [
        cited_source(n, each.text, title="").model_copy(update={"url": each.url})
        for n, each in enumerate((best, other), 1)
    ]
    kept = [each.text for each in found(best, other, question="Where is the water warm?").cited(sources)]
    assert "Closed in May." in kept
    assert "Swim in June." not in kept
    assert "Closed in March." not in kept
