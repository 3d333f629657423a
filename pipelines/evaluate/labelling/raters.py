"""How far raters agree: of each two, over what both have labelled, in all and by language.

Kappa is of right or not, with the functions that hold a judge against people: here the one takes the place of people,
the other that of the judge.
"""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.evaluate.judged.agreement import Counts, Interval, kappa, share
from pipelines.evaluate.labelling.labelled import is_right
from pipelines.evaluate.labelling.ports import Labelled
from pipelines.evaluate.labelling.queue import RATERS
from schemas.label import Estimate, RaterAgreement

ALL = "all"


def agreement(labelled: Iterable[Labelled]) -> list[RaterAgreement]:
    """Of each pair of raters, by name; `all` before its languages. What was settled later changes nothing."""
    groups: dict[tuple[str, str, str], list[tuple[bool, bool, bool]]] = {}
    for there in labelled:
        if len(there.labels) < RATERS:
            continue
        outcome = there.question.outcome
        one, other = sorted(there.labels, key=lambda label: label.rater)
        said = (is_right(one.mark, outcome.became), is_right(other.mark, outcome.became), one.mark == other.mark)
        for group in (ALL, f"lang {outcome.asked_in}"):
            groups.setdefault((one.rater, other.rater, group), []).append(said)
    # "all" sorts before "lang ...".
    return [_of_pair(*key, said) for key, said in sorted(groups.items())]


def _of_pair(one: str, other: str, group: str, said: list[tuple[bool, bool, bool]]) -> RaterAgreement:
    counts = Counts.of((mine, yours) for mine, yours, _ in said)
    return RaterAgreement(
        one=one,
        other=other,
        group=group,
        questions=counts.labels,
        same=_estimate(share(sum(same for _, _, same in said), counts.labels)),
        one_right=_estimate(share(counts.right, counts.labels)),
        other_right=_estimate(share(counts.judged_right, counts.labels)),
        kappa=_estimate(kappa(counts)),
    )


def _estimate(found: Interval | None) -> Estimate | None:
    return Estimate(value=found.value, low=found.low, high=found.high) if found else None
