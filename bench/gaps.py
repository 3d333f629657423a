"""Gaps: do questions that mean the same fall together, and those that do not apart; and how long do 10,000 take.

bench/gaps.yaml ─▶ the embedder, as a search asks it ─▶ pipelines.query.log.grouping ─▶ pairs, adjusted Rand index
10,000 made-up questions ─▶ pipelines.query.log.gap_reports ─▶ seconds, and the event loop's longest pause meanwhile
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Literal

import numpy as np
import yaml

from adapters.embedders.fake import FakeEmbedder
from adapters.embedders.registry import make_embedder
from adapters.fake_outcomes import FakeOutcomes
from adapters.own_process import in_own_process
from bench.report import report
from gateway.fakes import FakeIndexedPages
from pipelines.query.log.gap_reports import GapReports
from pipelines.query.log.grouping import Numbers, grouped
from pipelines.query.log.kept_reports import UnderWay
from pipelines.query.log.ports import Asked, AskedHit
from pipelines.runtime.embedder import Matrix32
from schemas.query import QuestionVector
from text.language import language_of
from wiring.settings import Settings

CASES = Path(__file__).with_name("gaps.yaml")
Part = Literal["tune", "hold-out"]
MEANINGS = 2_000  # of the made-up questions
NOISE = 0.6  # how far a made-up wording is from its meaning, which has length 1
SEED = 20_261_123
NOW = datetime(2026, 5, 4, tzinfo=UTC)
PAUSE = 0.005  # seconds
IDLE = 5.0  # seconds of doing nothing, to compare with: other work on the machine makes the event loop late, too
MODEL = FakeEmbedder(384)


@dataclass(frozen=True)
class Case:
    """A question, and the meaning that it shares with others of its number."""

    meaning: int
    lang: str
    text: str


def cases(part: Part, file: Path = CASES) -> list[Case]:
    """All of a half, in the order of the file."""
    half = yaml.safe_load(file.read_text(encoding="utf-8"))[part]
    together = [*half["meanings"].values(), *([one] for one in half["alone"])]
    return [
        Case(number, lang, text)
        for number, questions in enumerate(together)
        for question in questions
        for lang, text in question.items()
    ]


@dataclass(frozen=True)
class Judged:
    """How well groups fit meanings, by pairs of questions."""

    precision: float  # of the pairs that fell together: of one meaning
    recall: float  # of the pairs of one meaning: that fell together
    rand: float  # adjusted Rand index (Hubert & Arabie 1985): 1 the same, 0 as by chance

    @property
    def f1(self) -> float:
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def judged(meanings: Sequence[int], groups: Sequence[int]) -> Judged:
    """Of the same questions, their true and their found numbers."""
    right = _pairs(zip(meanings, groups, strict=True))
    wanted, found, every = _pairs(meanings), _pairs(groups), _pairs([0] * len(meanings))
    by_chance = wanted * found / every
    most = (wanted + found) / 2
    rand = (right - by_chance) / (most - by_chance) if most != by_chance else 1.0
    return Judged(right / found if found else 1.0, right / wanted if wanted else 1.0, rand)


def _pairs(numbers: Iterable[object]) -> int:
    return sum(count * (count - 1) // 2 for count in Counter(numbers).values())


def main(part: Part, embedder: str, questions: int, show: bool) -> None:
    """Group a half of the set, then many made-up questions; print what came of it."""
    asyncio.run(_quality(part, embedder, show))
    if questions:
        asyncio.run(_speed(questions))


async def _quality(part: Part, spec: str, show: bool) -> None:
    every = cases(part)
    model = make_embedder(spec, Settings())
    await model.start()
    try:
        vectors = np.stack([await model.query(case.text) for case in every])
    finally:
        await model.aclose()
    # As an outcome has it: from the words, where they tell it, else the visitor's.
    langs = [language_of(case.text, (case.lang,)) for case in every]
    numbers = grouped(vectors, langs, [1] * len(every), model.profile.common).tolist()
    lines = [("all", *_figures([(case.meaning, number) for case, number in zip(every, numbers, strict=True)]))]
    for lang in dict.fromkeys(case.lang for case in every):
        own = [(case.meaning, number) for case, number in zip(every, numbers, strict=True) if case.lang == lang]
        lines.append((f"in {lang}", *_figures(own)))
    meanings = len({case.meaning for case in every})
    about = f"{len(every)} questions of {meanings} meanings ({part}), {spec}"
    columns = ("of", "questions", "groups", "pair precision", "pair recall", "pair F1", "adjusted Rand")
    report("gaps", about, columns, lines, part=part, embedder=spec)
    if show and part == "tune":
        for number in sorted(set(numbers)):
            print(" | ".join(case.text for case, own in zip(every, numbers, strict=True) if own == number))


def _figures(both: Sequence[tuple[int, int]]) -> tuple[object, ...]:
    found = judged([meaning for meaning, _ in both], [number for _, number in both])
    return len(both), len({number for _, number in both}), found.precision, found.recall, found.f1, found.rand


async def _speed(count: int) -> None:
    made = made_up(count)
    beat = asyncio.create_task(longest_pause())
    await asyncio.sleep(IDLE)
    beat.cancel()
    lines: list[tuple[object, ...]] = [("not at all", 0.0, 0.0, await beat * 1000, 0)]
    for name, group in (("in a process of its own", partial(in_own_process, grouped)), ("in a thread", _in_a_thread)):
        reports = GapReports(Logged(made), FakeIndexedPages(), Models(), group)
        beat = asyncio.create_task(longest_pause())
        await asyncio.sleep(0)
        began, computed = perf_counter(), computed_seconds()
        found = await reports.report("town", 30, NOW, groups=None)
        seconds, computing = perf_counter() - began, computed_seconds() - computed
        beat.cancel()
        assert not isinstance(found, UnderWay)
        lines.append((name, seconds, computing, await beat * 1000, found.total))
        await reports.aclose()
    columns = ("grouped", "seconds", "CPU seconds", "longest pause, ms", "groups")
    report("gaps-speed", f"{count:,} questions whose vectors are in the log", columns, lines, questions=count)


def computed_seconds() -> float:
    """Seconds, of this process and of those that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


