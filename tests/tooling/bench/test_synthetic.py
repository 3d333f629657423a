"""Synthetic pages: what the three topics say of a page agrees, and is the same every time."""

from __future__ import annotations

import numpy as np

from bench.synthetic import CHUNKS_A_PAGE, Model, change, embeddings
from pipelines.ingest.embedding_plan import plan
from pipelines.ingest.handlers import chunked
from schemas.ingest import Chunker, PageChunks

CHUNKER = Chunker(mode="content", size=512, overlap=0.2)
MODEL = Model("lite", "synthetic-8", 8)


def page(number: int) -> PageChunks:
    return chunked(change("town", number), CHUNKER, 1, 7)


def test_a_page_is_a_title_and_paragraphs_of_one_chunk_each() -> None:
    for number in range(50):
        assert len(page(number).chunks) == CHUNKS_A_PAGE
        assert all(400 <= len(chunk.text) <= 512 for chunk in page(number).chunks[1:])


def test_embeddings_are_named_by_the_hashes_the_embed_stage_would_look_up() -> None:
    [part] = embeddings(page(3), MODEL, chunks_offset=9)
    assert [chunk.embed_hash for chunk in part.chunks] == [p.embed_hash for p in plan(page(3), MODEL.fingerprint)]
    assert (part.change.partition, part.change.offset, part.chunks_offset) == (1, 7, 9)
    assert (part.model, part.dims, part.counts["content"]) == ("synthetic-8", 8, CHUNKS_A_PAGE - 1)


def test_a_paragraph_has_some_sentences_each_with_a_vector() -> None:
    [part] = embeddings(page(3), MODEL)
    assert all(3 <= len(chunk.units) <= 9 for chunk in part.chunks[1:])
    assert all(len(chunk.unit_vectors) == 8 * len(chunk.units) for chunk in part.chunks)


def test_vectors_have_length_one_and_differ_between_pages() -> None:
    [one], [other] = embeddings(page(1), MODEL), embeddings(page(2), MODEL)
    for chunk in one.chunks:
        np.testing.assert_allclose(np.linalg.norm(chunk.vector), 1, rtol=1e-6)
    assert not np.array_equal(one.chunks[0].vector, other.chunks[0].vector)


def test_the_same_number_gives_the_same_page() -> None:
    assert change("town", 5) == change("town", 5)
    assert embeddings(page(5), MODEL)[0].encode() == embeddings(page(5), MODEL)[0].encode()
