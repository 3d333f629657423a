"""`pagewire bench`: the benchmarks of `bench/`, loaded when wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Benchmarks: each prints a table and writes .bench/NAME.json. They start a system of their own.",
    no_args_is_help=True,
)
Data = Annotated[Path, typer.Option(help="Folder with xquad.LANG.json.")]


@app.command()
def quality(
    data: Data,
    langs: Annotated[
        str, typer.Option(help="Comma-separated; `de:en` asks in German on English pages.")
    ] = "en,de,ro,de:en",
    modes: Annotated[str, typer.Option(help="Comma-separated.")] = "hybrid,vector,keyword",
) -> None:
    """How often the right page comes first: hybrid, vectors alone, keywords alone.

    Example: pagewire bench quality --data xquad --langs en,de
    """
    from bench import quality

    quality.main(data, langs, modes)


@app.command()
def ingest(
    data: Data,
    lang: Annotated[str, typer.Option(help="Language of the pages.")] = "en",
    pages: Annotated[int, typer.Option(help="Pages imported, at most.")] = 48,
) -> None:
    """Bulk import against the embedder alone.

    Example: pagewire bench ingest --data xquad --lang en
    """
    from bench import ingest

    ingest.main(data, lang, pages)


@app.command()
def latency(rounds: Annotated[int, typer.Option(help="Questions and saves measured.")] = 60) -> None:
    """A question and a save through the bus against the same functions called directly.

    Example: pagewire bench latency --rounds 20
    """
    from bench import latency

    latency.main(rounds)


@app.command()
def rebuild(
    chunks: Annotated[str, typer.Option(help="Comma-separated sizes.")] = "10000",
    rounds: Annotated[int, typer.Option(min=1, help="Measured so often, alternating.")] = 2,
) -> None:
    """A rebuild from embeddings against `helpers.async_bulk` writing the same documents; memory.

    Example: pagewire bench rebuild --chunks 10000,100000
    """
    from bench import rebuild

    rebuild.main([int(size) for size in chunks.split(",")], rounds)


@app.command()
def floors(data: Data, embedder: Annotated[str, typer.Option(help="As PAGEWIRE_EMBEDDER.")] = "lite") -> None:
    """Cosines of right and of random pairs, and the similarity floors that follow from them.

    Example: pagewire bench floors --data xquad --embedder bge-m3
    """
    from bench import floors

    floors.main(data, embedder=embedder)


@app.command()
def footprint() -> None:
    """Memory of the running system.

    Example: pagewire bench footprint
    """
    from bench import footprint

    footprint.main()


@app.command("all")
def everything(data: Data) -> None:
    """All of them, one after the other.

    Example: pagewire bench all --data xquad
    """
    footprint()
    latency()
    ingest(data)
    quality(data)
