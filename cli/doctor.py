"""`pagewire doctor`: what is missing on this machine, and the command that mends it."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from cli.output import NOT_SO, Json, explained, out, print_json, table
from cli.wired import logged

app = typer.Typer(no_args_is_help=True, help="What is missing on this machine, and the command that mends it.")
COLOURS = {"fine": "green", "problem": "red", "unknown": "yellow"}


@app.command()
def embedder(
    name: Annotated[
        str | None,
        typer.Argument(
            help="`lite`, `bge-m3`, `bge-m3-sparse`, `onnx:FOLDER` or `openai:MODEL`; default: PAGEWIRE_EMBEDDER."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Whether an embedder can work here: its package, its weights, one vector, and the live indexes of the sites, which
    are compared where Elasticsearch answers. Exit code 1 at the first thing that is missing.

    Example: pagewire doctor embedder

    Example: pagewire doctor embedder bge-m3 --json
    """
    with explained():
        settings = logged()
        from wiring.embedder_check import check_embedder

        report = asyncio.run(check_embedder(settings, name or settings.embedder))
    if json:
        print_json({**asdict(report), "fine": report.fine})
    else:
        lines = table(("check", "", "found"))
        for check in report.checks:
            lines.add_row(check.name, Text(check.state, COLOURS[check.state]), Text(check.said))
        out.print(lines)
    if not report.fine:
        raise typer.Exit(NOT_SO)
