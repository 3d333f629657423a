"""Pages into topics, questions into groups of one meaning, and which page is nearest to each question.

vectors of pages ─┬─ (grouping, coarse) ─▶ a topic each, translations together
                  ├─ in blocks ─▶ the nearest page of each question, the nearest question of each page
of questions ─────┴─ (grouping) ─▶ a group each, as in gaps

One linkage over both kinds was tried and is worse: docs/decisions/032-coverage.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from pipelines.query.log.grouping import Numbers, grouped
from pipelines.runtime.embedder import Matrix32
from schemas.ingest import Vector32

# Mean cosine distance of two groups of pages, without the middles, up to which they are one topic. On the sample site
# a page and its translation are one from .60 on, and different subjects begin to be one above .72.
PAGES_APART = 0.72
BLOCK = 500  # questions compared with all pages at once: 40 MB with 20,000 pages
NONE = 2.0  # distance where there is nothing: as far as can be


class Placed(NamedTuple):
    """Numbers of topics and groups, and the nearest of the other kind."""

    pages: Numbers  # topic of each
    questions: Numbers  # group of each
    nearest: Numbers  # page of each question, by its place; -1: there is none
    to_page: Vector32  # cosine distance of each question to that page
    to_question: Vector32  # ... of each page to the question that is nearest to it


def placed(
    pages: Matrix32,
    page_langs: Sequence[str],
    questions: Matrix32,
    question_langs: Sequence[str],
    often: Sequence[int],
    common: bytes = b"",
) -> Placed:
    """
    Args:
        pages: (n, dims), each of length 1.
        questions: (m, dims), each of length 1, of distinct texts.
        often: how often each was asked.
        common: what all vectors of the model have in common, as schemas.compact has it.
    """
    return Placed(
        grouped(pages, page_langs, _drawn(pages), common, PAGES_APART),
        grouped(questions, question_langs, often, common),
        *_nearest(pages, questions),
    )


def _drawn(pages: Matrix32) -> list[int]:
    """A number for each, by which some of very many are linked first: it has nothing to do with what pages say."""
    return [int.from_bytes(blake2b(page.tobytes(), digest_size=7).digest()) for page in pages]


def _nearest(pages: Matrix32, questions: Matrix32) -> tuple[Numbers, Vector32, Vector32]:
    nearest: Numbers = np.full(len(questions), -1, dtype=np.int64)
    to_page: Vector32 = np.full(len(questions), NONE, dtype=np.float32)
    to_question: Vector32 = np.full(len(pages), NONE, dtype=np.float32)
    if not len(pages) or not len(questions):
        return nearest, to_page, to_question
    for begin in range(0, len(questions), BLOCK):
        cosines = questions[begin : begin + BLOCK] @ pages.T
        best = cosines.argmax(axis=1)
        nearest[begin : begin + BLOCK] = best
        to_page[begin : begin + BLOCK] = 1 - cosines[np.arange(len(best)), best]
        np.minimum(to_question, 1 - cosines.max(axis=0), out=to_question)
    return nearest, to_page, to_question
