"""Answers that quote."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from pipelines.query.extract import LONGEST, MAX_EMBEDDED, candidates, extract
from pipelines.query.ports import Matrix32
from pipelines.words import stems
from schemas.query import Source
from tests.asking import source


class BagOfWords:
    """Vectors whose cosine grows with the words two texts share."""

    dims = 512

    def __init__(self) -> None:
        self.embedded: list[str] = []

    async def passages(self, texts: Sequence[str]) -> Matrix32:
        self.embedded += texts
        return np.stack([self._vector(text) for text in texts])

    async def query(self, text: str) -> Matrix32:
        return self._vector(text)

    def _vector(self, text: str) -> Matrix32:
        vector = np.zeros(self.dims, dtype=np.float32)
        for stem in stems(text):
            vector[zlib.crc32(stem.encode()) % self.dims] += 1
        return vector / (np.linalg.norm(vector) or 1)


POOL = source(
    1,
    "# Swimming pool\n\nThe pool lies by the lake. It opens daily at 9. Dogs must stay outside. "
    "A ticket to the pool costs 4 euros.",
)
LIBRARY = source(2, "The library lends books and films. A library card costs 12 euros a year.")


async def quoted(question: str, *sources: Source, limit: int = 3) -> tuple[str, list[tuple[int, str]]]:
    extract_ = await extract(question, sources, BagOfWords(), "The website says:", limit)
    return extract_.text, [(c.n, extract_.text[c.start : c.end]) for c in extract_.citations]


async def test_the_sentence_that_answers_is_quoted_and_cited() -> None:
    text, citations = await quoted("What does a ticket to the pool cost?", POOL, LIBRARY, limit=1)
    assert text == "The website says:\n\n> A ticket to the pool costs 4 euros."
    assert citations == [(1, "A ticket to the pool costs 4 euros.")]


async def test_sentences_of_a_source_stay_in_reading_order_and_gaps_show() -> None:
    text, citations = await quoted("When daily does the pool by the lake open, and what does a ticket cost?", POOL)
    assert text == (
        "The website says:\n\n> The pool lies by the lake. It opens daily at 9. … A ticket to the pool costs 4 euros."
    )
    assert [n for n, _ in citations] == [1, 1, 1]


async def test_what_is_far_behind_the_best_is_not_quoted_to_fill_up() -> None:
    pages = [POOL, LIBRARY, source(3, "The mayor opens the market. Bring coins.")]
    _, citations = await quoted("What does a ticket to the pool cost?", *pages)
    assert citations[-1] == (1, "A ticket to the pool costs 4 euros.")
    assert all("mayor" not in text and "coins" not in text and "Dogs" not in text for _, text in citations)


async def test_every_source_has_its_own_quotation() -> None:
    text, citations = await quoted("What does a library card and a ticket cost?", POOL, LIBRARY, limit=2)
    assert text.count("\n\n> ") == 2
    assert [n for n, _ in citations] == [1, 2]


async def test_citations_carry_the_sentence_as_it_reads_on_the_page() -> None:
    page = source(1, "The pool opens at **9** on [weekdays](/hours).")
    extract_ = await extract("When does the pool open?", [page], BagOfWords(), "It says:")
    assert [c.quote for c in extract_.citations] == ["The pool opens at 9 on weekdays."]


async def test_a_slightly_better_sentence_far_below_does_not_win() -> None:
    others = [source(n, f"Number {n} is about something else entirely.") for n in (2, 3, 4)]
    good, better = source(1, "A ticket costs 4 euros today."), source(5, "A ticket costs 4 euros.")
    assert (await quoted("What does a ticket cost?", better, *others, good, limit=1))[1][0][0] == 5
    assert (await quoted("What does a ticket cost?", good, *others, better, limit=1))[1][0][0] == 1


async def test_a_short_list_is_quoted_with_the_words_that_introduce_it() -> None:
    page = source(1, "Come early.\n\nFor a passport bring:\n\n- a photo\n- 60 euros\n\nWe are closed on Mondays.")
    text, citations = await quoted("What do I need for a passport?", page, limit=1)
    assert text == "The website says:\n\n> For a passport bring:\n> \n> - a photo\n> - 60 euros"
    assert len(citations) == 1


async def test_items_of_a_long_list_keep_its_introduction() -> None:
    items = "".join(f"- document number {i} of the long list of papers\n" for i in range(20)) + "- a recent photo\n"
    text, _ = await quoted("Is a recent photo needed?", source(1, f"Please bring:\n\n{items}"), limit=1)
    assert text == "The website says:\n\n> **Please bring:**\n>\n> - a recent photo"


async def test_a_table_row_keeps_its_header() -> None:
    page = source(1, "| Day | Hours |\n| --- | --- |\n| Monday | 9-18 |\n| Sunday | closed |\n")
    text, citations = await quoted("Hours on Sunday?", page, limit=1)
    assert text == "The website says:\n\n> | Day | Hours |\n> | --- | --- |\n> | Sunday | closed |"
    assert citations == [(1, "| Sunday | closed |")]


async def test_nothing_to_quote_is_empty() -> None:
    for sources in [(), (source(1, "# Only a heading"),), (source(1, "***"),)]:
        assert (await extract("Why?", sources, BagOfWords(), "It says:")).events == ()


async def test_one_sentence_is_enough() -> None:
    text, _ = await quoted("Why?", source(1, "Because."))
    assert text == "The website says:\n\n> Because."


async def test_no_more_is_embedded_than_a_visitor_can_wait_for() -> None:
    long = source(1, " ".join(f"Sentence {i} says a thing." for i in range(200)) + " The pool opens at 9.")
    embedder = BagOfWords()
    extract_ = await extract("When does the pool open?", [long], embedder, "It says:", 1)
    assert len(embedder.embedded) == MAX_EMBEDDED
    assert extract_.text.endswith("> The pool opens at 9.")


def test_nothing_is_offered_twice_and_only_the_best_sources_are_read() -> None:
    same = [source(n, f"The same sentence. Only on page {n}.") for n in range(1, 8)]
    texts = [c.text for c in candidates(same)]
    assert texts.count("The same sentence.") == 1
    assert "Only on page 5." in texts
    assert "Only on page 6." not in texts


def test_an_endless_sentence_is_cut() -> None:
    (candidate,) = candidates([source(1, "word " * 500)])
    assert len(candidate.text) <= LONGEST + 2
    assert candidate.text.endswith(" …")


def test_the_header_row_alone_is_not_offered() -> None:
    assert [c.text for c in candidates([source(1, "| Day | Hours |\n| --- | --- |\n| Mon | 9 |")])] == ["| Mon | 9 |"]
