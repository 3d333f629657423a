"""What people say of answers: a sheet to fill in, and what they filled in."""

from __future__ import annotations

import csv
import io
import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from pipelines.evaluate.dataset import NDJSON, YAML, Case
from pipelines.evaluate.judged.material import asked
from pipelines.evaluate.measures import Observed
from pipelines.runtime.errors import WrongUse
from schemas.base import problems
from text.spreadsheets import guarded, unguarded

SEED = 7  # of a sheet: the same answers every time
COLUMNS = ("case", "lang", "question", "reference", "answer", "right")


class BadLabels(WrongUse):
    """A file cannot be used as labels."""

    code = "bad-labels"


def _nothing(value: Any) -> Any:
    """An empty cell is no label."""
    return None if isinstance(value, str) and not value.strip() else value


def _as_written(value: Any) -> Any:
    """The value of a cell of a sheet."""
    return unguarded(value) if isinstance(value, str) else value


Cell = Annotated[str, BeforeValidator(_as_written)]


class Label(BaseModel):
    """Whether an answer is right, as somebody says who has read it."""

    model_config = ConfigDict(frozen=True, extra="ignore")  # the other columns of a sheet

    case: Cell
    right: Annotated[bool | None, BeforeValidator(_nothing)] = None  # None: not labelled yet
    answer: Cell | None = None  # which was read; a label of another answer does not count


def load_labels(path: Path) -> list[Label]:
    """Those of a CSV, YAML or NDJSON file that say something.

    Raises:
        BadLabels: says where and what.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix in NDJSON:
            entries: Any = [json.loads(line) for line in text.splitlines() if line.strip()]
        else:
            entries = yaml.safe_load(text) if path.suffix in YAML else list(csv.DictReader(io.StringIO(text)))
    except (OSError, ValueError, yaml.YAMLError, csv.Error) as err:
        raise BadLabels(f"{path}: cannot be read as labels: {err}") from err
    if not isinstance(entries, list):
        raise BadLabels(f"{path}: must be a list of {{case, right}}")
    labels = []
    for number, entry in enumerate(entries, 1):
        try:
            labels.append(Label.model_validate(entry))
        except ValidationError as err:
            raise BadLabels(f"{path}, entry {number}: {problems(err)}") from err
    said = [label for label in labels if label.right is not None]
    twice = sorted(case for case, count in Counter(label.case for label in said).items() if count > 1)
    if twice:
        raise BadLabels(f"{path}: labelled twice: {', '.join(twice[:5])}")
    return said


def sheet(cases: Sequence[Case], observed: Mapping[str, Observed], size: int) -> str:
    """A CSV file of so many answers by chance, to be labelled in its last column.

    What a judge says is not in it. Before what would be a formula stands an apostrophe.
    """
    drawn = random.Random(SEED).sample(list(cases), min(size, len(cases)))  # noqa: S311 - draws a sample
    written = io.StringIO()
    lines = csv.writer(written, lineterminator="\n")
    lines.writerow(COLUMNS)
    for case in drawn:
        cells = (case.id, case.lang or "", asked(case), " | ".join(case.answers), observed[case.id].answer, "")
        lines.writerow(map(guarded, cells))
    return written.getvalue()


def same_answer(label: Label, observed: Observed) -> bool:
    """Whether a label is of this answer. Programs that edit sheets change spaces and line breaks."""
    return label.answer is None or label.answer.split() == observed.answer.split()
