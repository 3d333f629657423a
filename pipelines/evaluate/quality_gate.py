"""Quality gate: a rebuild may go live only if it is shown not to find pages worse than what is live by a margin.

questions ─┬─ the searcher of visitors, on the candidate ─▶ rank of the right page ┐
           └─ the same, on the live index ────────────────▶ rank of the right page ┴▶ non-inferiority ─▶ verdict
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from pipelines.evaluate.non_inferiority import MARGIN, paired
from pipelines.runtime.errors import WrongUse
from schemas.base import PageId, problems
from schemas.quality_gate import GateReport, Measure, Rank
from schemas.query import MAX_QUESTION

DEPTH = 10  # pages looked at: MRR@10
AT_ONCE = 4  # questions asked side by side
WORST = 10  # questions told


class BadQuestions(WrongUse):
    """The file of questions cannot be used."""

    code = "bad-questions"


class GateQuestion(BaseModel):
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


def load_cases(path: Path) -> list[GateQuestion]:
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
            case = GateQuestion.model_validate(entry)
        except ValidationError as err:
            raise BadQuestions(f"{path}, entry {number}: {problems(err)}") from err
        if case.page is not None:
            cases.append(case)
    if not cases:
        raise BadQuestions(f"{path}: no question names its page")
    return cases


@dataclass(frozen=True)
class RankedPage:
    """A page that a search showed."""

    page_id: str
    lang: str


Ask = Callable[[str], Awaitable[Sequence[RankedPage]]]
"""Pages for a question, best first; the same page may come several times."""


async def compare(
    cases: Sequence[GateQuestion],
    live: Ask,
    candidate: Ask,
    asked: Callable[[int], None] = lambda _: None,
    margin: float = MARGIN,
) -> GateReport:
    """Ask both indexes all questions.

    Args:
        asked: Told how many are done.

    Raises:
        Retryable: a search fails.
    """
    done = 0
    room = asyncio.Semaphore(AT_ONCE)

    async def one(case: GateQuestion) -> Rank:
        nonlocal done
        async with room:
            ranks = [rank(case, await ask(case.question)) for ask in (live, candidate)]
        done += 1
        asked(done)
        return Rank(question=case.question, page=case.page or "", live=ranks[0], candidate=ranks[1])

    return verdict(await asyncio.gather(*(one(case) for case in cases)), margin)


def rank(case: GateQuestion, found: Sequence[RankedPage]) -> int | None:
    """Place of the case's page among the pages found, from 1."""
    pages = list(dict.fromkeys((page.page_id, page.lang) for page in found))[:DEPTH]
    for place, (page_id, lang) in enumerate(pages, 1):
        if page_id == case.page and case.wanted_lang in (None, lang):
            return place
    return None


def verdict(ranks: Sequence[Rank], margin: float = MARGIN) -> GateReport:
    """The comparison in figures; passes only if each is shown not to be worse by the margin or more."""
    measures = []
    for name, figure in (("hit@1", first), (f"MRR@{DEPTH}", reciprocal)):
        told = paired([figure(one.live) for one in ranks], [figure(one.candidate) for one in ranks], margin)
        measures.append(
            Measure(
                name=name,
                live=round(told.live, 4),
                candidate=round(told.candidate, 4),
                difference=round(told.difference, 4),
                low=round(told.low, 4),
                high=round(told.high, 4),
                state=told.state,
                needed=told.needed,
            )
        )
    lost = sorted(ranks, key=lambda one: reciprocal(one.candidate) - reciprocal(one.live))
    worst = [one for one in lost if reciprocal(one.candidate) < reciprocal(one.live)][:WORST]
    return GateReport(
        questions=len(ranks),
        margin=margin,
        needed=max(measure.needed for measure in measures),
        measures=tuple(measures),
        worst=tuple(worst),
        passed=all(measure.state == "not worse" for measure in measures),
    )


def first(place: int | None) -> float:
    """1 for the first place."""
    return float(place == 1)


def reciprocal(place: int | None) -> float:
    """1 / rank; 0 for what was not found."""
    return 1 / place if place else 0.0
