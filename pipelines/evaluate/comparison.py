"""The gate of evaluations: whether a run may take the place of another of the same dataset.

The whole dataset must show that no figure is worse by the margin or more: each of them must, so that several figures
make it no easier (Berger, 1982). A language or a tag has fewer cases and cannot show as much; it stops a candidate that
is worse in it, by Holm's correction (1979) for as many as are looked at, and says how many cases it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from pipelines.evaluate.non_inferiority import ERROR, MARGIN, Paired, chance, paired
from pipelines.runtime.errors import WrongUse

Key = TypeVar("Key")
GATED = ("hit@1", "MRR@10", "right", "refusal")  # one of each kind: pages, answers, refusals
WHOLE = "all"

Figures = Mapping[str, Mapping[str, float]]
"""By case and measure."""
Outcome = Literal["passed", "worse", "too few cases"]


class NothingToCompare(WrongUse):
    """The cases measure none of the figures."""

    code = "nothing-to-compare"


@dataclass(frozen=True)
class FigureCheck:
    """One figure of a group of cases, before and after."""

    group: str
    measure: str
    figures: Paired
    stops: bool  # the candidate

    @property
    def outcome(self) -> str:
        """In a few words."""
        match self.figures.state:
            case "undecided":
                return f"too few cases: {self.figures.needed:,} needed"
            case "worse" if not self.stops:
                return "worse, as one of so many may be by chance"
            case state:
                return state


@dataclass(frozen=True)
class Comparison:
    """What the gate says."""

    margin: float
    outcome: Outcome
    needed: int  # cases for the margin; 0: there are enough
    checks: tuple[FigureCheck, ...]  # of the whole first

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"


def compare(
    live: Figures,
    candidate: Figures,
    groups: Mapping[str, frozenset[str]],
    margin: float = MARGIN,
    measures: Sequence[str] = GATED,
) -> Comparison:
    """Compare two runs of the same cases.

    Args:
        groups: ids of cases that are looked at by themselves, by name.

    Raises: NothingToCompare: no case has any of the measures in both runs.
    """
    whole = [pairs_of(live, candidate, name) for name in measures]
    if not any(whole):
        raise NothingToCompare(f"no case measures {' or '.join(measures)}")
    checks = []
    for name, values in zip(measures, whole, strict=True):
        if values:
            told = paired([before for before, _ in values], [after for _, after in values], margin)
            checks.append(FigureCheck(WHOLE, name, told, stops=told.state != "not worse"))
    parts = {
        (group, name): values
        for group, ids in groups.items()
        for name in measures
        if (values := pairs_of({id: live[id] for id in live if id in ids}, candidate, name))
    }
    lost = {key: chance([before - after for before, after in values], 0.0) for key, values in parts.items()}
    stopping = holm(lost)
    for (group, name), values in parts.items():
        told = paired([before for before, _ in values], [after for _, after in values], margin)
        checks.append(FigureCheck(group, name, told, stops=told.state == "worse" and (group, name) in stopping))
    return Comparison(margin, *_outcome(checks), tuple(checks))


def pairs_of(live: Figures, candidate: Figures, name: str) -> list[tuple[float, float]]:
    """A figure of the cases that have it in both runs."""
    return [(live[id][name], candidate[id][name]) for id in live if name in live[id] and name in candidate.get(id, {})]


def _outcome(checks: Sequence[FigureCheck]) -> tuple[Outcome, int]:
    stopped = [check for check in checks if check.stops]
    needed = max((check.figures.needed for check in stopped if check.group == WHOLE), default=0)
    if any(check.figures.state == "worse" for check in stopped):
        return "worse", needed
    return ("too few cases" if stopped else "passed"), needed


def holm(chances: Mapping[Key, float]) -> frozenset[Key]:
    """Those that hold although so many were looked at: the smallest chance must be below error / n, the next below
    error / (n - 1), and so on until one is not (Holm, 1979)."""
    return frozenset(key for key, value in adjusted(chances).items() if value <= ERROR)


def adjusted(chances: Mapping[Key, float]) -> dict[Key, float]:
    """The chances with Holm's correction in them: each holds by itself if it is not above the error.

    The smallest of n counts n times, the next n - 1 times, and none less than the one before it.
    """
    told: dict[Key, float] = {}
    most = 0.0
    for rank, (key, value) in enumerate(sorted(chances.items(), key=lambda item: item[1])):
        most = max(most, min(1.0, value * (len(chances) - rank)))
        told[key] = most
    return told
