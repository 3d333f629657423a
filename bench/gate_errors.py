"""How often the gate of evaluations errs: candidates with a known loss, drawn by chance and judged.

Of a figure that is right or wrong in each case, `differ` is the share of cases that differ although nothing is lost by
it. Two graded ones are beside it: a page that moves between the first and the second place, and the hardest kind to
tell: many cases that are better by a little hide a few that are lost altogether. Counts are drawn, so a verdict is
worked out once for each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import typer

from bench.report import numbers, report
from pipelines.evaluate.non_inferiority import verdict
from schemas.rebuild import State

SEED = 11
LOSSES = (0.0, 0.03, 0.08)  # of which the second is the default margin
COLUMNS = ("figure", "cases", "true loss", "passes", "worse", "too few cases")


@dataclass(frozen=True)
class Kind:
    """How cases differ: what a won, a lost and another case adds, and how many there are of the first two."""

    name: str
    won: float
    lost: float
    shares: Callable[[float], tuple[float, float]]  # by the true loss


def _differing(differ: float) -> Kind:
    return Kind(f"right or wrong, {differ:.2f} differ", 1, -1, lambda loss: (differ / 2, loss + differ / 2))


KINDS = (
    *map(_differing, (0.0, 0.02, 0.05, 0.1, 0.2)),
    Kind("first or second place, 0.10 differ", 0.5, -0.5, lambda loss: (0.05, 2 * loss + 0.05)),
    Kind("half better by 0.05, a few lost", 0.05, -1, lambda loss: (0.5, loss + 0.025)),
)


def main(
    sizes: Annotated[str, typer.Option(help="Comma-separated numbers of cases.")] = "100,300,1000",
    margin: Annotated[float, typer.Option(min=0.001, max=0.5, help="Loss that is put up with.")] = 0.03,
    draws: Annotated[int, typer.Option(min=1, help="Candidates of each kind.")] = 10_000,
) -> None:
    """How often `eval run --against` lets a worse candidate through, or stops one that is as good: simulated."""
    rng = np.random.default_rng(SEED)
    lines = [
        (kind.name, size, f"{loss:.2f}", *shares(kind, size, loss, margin, draws, rng))
        for kind in KINDS
        for size in numbers(sizes)
        for loss in LOSSES
    ]
    about = f"share of {draws:,} candidates each, margin {margin:g}"
    report("gate-errors", about, COLUMNS, lines, margin=margin, draws=draws, seed=SEED)


def shares(
    kind: Kind, size: int, loss: float, margin: float, draws: int, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Of candidates that lose `loss`: how many pass, are found worse, and are left undecided."""
    won, lost = kind.shares(loss)
    drawn = rng.multinomial(size, [won, lost, 1 - won - lost], draws)
    states: Counter[State] = Counter()
    for counts, times in Counter(map(tuple, drawn.tolist())).items():
        states[verdict(np.repeat([kind.won, kind.lost, 0.0], counts), margin)[0]] += times
    return states["not worse"] / draws, states["worse"] / draws, states["undecided"] / draws
