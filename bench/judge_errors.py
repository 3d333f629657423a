"""Whether what is said of a judge is so: judges whose errors are known, held against labels drawn by chance.

Of each answer it is drawn whether it is right, and whether the judge says so, as often as this judge does. Some of them
are labelled. Counted is how often the truth is within each 95 % interval, and how wide the interval is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.report import report
from pipelines.evaluate.judged.agreement import Counts, kappa, powered, share, true_negatives, true_positives

ANSWERS = 1_000
COLUMNS = (
    *("right", "called right", "called wrong", "labels"),  # of the judge
    *("kappa", "true positives", "true negatives", "by both", "labels alone", "judge alone"),  # of what is said of it
)


@dataclass(frozen=True)
class Judge:
    """A judge of known error, and the answers that it judges."""

    right: float  # share of the answers
    positive: float  # share of the right ones that it calls right
    negative: float  # share of the others that it calls wrong
    labels: int

    @property
    def kappa(self) -> float:
        """The true one."""
        agreed = self.right * self.positive + (1 - self.right) * self.negative
        said = self.right * self.positive + (1 - self.right) * (1 - self.negative)
        chance = self.right * said + (1 - self.right) * (1 - said)
        return (agreed - chance) / (1 - chance)


JUDGES = (
    Judge(0.7, 0.9, 0.8, 100),
    Judge(0.7, 0.9, 0.8, 50),
    Judge(0.85, 0.95, 0.7, 100),
    Judge(0.85, 0.95, 0.7, 50),
    Judge(0.3, 0.8, 0.95, 100),
    Judge(0.6, 0.99, 0.97, 50),
    Judge(0.7, 0.5, 0.5, 100),
)


@dataclass
class Found:
    """Of one interval: how often the truth was within, and its width, summed up."""

    within: int = 0
    width: float = 0.0


def recovered(judge: Judge, draws: int) -> dict[str, Found]:
    """What became of each interval; one that there is not, as of no label of a kind, does not have the truth."""
    truth = {
        "kappa": judge.kappa,
        "positive": judge.positive,
        "negative": judge.negative,
        **dict.fromkeys(("both", "labels", "judge"), judge.right),
    }
    found = {name: Found() for name in truth}
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        people = rng.random(ANSWERS) < judge.right
        said = np.where(people, rng.random(ANSWERS) < judge.positive, rng.random(ANSWERS) >= judge.negative)
        labelled = zip(people[: judge.labels].tolist(), said[: judge.labels].tolist(), strict=True)
        counts = Counts.of(labelled)
        told = {
            "kappa": kappa(counts),
            "positive": true_positives(counts),
            "negative": true_negatives(counts),
            "both": powered(counts, int(said[judge.labels :].sum()), ANSWERS - judge.labels),
            "labels": share(counts.right, counts.labels),
            "judge": share(int(said.sum()), ANSWERS),
        }
        for name, interval in told.items():
            if interval is not None:
                found[name].within += interval.low <= truth[name] <= interval.high
                found[name].width += interval.high - interval.low
    return found


def main(draws: int, judges: Sequence[Judge] = JUDGES) -> None:
    """Draw answers of each judge; print how often the truth is within."""
    lines = []
    for judge in judges:
        found = recovered(judge, draws)
        rates = [f"{found[name].within / draws:.3f}" for name in ("kappa", "positive", "negative")]
        shares = [
            f"{found[name].within / draws:.3f} ± {found[name].width / draws / 2:.3f}"
            for name in ("both", "labels", "judge")
        ]
        lines.append((judge.right, judge.positive, judge.negative, judge.labels, *rates, *shares))
    about = f"share of {draws:,} draws of {ANSWERS:,} answers in which the truth is within the 95 % interval"
    report("judge-errors", about, COLUMNS, lines, draws=draws)
