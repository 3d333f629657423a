"""How good the answers can be: XQuAD as websites, our search and quotations beside what others would have found.

    pages ─ our stages ─▶ Elasticsearch ─ the retrieve stage's own functions ─▶ page, context, quotation ─┐
       └── LlamaIndex, Haystack, LangChain, with the same embedder ──────────▶ page, context ─────────────┴▶ tables

A question is answered within N characters when its gold answer stands in the context that N characters allow: ours as
the answer stage would get it with that budget, theirs by laying chunk after chunk. Weights were chosen on the pages
0-23; every figure comes for all pages and for 24-47.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from adapters.elastic.bundle import Elastic
from adapters.embedders.registry import make_embedder
from bench import peers
from bench.report import paired_interval, report
from bench.servers import servers
from bench.system import home
from bench.vectors import KeptVectors
from bench.website import OneModel, publish
from bench.xquad import Asked, Corpus, load
from pipelines.query.extractive.quotation import Quotation, answering
from pipelines.query.extractive.quote import by_words
from pipelines.query.search.fuse import fuse
from pipelines.query.search.ports import Candidate, Hit
from pipelines.query.search.search import Retrieval, Searcher, scored
from pipelines.query.search.widen import passages, wanted
from text.markdown import plain
from wiring.settings import Settings
from wiring.settings_file import load as load_settings

DEEP = 30  # hits from which pages are counted
BUDGETS = (2_000, 4_000)  # characters of context
FIGURES = ("page@1", "page@5", *(f"answer in {budget}" for budget in BUDGETS))
OURS, VECTORS, KEYWORDS = "ours", "vectors alone", "keywords alone"


@dataclass(frozen=True)
class Judged:
    """One way of searching: for each question, whether it was right by each of `FIGURES`. Shape (questions, 4)."""

    name: str
    right: NDArray[np.bool_]


def main(data: Path, pairs: Sequence[str], with_peers: bool, extractive: bool, embedder: str) -> None:
    """Retrieval beside the peers', and quotations."""
    kept = load_settings().home / "bench"
    absent = peers.missing() if with_peers else None
    if absent:
        print(f"without the peers: {absent}\n")
    sites = sorted({site_of(pair) for pair in pairs})
    with home(sites) as settings:
        asyncio.run(_run(data, pairs, with_peers and absent is None, extractive, embedder, kept, settings))


async def _run(
    data: Path, pairs: Sequence[str], with_peers: bool, extractive: bool, spec: str, kept: Path, settings: Settings
) -> None:
    corpora = {lang: load(data, lang) for pair in pairs for lang in pair.split(":")}
    found: dict[str, list[Judged]] = {}
    quoted: dict[str, list[bool]] = {}
    async with (
        servers(settings) as configured,
        Elastic(str(configured.elasticsearch), configured) as elastic,
        KeptVectors(make_embedder(spec, configured), kept) as model,
    ):
        for pair in {site_of(pair): pair for pair in pairs}.values():
            await publish(elastic, site_of(pair), corpora[pair.rpartition(":")[2]].pages, model, configured)
        searching = Searching(elastic, model, configured)
        for pair in pairs:
            asking, answering = corpora[pair.partition(":")[0]], corpora[pair.rpartition(":")[2]]
            questions = together(asking, answering)
            ours, quotes = await searching.judged(pair, questions, extractive)
            found[pair] = ours
            quoted[pair] = quotes
            if with_peers:
                texts = [asked.question for asked in questions]
                theirs = await peers.retrieved(answering, texts, model)
                found[pair] += [Judged(name, judged_chunks(chunks, questions)) for name, chunks in theirs.items()]
        about = f"{model.fingerprint}, chunks {configured.chunker.fingerprint}"
    unseen = {
        pair: np.array([not asked.training for asked in corpora[pair.partition(":")[0]].questions]) for pair in pairs
    }
    _tables(found, unseen, about)
    if extractive:
        lines = [
            (pair, *(float(np.mean(part)) for part in (hits, np.asarray(hits)[unseen[pair]])))
            for pair, hits in quoted.items()
        ]
        report(
            "quotations", "gold answer in at most three quoted sentences", ("questions", "all pages", "24-47"), lines
        )


def site_of(pair: str) -> str:
    """The site of a pair's pages: `de:en` asks in German on English pages."""
    return f"xquad-{pair.rpartition(':')[2]}"


def together(asking: Corpus, answering: Corpus) -> list[Asked]:
    """Questions in one language with their answers in the other: XQuAD has the same ones in all, in the same order."""
    return [
        Asked(asked.question, answered.page_id, answered.answer, answered.paragraph)
        for asked, answered in zip(asking.questions, answering.questions, strict=True)
    ]


