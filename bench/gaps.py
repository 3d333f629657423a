"""Gaps: do questions that mean the same fall together, and those that do not apart?

bench/gaps.yaml ─▶ the embedder, as a search asks it ─▶ pipelines.query.log.grouping ─▶ pairs, adjusted Rand index
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer
import yaml

from adapters.embedders.registry import make_embedder
from bench.report import EmbedderName, report
from pipelines.query.log.grouping import grouped
from text.language import language_of
from wiring.settings import Settings

CASES = Path(__file__).with_name("gaps.yaml")
Part = Literal["tune", "hold-out"]


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


def main(
    part: Annotated[Part, typer.Option(help="`tune` to look at, or `hold-out` to report.")] = "tune",
    embedder: EmbedderName = "lite",
    show: Annotated[bool, typer.Option("--show", help="Print the groups, of the part to look at.")] = False,
) -> None:
    """Whether questions that mean the same fall together, in three languages and misspelled. Needs no system."""
    asyncio.run(_quality(part, embedder, show))


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
