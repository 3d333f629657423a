"""What benchmarks share: options, questions and changes; a table for people, a JSON file for the next run."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from schemas.page import PageChange, PageDocument
from schemas.query import Question

RESULTS = Path(".bench")
RESAMPLES = 2_000
SEED = 7  # the same samples have the same interval


def report(
    name: str,
    about: str,
    columns: Sequence[str],
    lines: Sequence[Sequence[object]],
    **more: Any,
) -> None:
    """Print the table, and write it with everything else to `.bench/NAME.json`."""
    table = Table(title=about, title_justify="left", box=None, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    for line in lines:
        table.add_row(*(f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in line))
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"{name}.json"
    document = {
        "bench": name,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "rows": [dict(zip(columns, line, strict=True)) for line in lines],
        **more,
    }
    file.write_text(json.dumps(document, indent=2, default=float) + "\n")
    Console(width=140).print(table)
    print(f"\n{file}")


def percentile(values: Sequence[float], q: float) -> float:
    return float(np.percentile(np.asarray(values), q))


def interval(hits: Sequence[bool] | Sequence[float]) -> tuple[float, float, float]:
    """Mean and its 95 % bootstrap interval over the samples (Efron, 1979)."""
    values = np.asarray(hits, dtype=float)
    rng = np.random.default_rng(SEED)
    means = rng.choice(values, size=(RESAMPLES, len(values))).mean(axis=1)
    return float(values.mean()), float(np.percentile(means, 2.5)), float(np.percentile(means, 97.5))


def paired_interval(differences: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[float, float]:
    """95 % interval of the mean of paired differences (percentile bootstrap; Efron, 1979), always the same."""
    rng = np.random.default_rng(SEED)
    count = len(differences)
    means = differences[rng.integers(0, count, (RESAMPLES, count))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


Data = Annotated[Path, typer.Option(help="Folder with xquad.LANG.json.")]

Langs = Annotated[str, typer.Option(help="Comma-separated: pages and questions in that language.")]
Cross = Annotated[str, typer.Option(help="Comma-separated pairs; `de:en` asks in German on English pages.")]
EmbedderName = Annotated[str, typer.Option(help="As PAGEWIRE_EMBEDDER.")]
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


def library_page(page_id: str, n: int) -> dict[str, object]:
    """A short page about a library, another one for each number."""
    text = f"A library card costs {n} euros for adults in the year {2000 + n}. Children under 14 pay nothing."
    return {"id": page_id, "title": f"Library {n}", "content": f"<p>{text}</p>"}
