"""What an embedder's vectors are like: from this its profile is taken (adapters/embedders).

    XQuAD, cut as in production ─▶ cosines of right and of random pairs ─▶ floors
    units of it, some of each language ─▶ mean of each language ─▶ their mean, as base64 to paste ─▶ `common`

A question's right chunk is one of the right page that holds the answer. In what is common each language counts the
same, so that what is left does not depend on the language of the pages.
"""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from more_itertools import chunked
from numpy.typing import NDArray
from rich.progress import track

from adapters.embedders.base import Embedder
from adapters.embedders.registry import make_embedder
from bench.corpora import TRAINING, Corpus, load
from bench.report import Data, EmbedderName, names, percentile, report
from pipelines.ingest.chunk import chunk_field, embedded_text
from pipelines.ingest.documents.convert import convert
from schemas.compact import compact
from text.units import units
from wiring.settings import Settings

LOSS = 0.5  # percent of right hits that may fall below a floor
SLICE = 32
EACH = 100  # units of a language: with 250 of two languages the common direction is hardly another
SEED = 1


def main(
    data: Data,
    pairs: Annotated[str, typer.Option(help="Comma-separated: `PAGES` or `PAGES:QUESTIONS`.")] = "en,de,en:de",
    common: Annotated[str, typer.Option(help="Comma-separated languages.")] = "de,en,ar,ro,th,zh",
    embedder: EmbedderName = "lite",
) -> None:
    """Cosines of right and of random pairs, the floors that follow from them, and what all vectors have in common."""
    asyncio.run(_run(data, names(pairs), names(common), embedder))


async def _run(data: Path, pairs: Sequence[str], langs: Sequence[str], spec: str) -> None:
    settings = Settings()
    model = make_embedder(spec, settings)
    await model.start()
    lines = []
    try:
        for pair in pairs:
            pages, _, asked = pair.partition(":")
            lines += await _measure(pair, load(data, pages), load(data, asked or pages), model, settings)
        means = [(await model.passages(_senses(load(data, lang)))).mean(axis=0) for lang in langs]
    finally:
        await model.aclose()
    columns = ("pages:questions", "field", "pairs", "lowest", f"{LOSS} %", "median", "random median", "random 99 %")
    report("floors", f"cosine of right and of random pairs, {model.fingerprint}", columns, lines)
    mean = np.mean(means, axis=0)
    direction = mean / np.linalg.norm(mean)
    along = [(lang, float(np.linalg.norm(m)), float(m @ direction)) for lang, m in zip(langs, means, strict=True)]
    report("common", f"mean of {EACH} vectors, {spec}", ("language", "length", "along the common direction"), along)
    print(base64.b64encode(compact(direction[None])[0]).decode())


def _senses(corpus: Corpus) -> list[str]:
    """Some of a language's units, by chance."""
    articles = corpus.articles[:TRAINING]
    senses = [
        unit.sense(article.title)
        for article in articles
        for paragraph in article.paragraphs
        for unit in units(paragraph, corpus.lang)
    ]
    random.Random(SEED).shuffle(senses)
    return senses[:EACH]


async def _measure(
    name: str, pages: Corpus, asked: Corpus, model: Embedder, settings: Settings
) -> list[tuple[object, ...]]:
    chunker = settings.chunker
    texts: list[str] = []
    owner: list[tuple[str, str]] = []  # page, core
    for page in pages.pages:
        cores = chunk_field(convert(page).fields["content"], chunker)
        texts += [embedded_text(cores, i, chunker.overlap) for i in range(len(cores))]
        owner += [(page.id, core) for core in cores]
    chunks = await _embed(model, texts)
    titles = await _embed(model, [page.title for page in pages.pages])
    right_chunk, random_chunk, right_title, random_title = [], [], [], []
    # The same questions in every language, in the same order: the answer is looked up in the pages' language.
    together = list(zip(asked.questions, pages.questions, strict=True))
    for question, answered in track(together, description=name):
        vector = await model.query(question.question)
        cosines = chunks @ vector
        right = [i for i, (page, core) in enumerate(owner) if page == answered.page_id and answered.answer in core]
        if right:
            right_chunk.append(max(cosines[right]))
        random_chunk += [c for c, (page, _) in zip(cosines, owner, strict=True) if page != answered.page_id]
        by_title = titles @ vector
        best = int(np.argmax(by_title))
        if pages.pages[best].id == answered.page_id:  # else the one best hit is wrong, floor or no floor
            right_title.append(by_title[best])
        random_title += [c for i, c in enumerate(by_title) if pages.pages[i].id != answered.page_id]
    return [
        (name, "content", len(right_chunk), *_row(right_chunk, random_chunk)),
        (name, "title", len(right_title), *_row(right_title, random_title)),
    ]


async def _embed(model: Embedder, texts: list[str]) -> NDArray[np.float32]:
    made = [await model.passages(some) for some in track([*chunked(texts, SLICE)])]
    return np.concatenate(made)


def _row(right: list[float], other: list[float]) -> tuple[float, ...]:
    return (
        float(min(right)),
        percentile(right, LOSS),
        percentile(right, 50),
        percentile(other, 50),
        percentile(other, 99),
    )
