"""What all vectors of an embedder have in common: from this its profile is taken (adapters/embedders).

units of XQuAD, some of each language ─▶ embedded ─▶ mean of each language ─▶ their mean ─▶ base64 to paste

Each language counts the same, so that what is left does not depend on the language of the pages. It is measured on
texts that no website of ours has: on the sample site's everyday questions it serves as well as that site's own mean.
"""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from adapters.embedders.base import Vectors
from adapters.embedders.registry import make_embedder
from bench.report import report
from bench.xquad import Corpus, load
from schemas.compact import compact
from text.units import units
from wiring.settings import Settings

EACH = 100  # units of a language: with 250 of two languages the direction is hardly another
TRAINING = 24  # pages
SEED = 1


def main(data: Path, langs: Sequence[str], embedder: str) -> None:
    """Print `EmbedderProfile.common`, and how much of a vector it is."""
    means = asyncio.run(_means([load(data, lang) for lang in langs], embedder))
    mean = np.mean(means, axis=0)
    direction = mean / np.linalg.norm(mean)
    lines = [
        (lang, float(np.linalg.norm(each)), float(each @ direction)) for lang, each in zip(langs, means, strict=True)
    ]
    report("common", f"mean of {EACH} vectors, {embedder}", ("language", "length", "along the common direction"), lines)
    print(base64.b64encode(compact(direction[None])[0]).decode())


async def _means(corpora: Sequence[Corpus], spec: str) -> list[Vectors]:
    model = make_embedder(spec, Settings())
    await model.start()
    try:
        return [(await model.passages(_senses(corpus))).mean(axis=0) for corpus in corpora]
    finally:
        await model.aclose()


def _senses(corpus: Corpus) -> list[str]:
    """Some of them, by chance."""
    articles = corpus.articles[:TRAINING]
    senses = [
        unit.sense(article.title)
        for article in articles
        for paragraph in article.paragraphs
        for unit in units(paragraph, corpus.lang)
    ]
    random.Random(SEED).shuffle(senses)
    return senses[:EACH]
