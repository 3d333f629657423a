"""Flows: the original way of searching beside ours, on the same pages with the same model.

    XQuAD, two invented sites ─ our stages ─▶ Elasticsearch ─ retrieve() under each flow ─▶ page, context ─▶ tables

An answer counts as held when it, or all facts of an everyday question, stand in the sources that a model would read.
The questions are asked as they are: what a model would make of them, in either flow, is not measured here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from adapters.elastic.bundle import Elastic
from adapters.embedders.registry import make_embedder
from bench.corpora import load
from bench.quality import holds, site_of, together
from bench.report import Cross, Data, EmbedderName, Langs, Share, interval, names, paired_interval, question, report
from bench.servers import home, servers
from bench.visitors import ROOTS, cases
from bench.website import KeptVectors, OneModel, publish
from pipelines.evaluate.wording import says
from pipelines.query.rephrase.rewrite import search_mode
from pipelines.query.retrieve.retrieve import retrieve
from pipelines.query.search.search import Searcher
from pipelines.query.search.widen import fit
from schemas.flow import FlowName
from schemas.page import PageDocument
from schemas.query import Rephrased, Source, Trial
from sites.content import page_documents
from wiring.settings import Settings
from wiring.settings_file import load as load_settings

FLOWS: tuple[FlowName, ...] = get_args(FlowName)
BUDGETS = (2_000, 4_000)  # characters of context
FIGURES = ("page@1", *(f"answer in {budget}" for budget in BUDGETS), "answer in all")
LONG = 100_000  # characters: all that is found


@dataclass(frozen=True)
class Asked:
    """A question, the pages that answer it, and whether sources hold the answer."""

    of: str
    site: str
    question: str
    lang: str
    pages: frozenset[str]
    held: Callable[[Sequence[str]], bool]


@dataclass(frozen=True)
class Judged:
    """One flow: by question whether it was right by each of `FIGURES`, and the characters of its sources."""

    right: NDArray[np.bool_]  # (questions, figures)
    chars: float  # mean


def main(
    data: Data,
    langs: Langs = "en,de",
    cross: Cross = "de:en",
    embedder: EmbedderName = "lite",
    share: Share = 0.34,
) -> None:
    """`flow: original` against `flow: pagewire`: right page first, answer within the context, on XQuAD and both sites.

    Vectors are kept in PAGEWIRE_HOME/bench.
    """
    kept = load_settings().home / "bench"
    pairs = names(langs) + names(cross)
    with home(sorted({*map(site_of, pairs), *ROOTS}), ("en", "de")) as settings:
        asyncio.run(_run(data, pairs, embedder, kept, settings, share))


async def _run(data: Path, pairs: Sequence[str], spec: str, kept: Path, settings: Settings, share: float) -> None:
    pages, every = _xquad(data, pairs, share)
    for site, root in ROOTS.items():
        pages[site] = [PageDocument.model_validate(each) for each in page_documents(root, "https://site.example")]
        every += _everyday(site)
    async with (
        servers(settings) as configured,
        Elastic(str(configured.elasticsearch), configured) as elastic,
        KeptVectors(make_embedder(spec, configured), kept) as model,
    ):
        for site, documents in pages.items():
            await publish(elastic, site, documents, model, configured)
        searcher = Searcher(elastic.search, OneModel(model), configured)
        found = {
            of: {flow: await _judged(list(some), flow, searcher, configured) for flow in FLOWS}
            for of, some in [(of, list(some)) for of, some in groupby(every, key=lambda asked: asked.of)]
        }
        about = f"{model.fingerprint}, chunks {configured.chunker.fingerprint}"
    report("flows", f"share of questions, {about}", COLUMNS, list(_lines(found)), share=share)
    title = "pagewire minus original, 95 % interval (paired bootstrap)"
    report("flows-differences", title, ("questions", "figure", "difference", "from", "to"), list(_differences(found)))


def _xquad(data: Path, pairs: Sequence[str], share: float) -> tuple[dict[str, Sequence[PageDocument]], list[Asked]]:
    corpora = {lang: load(data, lang, share) for pair in pairs for lang in pair.split(":")}
    pages: dict[str, Sequence[PageDocument]] = {}
    asked = []
    for pair in pairs:
        asking, answering = pair.partition(":")[0], pair.rpartition(":")[2]
        pages[site_of(pair)] = corpora[answering].pages
        for each in together(corpora[asking], corpora[answering]):

            def held(texts: Sequence[str], answer: str = each.answer) -> bool:
                return holds(texts, answer)

            pages_of = frozenset([each.page_id])
            asked.append(Asked(f"XQuAD {pair}", site_of(pair), each.question, asking, pages_of, held))
    return pages, asked


def _everyday(site: str) -> list[Asked]:
    """Everyday questions that a page answers, and that stand alone."""
    asked = []
    for case in cases(site):
        if case.expect != "answer" or case.history or case.now is not None or not case.facts:
            continue

        def held(texts: Sequence[str], facts: Sequence[Sequence[str]] = case.facts) -> bool:
            return all(says("\n".join(texts), fact) for fact in facts)

        asked.append(Asked(f"the site {site}", site, case.question, case.lang, frozenset(case.pages), held))
    return asked


async def _judged(every: Sequence[Asked], flow: FlowName, searcher: Searcher, settings: Settings) -> Judged:
    right, chars = [], []
    for asked in track(every, description=f"{every[0].of}, {flow}"):
        whole, pages = await _found(asked, flow, LONG if flow == "original" else None, searcher, settings)
        contexts = [
            # Of the original a smaller budget only leaves less: nothing else is chosen by it.
            fit(whole, budget) if flow == "original" else (await _found(asked, flow, budget, searcher, settings))[0]
            for budget in BUDGETS
        ]
        held = [asked.held([f"{s.title}\n{s.heading}\n{s.text}" for s in some]) for some in (*contexts, whole)]
        right.append([bool(pages) and pages[0] in asked.pages, *held])
        chars.append(sum(len(source.heading) + len(source.text) for source in whole))
    return Judged(np.array(right), sum(chars) / len(chars))


async def _found(
    asked: Asked, flow: FlowName, budget: int | None, searcher: Searcher, settings: Settings
) -> tuple[tuple[Source, ...], list[str]]:
    request = question(asked.site, asked.lang, asked.question, trial=Trial(flow=flow, context_chars=budget))
    mode = search_mode(asked.question, settings.flow_of(asked.site, request.under).short_question_words)
    rephrased = Rephrased(request=request, question=asked.question, mode=mode)
    found = await retrieve(rephrased, searcher, searcher.chunks, settings, writes=True)
    return found.sources, [page.page_id for page in found.found]


INTERVALS = [(name, f"{name}: 95 %") for name in FIGURES]
COLUMNS = ("questions", "flow", "n", *(column for pair in INTERVALS for column in pair), "chars")


def _lines(found: Mapping[str, Mapping[FlowName, Judged]]) -> Iterator[tuple[object, ...]]:
    for of, by_flow in found.items():
        for flow, judged in by_flow.items():
            cells: list[object] = []
            for figure in judged.right.T:
                mean, low, high = interval(figure)
                cells += [mean, f"{low:.2f}-{high:.2f}"]
            yield (of, flow, len(judged.right), *cells, round(judged.chars))


def _differences(found: Mapping[str, Mapping[FlowName, Judged]]) -> Iterator[tuple[object, ...]]:
    for of, by_flow in found.items():
        gaps = by_flow["pagewire"].right.astype(float) - by_flow["original"].right.astype(float)
        for name, gap in zip(FIGURES, gaps.T, strict=True):
            yield (of, name, float(gap.mean()), *paired_interval(gap))
