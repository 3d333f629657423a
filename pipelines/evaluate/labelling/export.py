"""Labels as a file: a line of JSON for each question, which `pagewire judge-agreement --labels` and
`pagewire datasets import labels` both read. Who said it is not in it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pipelines.evaluate.labelling.labelled import counting, is_right, state
from pipelines.evaluate.labelling.ports import Labelled
from schemas.outcome import cited_pages


def line(there: Labelled, earlier: Sequence[str]) -> str:
    """One question. What two raters differ on has neither `mark` nor `right`, until somebody settles it."""
    outcome, counts = there.question.outcome, counting(there)
    told = {
        "case": there.question.request_id,
        "lang": outcome.asked_in,
        "question": outcome.question,
        "history": list(earlier),
        "answer": outcome.answer,
        "became": outcome.became,
        "cited": list(cited_pages(outcome)),
        "labels": len(there.labels),
        "state": state(there),
        "mark": counts.mark if counts else None,
        "right": is_right(counts.mark, outcome.became) if counts else None,
        "why": counts.why if counts else "",
        "reference": counts.better if counts else "",
        "pages": list(counts.pages) if counts else [],
    }
    return json.dumps(told, ensure_ascii=False) + "\n"
