"""What the arms of an experiment differ by from their base, and which of them are shown to.

differences of each case ─▶ paired interval, chance of them by noise ─▶ Holm's correction over all ─▶ better │ worse │ -

Intervals and chances are those of the gate (pipelines.evaluate.non_inferiority), on both sides. Whoever looks at twenty
arms finds one in twenty "significant" where nothing differs, so a verdict is given only where it holds although so many
were looked at. The intervals are each by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal

import numpy as np

from pipelines.evaluate.comparison import Figures, adjusted
from pipelines.evaluate.evaluation import BOTH_SIDES
from pipelines.evaluate.non_inferiority import ERROR, POWER, chance, lower_bound

Verdict = Literal["better", "worse", "not shown"]


@dataclass(frozen=True)
class Difference:
    """A figure of an arm beside that of the base, over the cases that have it in both."""

    arm: str
    measure: str
    cases: int
    base: float
    mean: float
    difference: float  # mean minus base
    low: float  # 95 % interval, of this arm by itself
    high: float
    by_noise: float  # chance of a difference as large, or larger, if there were none
    corrected: float  # the same after Holm's correction
    verdict: Verdict
    needed: int  # cases that show a difference worth knowing, if they differ as much as these; 0: there are enough


def differences(
    base: Figures, arms: Mapping[str, Figures], measures: Sequence[str], worth: float
) -> tuple[Difference, ...]:
    """Of each arm and measure that base and arm have a case of, in the order given; all are corrected together.

    Args:
        base: figures by case and measure.
        worth: the smallest difference that is worth knowing, 0..1.
    """
    pairs = {
        (name, measure): values
        for name, arm in arms.items()
        for measure in measures
        if (values := _pairs(base, arm, measure))
    }
    found = [_difference(name, measure, values) for (name, measure), values in pairs.items()]
    chances = adjusted({(each.arm, each.measure): each.by_noise for each in found})
    told = []
    for each in found:
        key = each.arm, each.measure
        verdict: Verdict = "not shown"
        if chances[key] <= ERROR:
            verdict = "better" if each.difference > 0 else "worse"
        spread = [after - before for before, after in pairs[key]]
        needed = cases_to_show(spread, worth, len(found))
        told.append(
            replace(
                each,
                corrected=chances[key],
                verdict=verdict,
                needed=needed if verdict == "not shown" and needed > each.cases else 0,
            )
        )
    return tuple(told)


def cases_to_show(spread: Sequence[float], worth: float, looked_at: int) -> int:
    """Cases by which a difference of `worth` is shown four times of five, if the cases differ as much as these.

    n = ((z_error + z_power) / worth)² variance (Julious, 2004), both sides, with the error shared by all that are
    looked at, as the strictest step of Holm's correction has it. Not below the cases that could show it if each that
    differs were won: where hardly any case differs, the variance promises too much.
    """
    error = ERROR / looked_at
    z = NormalDist().inv_cdf(1 - error / 2) + NormalDist().inv_cdf(POWER)
    by_variance = (z / worth) ** 2 * float(np.var(np.asarray(spread, dtype=float)))
    return max(math.ceil(by_variance), math.ceil(math.log2(2 / error) / worth))


def _pairs(base: Figures, arm: Figures, measure: str) -> list[tuple[float, float]]:
    return [(base[id][measure], arm[id][measure]) for id in base if measure in base[id] and measure in arm.get(id, {})]


def _difference(arm: str, measure: str, values: Sequence[tuple[float, float]]) -> Difference:
    before, after = np.asarray(values, dtype=float).T
    spread = after - before
    # As good as these if there were none, and as bad: on either side half of what is put up with.
    by_noise = min(1.0, 2 * min(chance(spread, 0.0), chance(-spread, 0.0)))
    return Difference(
        arm=arm,
        measure=measure,
        cases=len(values),
        base=float(before.mean()),
        mean=float(after.mean()),
        difference=float(spread.mean()),
        low=lower_bound(spread, BOTH_SIDES),
        high=-lower_bound(-spread, BOTH_SIDES),
        by_noise=by_noise,
        corrected=1.0,
        verdict="not shown",
        needed=0,
    )
