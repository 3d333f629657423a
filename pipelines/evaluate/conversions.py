"""Datasets out of what there is: files in SQuAD's format, and the question log."""

from __future__ import annotations

import html
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import ValidationError

from pipelines.evaluate.dataset import BadDataset, Case, text_of
from schemas.base import problems
from schemas.outcome import QuestionList, QuestionRow
from schemas.page import PageDocument

SEED = 7  # of a sample: the same questions every time


def squad(path: Path, lang: str) -> tuple[list[Case], list[PageDocument]]:
    """Questions in the format of SQuAD 1.1 and 2.0 (also XQuAD, MLQA, GermanQuAD), and their articles as pages.

    A question's page is its article, and its reference answers are the marked ones; `is_impossible` cannot be answered.

    Raises: BadDataset: it is in another format.
    """
    cases, pages = [], []
    try:
        for number, article in enumerate(_json(path)["data"]):
            title = str(article.get("title") or f"article {number}")
            paragraphs: list[dict[str, Any]] = article["paragraphs"]
            content = "\n".join(f"<p>{html.escape(paragraph['context'])}</p>" for paragraph in paragraphs)
            pages.append(_page(title, lang, content))
            for asked in (asked for paragraph in paragraphs for asked in paragraph["qas"]):
                answers = tuple(dict.fromkeys(answer["text"] for answer in asked.get("answers") or ()))
                wanted = (
                    {"expect": "refuse"}
                    if asked.get("is_impossible")
                    else {"expect": "answer", "pages": (title,), "page_lang": lang, "answers": answers}
                )
                told = {"id": str(asked["id"]), "question": asked["question"], "lang": lang}
                cases.append(Case.model_validate(told | wanted))
    except ValidationError as err:
        raise BadDataset(f"{path}: {problems(err)}") from err
    except (KeyError, TypeError, AttributeError) as err:
        raise BadDataset(f"{path}: not in SQuAD's format: {type(err).__name__} {err}") from err
    return cases, pages


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


def _page(title: str, lang: str, content: str) -> PageDocument:
    url = f"https://dataset.example/{lang}/{quote(title)}"
    return PageDocument(id=title, lang=lang, url=url, title=title.replace("_", " "), content=content)


def _json(path: Path) -> Any:
    try:
        return json.loads(text_of(path))
    except ValueError as err:
        raise BadDataset(f"{path}: no JSON: {err}") from err
