"""The benchmarks of the way from a save to the index: imports, lanes, rebuilds, what breaks."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from cli.bench.given import Data, numbers
from cli.output import NOT_SO, complain

app = typer.Typer()


@app.command()
def ingest(
    data: Data,
    lang: Annotated[str, typer.Option(help="Language of the pages.")] = "en",
    pages: Annotated[int, typer.Option(help="Pages imported, at most.")] = 48,
) -> None:
    """Bulk import against the embedder alone, and that against the engine that its weights come with.

    Example: pagewire bench ingest --data xquad --lang en
    """
    from bench import ingest

    ingest.main(data, lang, pages)


@app.command()
def reimport(
    pages: Annotated[int, typer.Option(min=1, help="Pages imported.")] = 200,
    chunks: Annotated[int, typer.Option(min=1, help="Chunks a page, besides its title.")] = 5,
) -> None:
    """The same file imported twice: the second time nothing is embedded.

    Example: pagewire bench reimport --pages 1000
    """
    from bench import reimport

    reimport.main(pages, chunks)


@app.command()
def edits(
    data: Annotated[Path | None, typer.Option(help="Folder with xquad.LANG.json, for texts beside our own.")] = None,
    sizes: Annotated[str, typer.Option(help="Comma-separated chunk sizes.")] = "512,1000",
    edits: Annotated[int, typer.Option(min=15, help="Edits per text and size.")] = 3000,
) -> None:
    """Embeddings that a sentence inserted, changed or removed in a page of 50 chunks costs.

    Example: pagewire bench edits --data xquad --sizes 512
    """
    from bench import edits as bench

    bench.main(data, numbers(sizes), edits)


@app.command()
def lanes(
    chunks: Annotated[int, typer.Option(min=25, help="Chunks of the site.")] = 20_000,
    saves: Annotated[int, typer.Option(min=2, help="Saves measured beside each load.")] = 60,
    pages: Annotated[int, typer.Option(min=1, help="Pages of the import; it must outlast the saves.")] = 200,
) -> None:
    """A save until searchable: idle, during an import, during rebuilds.

    Example: pagewire bench lanes --saves 40
    """
    from bench import lanes

    lanes.main(chunks, saves, pages)


@app.command()
def shares(
    pages: Annotated[int, typer.Option(min=100, help="Pages of the large site.")] = 1_000,
    rounds: Annotated[int, typer.Option(min=1, help="Small sites, one after the other.")] = 3,
    milliseconds: Annotated[float, typer.Option(min=0, help="That the simulated model takes for a text.")] = 4.0,
) -> None:
    """A small site's 20 pages beside the import of a large one, over the same alone.

    Example: pagewire bench shares --pages 2000
    """
    from bench import shares as bench

    bench.main(pages, rounds, milliseconds)


@app.command()
def failures(
    minutes: Annotated[float, typer.Option(min=0.05, help="With a key that Elasticsearch refuses.")] = 20.0,
    saves: Annotated[int, typer.Option(min=4, help="Saves of a healthy site, idle and beside a broken one.")] = 160,
    scenes: Annotated[str, typer.Option(help="Comma-separated: `site`, `page`, `key`.")] = "site,page,key",
) -> None:
    """What a broken site, a page that kills its worker and a refused key cost their neighbours.

    Example: pagewire bench failures --minutes 5
    """
    from bench import failures

    wanted = [name.strip() for name in scenes.split(",")]
    if unknown := set(wanted) - set(failures.SCENES):
        raise typer.BadParameter(f"no such scene: {', '.join(sorted(unknown))}", param_hint="--scenes")
    failures.main(wanted, minutes, saves)


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


@app.command(name="rebuild-by-workers")
def rebuild_by_workers(
    pages: Annotated[int, typer.Option(min=4, help="Pages of the site.")] = 60,
    workers: Annotated[str, typer.Option(help="Comma-separated numbers of workers, beside one.")] = "4",
    milliseconds: Annotated[float, typer.Option(min=0, help="That each worker's model takes for a text.")] = 100.0,
) -> None:
    """A rebuild from changes by several workers against one, each with a simulated model of its own.

    Example: pagewire bench rebuild-by-workers --workers 2,4
    """
    from bench import rebuild_by_workers as bench

    bench.main(pages, [int(count) for count in workers.split(",")], milliseconds)


@app.command()
def attachments(
    pages: Annotated[int, typer.Option(min=1, help="At once.")] = 64,
    size: Annotated[int, typer.Option(min=1, max=20, help="MiB of each page's attachment.")] = 20,
) -> None:
    """Memory of a worker and its child that fetch and read large attachments. Needs what reads them.

    Example: pagewire bench attachments --pages 64
    """
    if find_spec("mammoth") is None:
        complain("bench attachments reads files of Word; `make setup-attachments` installs what does")
        raise typer.Exit(NOT_SO)
    from bench import attachments

    attachments.main(pages, size)


@app.command()
def wordpress(
    data: Data,
    saves: Annotated[int, typer.Option(min=2, help="Saves measured.")] = 50,
    posts: Annotated[int, typer.Option(min=10, help="Posts of the first sync.")] = 1000,
) -> None:
    """A real WordPress: a save until it is found, what the plugin costs the editor, the first sync.

    From a checkout only: the WordPress is that of the tests.

    Example: pagewire bench wordpress --data xquad --posts 100
    """
    if find_spec("tests") is None:
        complain("bench wordpress runs from a checkout of Pagewire only: it uses the WordPress of its tests")
        raise typer.Exit(NOT_SO)
    from bench import wordpress

    wordpress.main(data, saves, posts)
