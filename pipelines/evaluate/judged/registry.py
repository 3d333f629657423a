"""All judged measures, by the names that the command takes."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.evaluate.judged.claims import ClaimsFC, Faithfulness
from pipelines.evaluate.judged.informationless import Informationless
from pipelines.evaluate.judged.measure import JudgedMeasure
from pipelines.evaluate.judged.relevancy import ContextRelevancy
from pipelines.evaluate.judged.rubrics import RubricsFC
from pipelines.evaluate.judged.score import Score
from pipelines.runtime.errors import WrongUse

ALL = "all"
JUDGED: tuple[JudgedMeasure, ...] = (
    Score(),
    ClaimsFC(),
    Faithfulness(),
    ContextRelevancy(),
    RubricsFC(),
    Informationless(),
)


def named(names: Sequence[str]) -> tuple[JudgedMeasure, ...]:
    """The measures of these names, in our order. Raises: WrongUse: there is no such."""
    known = {measure.name for measure in JUDGED}
    if unknown := [name for name in names if name not in {*known, ALL}]:
        raise WrongUse(f"no judged measure {unknown[0]!r}; there are {', '.join((ALL, *sorted(known)))}")
    return tuple(measure for measure in JUDGED if ALL in names or measure.name in names)
