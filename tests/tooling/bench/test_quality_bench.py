"""The quality benchmarks' arithmetic: what counts as right, how scores are fitted, what is left out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from bench import gate, gate_sites, quality
from bench.corpora import Article, Asked, Corpus
from bench.gate_sites import Kind, Sample
from bench.quality import Judged
from bench.website import KeptVectors
from pipelines.runtime.errors import SettingsError
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.sparse_embedder import FakeSparseEmbedder

CORPUS = Corpus(
    "en",
    tuple(Article(f"{n:02d}", f"Page {n}", ("First.", "Second.", "Third.", "Fourth.", "Fifth.")) for n in range(48)),
    tuple(Asked(f"Question {n}-{p}?", f"{n:02d}", "Second", p) for n in range(48) for p in range(5)),
)


def test_a_paragraph_is_left_out_of_every_page_and_nothing_else() -> None:
    page = CORPUS.site(without=1)[7]
    assert (page.title, page.content.count("<p>")) == ("Page 7", 4)
    assert "Second" not in page.content
    assert CORPUS.pages[7].content.count("<p>") == 5


def test_each_question_is_put_to_the_sites_that_cannot_answer_it() -> None:
    found = gate_sites.variants(CORPUS)
    assert [variant.kind for variant in found.values()] == ["answerable", *["page out"] * 5, *["paragraph out"] * 5]
    for variant in found.values():
        pages = {page.id: page.content for page in variant.pages}
        for asked in (CORPUS.questions[n] for n in variant.questions):
            paragraph = ("First", "Second", "Third", "Fourth", "Fifth")[asked.paragraph]
            assert (paragraph in pages.get(asked.page_id, "")) == (variant.kind == "answerable")
    assert sum(len(v.questions) for v in found.values() if v.kind == "paragraph out") == len(CORPUS.questions)
    assert all(len(v.pages) == 24 for v in found.values() if v.kind == "page out")


def test_an_answer_is_looked_for_as_a_reader_sees_it() -> None:
    assert quality.holds(["It costs **4 euros** today."], "4 euros today")
    assert not quality.holds(["It costs 4", "euros."], "4 euros")


def test_ours_is_compared_with_the_best_of_the_others() -> None:
    right = np.zeros((10, 4), bool)
    ours, best = right | True, right.copy()
    best[:9] = True
    judged = [
        Judged(quality.OURS, ours),
        Judged(quality.VECTORS, right),
        Judged(quality.KEYWORDS, best),
    ]
    lines = list(quality.differences("en", judged))
    assert lines[0][2:4] == (quality.KEYWORDS, pytest.approx(0.1))
    assert len(lines) == len(quality.FIGURES)
    *_, low, high = lines[0]
    assert low <= 0.1 <= high  # type: ignore[operator]


def test_a_question_in_one_language_has_its_answer_in_the_other() -> None:
    german = Corpus("de", CORPUS.articles, tuple(Asked(f"Frage {n}?", "00", "Zweite", 0) for n in range(240)))
    asked = quality.together(german, CORPUS)[6]
    assert (asked.question, asked.page_id, asked.answer, asked.paragraph) == ("Frage 6?", "01", "Second", 1)


def sample(kind: Kind, value: float, training: bool = True, foreign: bool = False, pair: str = "en") -> Sample:
    signals = dict.fromkeys((*gate.FULL, *gate.FOREIGN_FULL), value)
    return Sample(pair, kind, training, foreign, signals)


def samples(training: bool = True) -> list[Sample]:
    rng = np.random.default_rng(1)
    values: Sequence[tuple[Kind, float]] = (("answerable", 0.8), ("page out", 0.3), ("paragraph out", 0.6))
    return [sample(kind, rng.normal(mean, 0.1), training) for kind, mean in values for _ in range(200)]


def test_the_fit_finds_what_tells_the_two_apart() -> None:
    found = gate.regression(samples(), ["top"])
    assert found.weights["top"] > 5
    assert found.score({"top": 0.9}) > 0.9 > 0.1 > found.score({"top": 0.2})


def test_thresholds_come_from_the_training_pages_alone() -> None:
    unseen = [sample("answerable", -5.0, training=False)] * 50
    assert gate.fitted([*samples(), *unseen], gate.QUICK, gate.FULL) == gate.fitted(samples(), gate.QUICK, gate.FULL)
    assert gate.fitted([each for each in samples() if each.kind == "answerable"], gate.QUICK, gate.FULL) is None


def test_the_shipped_threshold_refuses_what_it_was_chosen_for() -> None:
    scores = gate.fitted(samples(), gate.QUICK, gate.FULL)
    assert scores
    assert 0 < scores.no < scores.yes < 1
    [row, _] = gate.rows([*samples(), *samples(training=False)], scores, None)
    pair, pages, easy, hard, false, *_ = row
    assert (pair, pages) == ("en", "all")
    assert 0.7 < float(str(hard)) <= float(str(easy)) <= 1
    assert float(str(false)) == pytest.approx(gate.CHOSEN_REFUSALS, abs=0.02)


def test_the_shipped_threshold_spares_the_questions_of_every_site() -> None:
    alone = gate.fitted(samples(), gate.QUICK, gate.FULL)
    others = [sample("answerable", 0.5, pair=gate_sites.SAMPLE)] * gate.FEW
    both = gate.fitted([*samples(), *others], gate.QUICK, gate.FULL)
    assert alone
    assert both
    assert alone.full.score(others[0].signals) < alone.threshold
    assert both.full.score(others[0].signals) >= both.threshold


def test_the_sample_site_has_questions_of_both_kinds_and_a_page_that_is_out_is_gone() -> None:
    whole, *halves = gate_sites.sample_variants().values()
    assert {kind for _, kind in whole[1]} == {"answerable", "page out"}
    assert all(len(pages) < len(whole[0]) and questions for pages, questions in halves)


def test_a_threshold_lies_above_the_share_refused() -> None:
    assert gate.threshold([n / 100 for n in range(101)], 0.1) == pytest.approx(0.1)


def test_an_embedder_with_sparse_vectors_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no sparse vectors"):
        KeptVectors(FakeSparseEmbedder(), tmp_path)


async def test_a_text_is_embedded_once_in_its_life(tmp_path: Path) -> None:
    for expected in (["a", "b"], ["c"]):
        model = FakeEmbedder()
        async with KeptVectors(model, tmp_path) as kept:
            vectors = await kept.passages(["a", "b", "a", *(["c"] if expected == ["c"] else [])])
            assert model.embedded == expected
            np.testing.assert_array_equal(vectors[0], vectors[2])
            np.testing.assert_array_equal(vectors[1], await FakeEmbedder().query("b"))
            await kept.query("a")
            assert model.asked == (["a"] if expected == ["a", "b"] else [])  # a question is no passage
