"""Datasets, systems and runs for tests."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from pipelines.evaluate.dataset import Case, Dataset, dumped
from pipelines.evaluate.measures import AnswerPassage, Observed
from pipelines.evaluate.run import Run, RunHead

AT = datetime(2026, 11, 23, 12, tzinfo=UTC)


@cache
def dataset(cases: int = 6) -> Dataset:
    """Prices in two languages, by turns; every third cannot be answered."""
    made = [
        Case.model_validate(
            {
                "id": f"c{number}",
                "question": f"What does {number} cost?",
                "lang": ("en", "de")[number % 2],
                "tags": ["prices"],
                **({"answerable": False} if number % 3 == 2 else {"page": f"p{number}", "answer": f"{number} euros"}),
            }
        )
        for number in range(cases)
    ]
    return Dataset("prices", tuple(made), "1")


@cache
def as_yaml(cases: int) -> str:
    """The same as a file: PyYAML takes a tenth of a second to write 150 cases."""
    return dumped(dataset(cases), ".yaml")


def right(case: Case) -> Observed:
    """What a system that knows everything says."""
    if case.expect != "answer":
        return Observed(case=case.id, at=AT, answer="Nothing was found.", grade=5, ms=50.0)
    page = AnswerPassage(page=case.pages[0], lang="en", text=f"It costs {case.answers[0]}.", cited=True)
    return Observed(
        case=case.id,
        at=AT,
        answer=f"It costs {case.answers[0]}.",
        grade=0,
        found=(page,),
        sources=(page,),
        ms=100.0,
        timings_ms={"retrieve": 40.0},
        prompt_tokens=10,
        completion_tokens=2,
    )


def run(path: Path, of: Dataset, answers: Mapping[str, Mapping[str, Any]] | None = None) -> Run:
    """A complete run; some cases with other fields than the right ones."""
    with Run.begin(path, RunHead.of(of, "town", "http://x", AT)) as made:
        for case in of.cases:
            made.add(right(case).model_copy(update=dict((answers or {}).get(case.id, {}))))
    return made
