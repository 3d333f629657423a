"""How good the search is: XQuAD as websites, ours beside each kind of search alone.

    pages ─ our stages ─▶ Elasticsearch ─ the retrieve stage's own functions ─▶ page, context ─▶ tables

A question is answered within N characters when its gold answer stands in the context that the answer stage would get
with that budget. Weights were chosen on the pages 0-23; every figure comes for all pages and for 24-47.
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
from bench.corpora import Asked, Corpus, load
from bench.report import Cross, Data, EmbedderName, Langs, Share, names, paired_interval, report
from bench.servers import home, servers
from bench.website import KeptVectors, OneModel, publish
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


def main(
    data: Data,
    langs: Langs = "en,de",
    cross: Cross = "de:en",
    embedder: EmbedderName = "lite",
    share: Share = 1.0,
) -> None:
    """Right page first, answer within the context: ours beside each kind of search alone.

    Vectors are kept in PAGEWIRE_HOME/bench; the second run takes seconds where the first takes minutes.
    """
    kept = load_settings().home / "bench"
    pairs = names(langs) + names(cross)
    with home(sorted({site_of(pair) for pair in pairs})) as settings:
        asyncio.run(_run(data, pairs, embedder, kept, settings, share))


async def _run(data: Path, pairs: Sequence[str], spec: str, kept: Path, settings: Settings, share: float) -> None:
    corpora = {lang: load(data, lang, share) for pair in pairs for lang in pair.split(":")}
    found: dict[str, list[Judged]] = {}
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
            found[pair] = await searching.judged(pair, together(asking, answering))
        about = f"{model.fingerprint}, chunks {configured.chunker.fingerprint}"
    unseen = {
        pair: np.array([not asked.training for asked in corpora[pair.partition(":")[0]].questions]) for pair in pairs
    }
    _tables(found, unseen, about)


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
        self._flow = settings.flow_of("")

    async def judged(self, pair: str, questions: Sequence[Asked]) -> list[Judged]:
        """Our figures, and those of each kind of search alone."""
        right: dict[str, list[list[bool]]] = {OURS: [], VECTORS: [], KEYWORDS: []}
        for asked in track(questions, description=f"asking {pair}"):
            found = await self._searcher.find(site_of(pair), asked.question, kind="hybrid", size=DEEP)
            for name, hits in (await self._rankings(found)).items():
                right[name].append(await self._right(asked, hits))
        return [Judged(name, np.array(values)) for name, values in right.items()]

    async def _right(self, asked: Asked, hits: Sequence[Hit]) -> list[bool]:
        best = hits[: self._flow.hits]
        around = await self._around(best)
        contexts = [[source.text for source in passages(best, around, budget)] for budget in BUDGETS]
        return [*_pages(asked, [hit.page_id for hit in hits]), *(holds(context, asked.answer) for context in contexts)]

    async def _around(self, hits: Sequence[Hit]) -> list[Hit]:
        return await self._chunks.chunks(hits[0].index, wanted(hits, self._flow.neighbours)) if hits else []

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
        ("questions -> pages", "figure", "best other", "difference", "from", "to"),
        [line for pair, judged in found.items() for line in differences(pair, judged)],
    )


def differences(pair: str, judged: Sequence[Judged]) -> Iterable[tuple[object, ...]]:
    """Ours against the best of the others, figure by figure."""
    ours, *others = judged
    for number, figure in enumerate(FIGURES):
        best = max(others, key=lambda each: float(each.right[:, number].mean()))
        gap = ours.right[:, number].astype(float) - best.right[:, number].astype(float)
        yield (pair, figure, best.name, float(gap.mean()), *paired_interval(gap))