async def _in_a_thread(vectors: Matrix32, langs: Sequence[str], often: Sequence[int], common: bytes) -> Numbers:
    return await asyncio.to_thread(grouped, vectors, langs, often, common)


async def longest_pause() -> float:
    """Seconds that the event loop was late at worst: so much longer visitors wait meanwhile. Until it is cancelled."""
    worst = 0.0
    with suppress(asyncio.CancelledError):
        while True:
            began = perf_counter()
            await asyncio.sleep(PAUSE)
            worst = max(worst, perf_counter() - began - PAUSE)
    return worst


class Logged(FakeOutcomes):
    """Has made-up questions."""

    def __init__(self, made: Sequence[Asked]) -> None:
        super().__init__()
        self._made = made

    async def asked(self, site: str, since: datetime, until: datetime, most: int) -> list[Asked]:
        return [*self._made[:most]]


class Models:
    """The made-up vectors' model."""

    async def for_site(self, site: str) -> FakeEmbedder:
        return MODEL


def made_up(count: int) -> list[Asked]:
    """Questions all in other words, around so many meanings."""
    rng = np.random.default_rng(SEED)
    meanings = rng.standard_normal((MEANINGS, MODEL.dims)).astype(np.float32)
    meanings /= np.linalg.norm(meanings, axis=1, keepdims=True)
    made = []
    for number in range(count):
        meaning = int(rng.integers(MEANINGS))
        vector = meanings[meaning] + NOISE * rng.standard_normal(MODEL.dims).astype(np.float32) / np.sqrt(MODEL.dims)
        made.append(
            Asked(
                request_id=f"request-{number:06}",
                asked_at=NOW - timedelta(days=60 * (number + 1) / (count + 1)),
                lang="en" if number % 2 else "de",
                question=f"Wording {number} of what means {meaning}?",
                text=f"Wording {number} of what means {meaning}?",
                became="refused" if number % 4 else "answered",
                grade=4,
                hits=tuple(AskedHit(f"p{meaning + n}", "en", "Page", "/page", 0.8, False) for n in range(8)),
                vector=QuestionVector.of(MODEL.fingerprint, vector / np.linalg.norm(vector)),
            )
        )
    return made
