"""What several benchmarks are given: options, questions, changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from schemas.page import PageChange, PageDocument
from schemas.query import Question

Data = Annotated[Path, typer.Option(help="Folder with xquad.LANG.json.")]

Share = Annotated[float, typer.Option(min=0.01, max=1, help="Of the questions, by a seed.")]


def names(given: str) -> list[str]:
    """The names in a list with commas between them."""
    return [name for name in given.split(",") if name]


def numbers(given: str) -> list[int]:
    """The numbers in such a list. Raises: typer.BadParameter."""
    try:
        return [int(number) for number in given.split(",")]
    except ValueError:
        raise typer.BadParameter(f"not whole numbers, separated by commas: {given}") from None


def question(site: str, lang: str, text: str, seconds: float = 300.0, **more: Any) -> Question:
    """A visitor's question of this moment, that has so many seconds."""
    now = datetime.now(UTC)
    return Question(
        request_id="benchmark", conversation_id="benchmark", site=site, lang=lang, question=text,
        asked_at=now, deadline=now + timedelta(seconds=seconds), **more,
    )  # fmt: skip


def change(site: str, page: PageDocument, at: datetime, revision: int = 1) -> PageChange:
    """A page as the change log has it; it names its language."""
    return PageChange(
        op="upsert", site=site, lang=page.lang, page_id=page.id, revision=revision, accepted_at=at, source="bench",
        page=page,
    )  # fmt: skip
