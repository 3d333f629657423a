"""What several benchmarks are given."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
