"""Quality gate: a rebuild may go live only if it does not find pages significantly worse than what is live.

questions ─┬─ the searcher of visitors, on the candidate ─▶ rank of the right page ┐
           └─ the same, on the live index ────────────────▶ rank of the right page ┴▶ paired bootstrap ─▶ verdict
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from pipelines.runtime.errors import WrongUse
from schemas.base import PageId, Wire, problems
from schemas.query import MAX_QUESTION

DEPTH = 10  # pages looked at: MRR@10
RESAMPLES = 2_000
SEED = 7
AT_ONCE = 4  # questions asked side by side
WORST = 10  # questions told


class BadQuestions(WrongUse):
    """The file of questions cannot be used."""

    code = "bad-questions"


class Case(BaseModel):
    """A question and the page that answers it. Other fields of the file are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    question: str = Field(min_length=1, max_length=MAX_QUESTION)
    page: PageId | None = Field(default=None, validation_alias=AliasChoices("page", "page_id"))
    lang: str | None = None
    page_lang: str | None = None

    @property
    def wanted_lang(self) -> str | None:
        """Language of the page; None: any."""
        return self.page_lang or self.lang


def load_cases(path: Path) -> list[Case]:
    """The questions with a page in a YAML list or NDJSON.

    Raises:
        BadQuestions: says where and what.
    """
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix in (".ndjson", ".jsonl"):
            entries: Any = [json.loads(line) for line in text.splitlines() if line.strip()]
        else:
            entries = yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError) as err:
        raise BadQuestions(f"{path}: cannot be read as questions: {err}") from err
    if not isinstance(entries, list):
        raise BadQuestions(f"{path}: must be a list of {{question, page}}")
    cases = []
    for number, entry in enumerate(entries, 1):
        try:
            case = Case.model_validate(entry)
        except ValidationError as err:
            raise BadQuestions(f"{path}, entry {number}: {problems(err)}") from err
        if case.page is not None:
            cases.append(case)
    if not cases:
        raise BadQuestions(f"{path}: no question names its page")
    return cases


@dataclass(frozen=True)
class FoundPage:
    """A page that a search showed."""

    page_id: str
    lang: str


Ask = Callable[[str], Awaitable[Sequence[FoundPage]]]
"""Pages for a question, best first; the same page may come several times."""


class Measure(Wire):
    """One figure for both indexes, and their difference with its 95 % interval."""

    name: str
    live: float
    candidate: float
    difference: float = Field(description="Candidate minus live.")
    low: float
    high: float

    @property
    def worse(self) -> bool:
        """Whether the candidate is significantly worse."""
        return self.high < 0


class Rank(Wire):
    """Where the right page of one question stood, from 1; null: not among the first ten."""

    question: str
    page: str
    live: int | None
    candidate: int | None


class GateReport(Wire):
    """What the gate found."""

    questions: int
    measures: tuple[Measure, ...]
    worst: tuple[Rank, ...] = Field(description="Where the candidate is furthest behind.")
    passed: bool


async def compare(
    cases: Sequence[Case], live: Ask, candidate: Ask, asked: Callable[[int], None] = lambda _: None
) -> GateReport:
    """Ask both indexes all questions.

    Args:
        asked: Told how many are done.

    Raises:
        Retryable: a search fails.
    """
    done = 0
    room = asyncio.Semaphore(AT_ONCE)

    async def one(case: Case) -> Rank:
        nonlocal done
        async with room:
            ranks = [rank(case, await ask(case.question)) for ask in (live, candidate)]
        done += 1
        asked(done)
        return Rank(question=case.question, page=case.page or "", live=ranks[0], candidate=ranks[1])

    return verdict(await asyncio.gather(*(one(case) for case in cases)))


def rank(case: Case, found: Sequence[FoundPage]) -> int | None:
    """Place of the case's page among the pages found, from 1."""
    pages = list(dict.fromkeys((page.page_id, page.lang) for page in found))[:DEPTH]
    for place, (page_id, lang) in enumerate(pages, 1):
        if page_id == case.page and case.wanted_lang in (None, lang):
            return place
    return None


def verdict(ranks: Sequence[Rank]) -> GateReport:
    """The comparison in figures; fails only if a figure is significantly worse."""
    figures: list[tuple[str, Callable[[int | None], float]]] = [
        ("hit@1", lambda place: float(place == 1)),
        (f"MRR@{DEPTH}", reciprocal),
    ]
    measures = []
    for name, figure in figures:
        live = np.array([figure(one.live) for one in ranks])
        candidate = np.array([figure(one.candidate) for one in ranks])
        low, high = paired_interval(candidate - live)
        measures.append(
            Measure(
                name=name,
                live=round(float(live.mean()), 4),
                candidate=round(float(candidate.mean()), 4),
                difference=round(float((candidate - live).mean()), 4),
                low=round(low, 4),
                high=round(high, 4),
            )
        )
    lost = sorted(ranks, key=lambda one: reciprocal(one.candidate) - reciprocal(one.live))
    worst = [one for one in lost if reciprocal(one.candidate) < reciprocal(one.live)][:WORST]
    passed = not any(measure.worse for measure in measures)
    return GateReport(questions=len(ranks), measures=tuple(measures), worst=tuple(worst), passed=passed)


def reciprocal(place: int | None) -> float:
    """1 / rank; 0 for what was not found."""
    return 1 / place if place else 0.0


def paired_interval(differences: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[float, float]:
    """95 % interval of the mean of paired differences (percentile bootstrap; Efron, 1979), always the same."""
    rng = np.random.default_rng(SEED)
    count = len(differences)
    means = np.array([differences[rng.integers(0, count, count)].mean() for _ in range(RESAMPLES)])
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)
