"""Datasets out of the question log."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from pipelines.evaluate.dataset import BadDataset, Case, text_of
from schemas.base import problems
from schemas.outcome import QuestionList, QuestionRow

SEED = 7  # of a sample: the same questions every time


def question_log(path: Path, per_stratum: int | None = None) -> list[Case]:
    """Cases without labels, of what `pagewire questions --json` or `GET .../questions` lists.

    Only a liked answer labels its question: by the pages that it cites. The questions before it in its conversation are
    its history. What was logged without its text is left out.

    Args:
        per_stratum: at most so many of each outcome and language, by chance; of everything that was disliked all.

    Raises: BadDataset: it is something else.
    """
    try:
        rows = QuestionList.model_validate_json(text_of(path)).questions
    except ValidationError as err:
        raise BadDataset(f"{path}: not what `pagewire questions --json` prints: {problems(err)}") from err
    rows = tuple(sorted((row for row in rows if row.question), key=lambda row: row.asked_at))
    return [_logged(row, rows) for row in _sample(rows, per_stratum)]


def _sample(rows: Sequence[QuestionRow], per_stratum: int | None) -> list[QuestionRow]:
    if per_stratum is None:
        return list(rows)
    strata: dict[tuple[str, str], list[QuestionRow]] = {}
    for row in rows:
        if row.feedback != "down":
            strata.setdefault((row.became, row.asked_in), []).append(row)
    rng = random.Random(SEED)  # noqa: S311 - draws a sample, guards no secret
    drawn = {
        row.request_id for _, some in sorted(strata.items()) for row in rng.sample(some, min(per_stratum, len(some)))
    }
    return [row for row in rows if row.feedback == "down" or row.request_id in drawn]


def _logged(row: QuestionRow, rows: Sequence[QuestionRow]) -> Case:
    liked = row.feedback == "up"
    rated = {"up": ("liked",), "down": ("disliked",), None: ()}[row.feedback]
    earlier = (one for one in rows if one.conversation == row.conversation and one.asked_at < row.asked_at)
    return Case(
        id=row.request_id,
        question=row.question or "",
        lang=row.asked_in,
        history=tuple(one.question for one in earlier if one.question),
        pages=row.pages if liked else (),
        expect="answer" if liked and row.pages else None,
        tags=(row.became, *rated),
        note=row.comment or "",
    )
