"""The rules of labels, as functions of what is there: who may still change one, what counts, what is shown to whom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pipelines.evaluate.labelling.ports import Labelled, UnknownQuestion
from pipelines.evaluate.labelling.queue import RATERS
from pipelines.runtime.errors import Permanent
from schemas.label import AnswerLabel, LabelState, Mark
from schemas.outcome import Became

Rule = Callable[[Labelled], Labelled]


class LabelsStand(Permanent):
    """Two raters have labelled the question: both labels stand as they were given, and can only be settled."""

    code = "labels-stand"


class NothingToSettle(Permanent):
    """Two labels are there before something can be settled between them."""

    code = "nothing-to-settle"


def given(label: AnswerLabel) -> Rule:
    """Adds a rater's label, or changes it while it is the only one."""

    def rule(there: Labelled) -> Labelled:
        _labelable(there)
        if len(there.labels) >= RATERS:
            raise LabelsStand(f"two raters have labelled the question {there.question.request_id}: settle the two")
        others = tuple(one for one in there.labels if one.rater != label.rater)
        return replace(there, labels=(*others, label))

    return rule


def settled(label: AnswerLabel) -> Rule:
    """Says what counts of two labels; may be said again."""

    def rule(there: Labelled) -> Labelled:
        _labelable(there)
        if len(there.labels) < RATERS:
            raise NothingToSettle(f"the question {there.question.request_id} has {len(there.labels)} of two labels")
        return replace(there, settled=label)

    return rule


def labelable(there: Labelled) -> bool:
    """Whether there is something to say of it: its words and its answer are kept."""
    outcome = there.question.outcome
    return bool(outcome.question and outcome.answer) and not there.question.erased


def _labelable(there: Labelled) -> None:
    if not labelable(there):
        raise UnknownQuestion(f"of the question {there.question.request_id} no words or no answer are kept")


def state(there: Labelled) -> LabelState | None:
    """None: nobody has labelled it."""
    if there.settled is not None:
        return "settled"
    if len(there.labels) < RATERS:
        return "one" if there.labels else None
    return "agreed" if len({label.mark for label in there.labels}) == 1 else "disagreed"


def shown(there: Labelled, viewer: str) -> tuple[AnswerLabel, ...]:
    """The labels that do not influence whoever looks: another's only once their own is given, or both are there."""
    if len(there.labels) >= RATERS or there.of(viewer) is not None:
        return there.labels
    return ()


def is_right(mark: Mark, became: Became) -> bool:
    """Whether a mark calls the answer right. To what cannot be answered, a refusal is the right answer."""
    return mark == "right" or (mark == "unanswerable" and became == "refused")


def counting(there: Labelled) -> AnswerLabel | None:
    """The label that counts; of two that agree, the first with what it lacks. None: they differ, or there is none."""
    if there.settled is not None:
        return there.settled
    if not there.labels or state(there) == "disagreed":
        return None
    first = there.labels[0]
    filled = {
        name: next((value for one in there.labels if (value := getattr(one, name))), getattr(first, name))
        for name in ("why", "better", "pages")
    }
    return first.model_copy(update=filled)
