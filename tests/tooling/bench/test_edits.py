"""The edit benchmark: an edit is one sentence, and hashes and receipt count the same."""

from __future__ import annotations

import random
from itertools import chain

import pytest

from bench import edits
from schemas.ingest import Chunker

CHUNKER = Chunker(mode="content", size=200, overlap=0.2)
PAGE = [["# Heading"], ["One two.", "Three four."], ["Five six.", "Seven eight."]]


@pytest.mark.parametrize(("edit", "sentences"), [("insert", 6), ("change", 5), ("remove", 4)])
def test_an_edit_is_one_sentence_of_the_prose(edit: str, sentences: int) -> None:
    for seed in range(20):
        after = edits.edited(PAGE, edit, ["Another one."], random.Random(seed))
        assert after[0] == ["# Heading"]
        assert len(list(chain(*after))) == sentences
        kept = [sentence for sentence in chain(*after) if sentence != "Another one."]
        assert len(kept) == (4 if edit != "insert" else 5)


def test_paragraphs_without_a_sentence_left_are_gone() -> None:
    assert edits.written([["One."], [], ["Two.", "Three."]]) == "One.\n\nTwo. Three."


async def test_the_receipt_counts_as_embedded_what_the_hashes_say_is_new() -> None:
    text = next(edits.generated())
    rng = random.Random(1)
    page = edits.long_page(text, CHUNKER.size, rng)
    before = edits.as_html(edits.written(page))
    after = edits.as_html(edits.written(edits.edited(page, "change", text.sentences, rng)))
    cost = len(edits.hashes(after, CHUNKER) - edits.hashes(before, CHUNKER))
    assert cost >= 1
    assert await edits.on_receipt(before, after, CHUNKER) == cost
    assert await edits.on_receipt(before, before, CHUNKER) == 0


def test_a_line_of_the_table() -> None:
    name, size, chunks, _, count, mean, p50, *_, worst, above = edits.measure(next(edits.generated()), CHUNKER, 30)
    assert (size, count, above) == (200, 30, 0)
    assert 30 <= int(str(chunks)) <= 80
    assert 1 <= float(str(mean)) <= float(str(worst)) <= 6
    assert name
    assert p50


def test_the_sample_site_has_headings_tables_and_prose() -> None:
    for text in edits.sample_site():
        assert len(text.sentences) > 400
        assert not all(map(edits.is_prose, text.paragraphs))
