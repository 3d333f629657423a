"""The result of a rebuild's quality gate, stored with the generation: figures, and the worst questions."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field

from schemas.base import Wire

State = Literal["not worse", "worse", "undecided"]


class Measure(Wire):
    """One figure for both indexes, and their difference."""

    name: str
    live: float
    candidate: float
    difference: float = Field(description="Candidate minus live.")
    low: float = Field(description="The true difference is not below, with a chance of .95.")
    high: float = Field(description="And not above.")
    state: State = Field(description="not worse: by the margin, which is shown; worse; undecided: too few questions.")
    needed: int = Field(description="Questions to tell; 0: they are enough.")


class Rank(Wire):
    """The rank of one question's right page, from 1; null: not among the first ten."""

    question: str
    page: str
    live: int | None
    candidate: int | None


class GateReport(Wire):
    """The gate's result."""

    questions: int
    margin: float = Field(description="Loss of a figure that is put up with.")
    needed: int = Field(description="Questions to tell whether the margin is kept; 0: they are enough.")
    measures: tuple[Measure, ...]
    worst: tuple[Rank, ...] = Field(description="Where the candidate is furthest behind.")
    passed: bool


class KeptGateReport(GateReport):
    """A report, with its time and the compared index."""

    against: str = Field(description="The index that was live then.")
    at: AwareDatetime