class Searching:
    """Our side: the retrieve stage's search, fusion and widening."""

    def __init__(self, elastic: Elastic, model: KeptVectors, settings: Settings) -> None:
        self._chunks = elastic.search
        self._searcher = Searcher(elastic.search, OneModel(model), settings)
        self._settings = settings

    async def judged(self, pair: str, questions: Sequence[Asked], extractive: bool) -> tuple[list[Judged], list[bool]]:
        """Our figures, those of each kind of search alone, and whether the quotations hold the answer."""
        right: dict[str, list[list[bool]]] = {OURS: [], VECTORS: [], KEYWORDS: []}
        quoted = []
        for asked in track(questions, description=f"asking {pair}"):
            found = await self._searcher.find(site_of(pair), asked.question, kind="hybrid", size=DEEP)
            for name, hits in (await self._rankings(found)).items():
                right[name].append(await self._right(asked, hits))
            if extractive:
                quoted.append(await self._quoted(asked, found.hits[: self._settings.content_hits]))
        return [Judged(name, np.array(values)) for name, values in right.items()], quoted

    async def _right(self, asked: Asked, hits: Sequence[Hit]) -> list[bool]:
        best = hits[: self._settings.content_hits]
        around = await self._around(best)
        contexts = [[source.text for source in passages(best, around, budget)] for budget in BUDGETS]
        return [*_pages(asked, [hit.page_id for hit in hits]), *(holds(context, asked.answer) for context in contexts)]

    async def _quoted(self, asked: Asked, hits: Sequence[Hit]) -> bool:
        sources = passages(hits, await self._around(hits), self._settings.context_chars)
        evidence = by_words(asked.question, sources)
        quotation = answering(evidence, "") if evidence else Quotation(())
        return holds([citation.quote or "" for citation in quotation.citations], asked.answer)

    async def _around(self, hits: Sequence[Hit]) -> list[Hit]:
        return await self._chunks.chunks(hits[0].index, wanted(hits, self._settings.neighbours)) if hits else []

    async def _rankings(self, found: Retrieval) -> Mapping[str, Sequence[Hit]]:
        return {
            OURS: found.hits,
            VECTORS: await self._read(fuse(found.candidates.dense, [], size=DEEP)),
            KEYWORDS: await self._read(fuse([], found.candidates.keyword, size=DEEP)),
        }

    async def _read(self, candidates: Sequence[Candidate]) -> list[Hit]:
        places = [each.place for each in candidates]
        read = await self._chunks.chunks(candidates[0].index, places) if candidates else ()
        return scored(candidates, {hit.place: hit for hit in read})


def judged_chunks(found: Sequence[Sequence[peers.Chunk]], questions: Sequence[Asked]) -> NDArray[np.bool_]:
    """A peer's chunks by the same figures: shape (questions, 4)."""
    return np.array(
        [
            [
                *_pages(asked, [page for page, _ in chunks]),
                *(holds(laid(chunks, budget), asked.answer) for budget in BUDGETS),
            ]
            for chunks, asked in zip(found, questions, strict=True)
        ]
    )


def laid(chunks: Iterable[peers.Chunk], budget: int) -> list[str]:
    """Chunk after chunk, the last one cut."""
    texts = []
    for _, text in chunks:
        texts.append(text[:budget])
        budget -= len(texts[-1])
    return texts


def holds(texts: Sequence[str], answer: str) -> bool:
    """Whether the answer stands in one of the texts, as a reader sees them."""
    wanted_ = plain(answer)
    return any(wanted_ in plain(text) for text in texts)


def _pages(asked: Asked, pages: Iterable[str]) -> tuple[bool, bool]:
    ranked = list(dict.fromkeys(pages))
    return asked.page_id in ranked[:1], asked.page_id in ranked[:5]


def _tables(found: Mapping[str, Sequence[Judged]], unseen: Mapping[str, NDArray[np.bool_]], about: str) -> None:
    lines: list[tuple[object, ...]] = []
    for pair, judged in found.items():
        for each in judged:
            lines.append(
                (pair, each.name, *each.right.mean(axis=0).round(3), *each.right[unseen[pair]].mean(axis=0).round(3))
            )
    columns = ("questions -> pages", "way", *FIGURES, *(f"24-47: {figure}" for figure in FIGURES))
    report("quality", f"share of questions, {about}", columns, lines)
    report(
        "quality-differences",
        "ours minus the best other, 95 % interval (paired bootstrap)",
        ("questions -> pages", "figure", "against", "best other", "difference", "from", "to"),
        [line for pair, judged in found.items() for line in differences(pair, judged)],
    )


def differences(pair: str, judged: Sequence[Judged]) -> Iterable[tuple[object, ...]]:
    """Ours against the best of the others, figure by figure."""
    ours, *others = judged
    for number, figure in enumerate(FIGURES):
        for group, some in (
            ("one kind of search", [each for each in others if each.name in (VECTORS, KEYWORDS)]),
            ("peers", [each for each in others if each.name not in (VECTORS, KEYWORDS)]),
        ):
            if some:
                best = max(some, key=lambda each: float(each.right[:, number].mean()))
                gap = ours.right[:, number].astype(float) - best.right[:, number].astype(float)
                yield (pair, figure, group, best.name, float(gap.mean()), *paired_interval(gap))
