"""What a search finds on an ordinary website, as much as is looked into: for questions that are none."""

from __future__ import annotations

import random

import numpy as np

from adapters.elastic.search import MAX_STEMS
from pipelines.query.retrieve.retrieve import LOOKED_INTO
from pipelines.query.search.ports import Hit, HitUnit
from schemas.ingest import Vector32

DIMS, UNITS, WORDS = 64, 5, 4_000

_chance = random.Random(29)
_words = ["".join(_chance.choices("abcdefghiklmnoprstuvwz", k=_chance.randint(3, 11))) for _ in range(WORDS)]


def _vector() -> Vector32:
    vector = np.array([_chance.random() for _ in range(DIMS)], np.float32)
    return vector / np.linalg.norm(vector)


VECTOR = _vector()


def _hit(page: int, ord: int, texts: list[str]) -> Hit:
    return Hit(
        page_key=f"town:en:{page}",
        page_id=str(page),
        lang="en",
        title=" ".join(_chance.sample(_words, 4)),
        url=f"/{page}",
        field="content",
        ord=ord,
        text=" ".join(texts),
        revision=1,
        score=_chance.random(),
        cosine=0.8,
        bm25=2.0,
        units=tuple(HitUnit(start=100 * n, text=text, kind="prose", vector=_vector()) for n, text in enumerate(texts)),
    )


def _sentences() -> list[str]:
    return [f"{' '.join(_chance.sample(_words, 14))}." for _ in range(UNITS)]


# Stems of a question, as many as an index is asked for.
TERMS = [(word, n % 4) for n, word in enumerate(_words[:MAX_STEMS])]
HITS = [_hit(page, 2, _sentences()) for page in range(LOOKED_INTO)]
NEAR = [_hit(page, ord, _sentences()) for page in range(LOOKED_INTO) for ord in (1, 3)]


def hits_of(text: str) -> list[Hit]:
    """Chunks that say nothing else."""
    return [_hit(page, 2, [text[:1_000]]) for page in range(LOOKED_INTO)]
