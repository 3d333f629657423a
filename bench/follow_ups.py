"""Does a question lean on the one before it? Fits pipelines.query.extractive.follow_ups.LEANS.

follow-ups: bench/follow_ups.yaml, tuned part of sites/demo/visitors ─▶ rephrase ─▶ both searches ─▶ signals ─┐
changes of topic: its other questions, after an opening one in their language ──────────────────────▶ signals ─┴▶ fit

Printed are weights to paste, and what thresholds would give, each question judged by weights that were fitted on the
others.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import yaml
from rich.progress import track

from bench.gate import logistic
from bench.report import question, report
from bench.servers import system
from bench.sureness import across, rounded
from bench.visitors import LANGUAGES, SITE, cases, fill, part_of
from pipelines.query.extractive.follow_ups import earlier, joined, read_on, signals
from pipelines.query.retrieve.retrieve import LOOKED_INTO, retrieve
from pipelines.query.search.search import Searcher
from pipelines.query.settings import QuerySettings
from schemas.keys import page_key
from schemas.query import Rephrased, Turn
from text.language import language_of
from wiring.clients import Clients

WRITTEN = Path(__file__).with_name("follow_ups.yaml")
SEED = 5  # of the openings that changes of topic come after
THRESHOLDS = (0.2, 0.3, 0.35, 0.4, 0.5, 0.6)


@dataclass(frozen=True)
class Pair:
    """Two questions of a conversation, and whether the second leans on the first."""

    opening: str
    further: str
    leans: bool


def main() -> None:
    """Fit whether a question leans on the one before it, on follow-ups and changes of topic on the sample site."""
    every = list(pairs())
    found = asyncio.run(_signals(every))
    names = list(found[0])
    values = np.array([[each[name] for name in names] for each in found])
    leans = np.array([pair.leans for pair in every])
    print(rounded(logistic(values, leans.astype(float), names)))
    chances = across(values, leans, names)
    lines = [
        (least, float((chances[leans] >= least).mean()), float((chances[~leans] >= least).mean()))
        for least in THRESHOLDS
    ]
    about = f"{leans.sum()} follow-ups, {(~leans).sum()} changes of topic, each judged by weights fitted on others"
    report("follow-ups", about, ("least chance", "follow-ups found", "changes of topic taken for one"), lines)


def pairs() -> Iterator[Pair]:
    """All of them, in a stable order."""
    written = yaml.safe_load(WRITTEN.read_text(encoding="utf-8"))
    tune = part_of(cases(), "tune")
    for each in written:
        yield from (Pair(each["opening"], further, True) for further in each["further"])
    for case in tune:
        if case.kind.startswith("follow-up"):
            yield Pair(case.history[-1], case.question, True)
        elif case.history:
            yield Pair(case.history[-1], case.question, False)
    rng = random.Random(SEED)
    openings = {lang: [each["opening"] for each in written if each["lang"] == lang] for lang in LANGUAGES}
    for case in tune:
        if not case.history and case.expect != "courtesy" and case.now is None:
            yield Pair(rng.choice(openings.get(case.lang, openings["en"])), case.question, False)


async def _signals(every: Sequence[Pair]) -> list[dict[str, float]]:
    async with system([SITE], languages=LANGUAGES) as (started, client):
        await fill(SITE, started.url, client)
        async with Clients(started.settings) as clients:
            return [await _look(pair, clients.searcher(), started.settings) for pair in track(every, "asking")]


async def _look(pair: Pair, searcher: Searcher, settings: QuerySettings) -> dict[str, float]:
    first = await retrieve(_asked(pair.opening), searcher, searcher.chunks, settings)
    shown = [source for source in first.sources if first.evidence and source.n == first.evidence[0].n]
    pages = tuple(page_key(SITE, source.lang, source.page_id) for source in shown)
    before = earlier(pair.further, [Turn(question=pair.opening, answer="", pages=pages)])
    assert before is not None
    lang = language_of(pair.further, LANGUAGES)
    find = partial(searcher.find, SITE, kind="hybrid", size=LOOKED_INTO, flow=settings.flow_of(SITE), lang=lang)
    alone, both = await find(pair.further), await find(joined(before.question, pair.further))
    assert alone.vector is not None
    shown_pages, around = await read_on(before, alone, both, searcher.chunks)
    read = (*alone.near, *alone.hits, *both.near, *both.hits, *around)
    return signals(before.signs, alone.vector, read, shown_pages)


def _asked(text: str) -> Rephrased:
    request = question(SITE, language_of(text, LANGUAGES), text)
    return Rephrased(request=request, question=text, mode="semantic")
