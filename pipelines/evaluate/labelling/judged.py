"""The judge of a running site held against its raters: verdicts of the log beside the labels of the same answers.

log ─┬─ verdict and label ─▶ agreement: kappa, its two kinds of error ─┐
     └─ verdict alone ─────────────────────────────────────────────────┴▶ the share of right answers, by both together

Only one judge counts, and only as it is asked now: the one of the newest verdict, by the same prompts. A share of the
answers it has judged twice (`judging.again`): that tells how constant it is. Of these the first verdict counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.evaluate.judged.agreement import Interval, constancy
from pipelines.evaluate.judged.trust import Agreement, agreement
from pipelines.evaluate.labelling.labelled import counting, is_right
from pipelines.evaluate.labelling.ports import JudgedAnswer, Labelled
from pipelines.evaluate.labelling.raters import ALL
from schemas.label import Estimate, JudgeAgreement, JudgeFigure, JudgeGroup

BARS: dict[JudgeFigure, float] = {"faithfulness": 1.0, "context relevancy": 0.5}  # from here on the judge says right


def judge_agreement(
    labelled: Sequence[Labelled], judged: Sequence[JudgedAnswer], figure: JudgeFigure, bar: float | None = None
) -> JudgeAgreement:
    """How far the verdicts of a site's log agree with what its raters say, in all and by language.

    Args:
        judged: the newest first. bar: default: of the figure.
    """
    least = BARS[figure] if bar is None else bar
    if not judged:
        return JudgeAgreement(judge=None, figure=figure, bar=least, judged=0, other_judges=0, undecided=0, groups=())
    newest = judged[0]
    same = [each for each in judged if (each.judge, each.prompts) == (newest.judge, newest.prompts)]
    values = {each.request_id: (each.lang, each.figures[figure]) for each in same if figure in each.figures}
    said = {id: value >= least for id, (_, value) in values.items()}
    twice = [
        (each.figures[figure] >= least, each.again[figure] >= least)
        for each in same
        if figure in each.figures and figure in each.again
    ]
    agreed = constancy(twice)
    people = {}
    for there in labelled:
        counts = counting(there)
        if counts is not None:
            people[there.question.request_id] = is_right(counts.mark, there.question.outcome.became)
    members = {ALL: list(values)}
    for id, (lang, _) in sorted(values.items(), key=lambda each: each[1][0]):
        members.setdefault(f"lang {lang}", []).append(id)
    return JudgeAgreement(
        judge=newest.judge,
        figure=figure,
        bar=least,
        judged=len(said),
        other_judges=len(judged) - len(same),
        undecided=len(same) - len(said),
        constancy=agreed[0] if agreed else None,
        repeated=len(twice),
        groups=tuple(_told(name, agreement(people, said, ids)) for name, ids in members.items()),
    )


def _told(name: str, found: Agreement) -> JudgeGroup:
    return JudgeGroup(
        group=name,
        questions=found.counts.labels,
        people_right=_estimate(found.people_right),
        judge_right=_estimate(found.judge_right),
        kappa=_estimate(found.kappa),
        true_positives=_estimate(found.true_positives),
        true_negatives=_estimate(found.true_negatives),
        judged=found.judged,
        judged_right=_estimate(found.judged_right),
        right=_estimate(found.right),
        trust=found.trust,
    )


def _estimate(found: Interval | None) -> Estimate | None:
    return Estimate(value=found.value, low=found.low, high=found.high) if found else None
