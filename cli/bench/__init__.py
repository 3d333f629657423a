"""`pagewire bench`: the benchmarks of `bench/`, by what they are about, loaded when wanted."""

from __future__ import annotations

import typer

from cli.bench import answers, capacity, ingest, operators
from cli.bench.given import Data

app = typer.Typer(
    help="Benchmarks: each prints a table and writes .bench/NAME.json. They start a system of their own.",
    no_args_is_help=True,
)
for about in (answers, ingest, capacity, operators):
    app.add_typer(about.app)


@app.command("all")
def everything(data: Data) -> None:
    """All of them, one after the other.

    Example: pagewire bench all --data xquad
    """
    capacity.footprint()
    capacity.commands()
    answers.widget()
    capacity.latency()
    ingest.ingest(data)
    ingest.reimport()
    ingest.edits(data)
    ingest.lanes()
    ingest.failures()
    answers.retrieval()
    ingest.rebuild()
    capacity.scale()
    capacity.sizing()
    answers.quality(data)
    answers.gate(data)
