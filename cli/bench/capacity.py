"""The benchmarks of how much the system carries, and what it takes: time, memory, bytes."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.bench.given import numbers

app = typer.Typer()


@app.command()
def latency(rounds: Annotated[int, typer.Option(help="Questions and saves measured.")] = 60) -> None:
    """A question and a save through the bus against the same functions called directly.

    Example: pagewire bench latency --rounds 20
    """
    from bench import latency

    latency.main(rounds)


@app.command()
def streams(
    streams: Annotated[int, typer.Option(min=1, help="Visitors who read at once.")] = 100,
    tokens: Annotated[int, typer.Option(min=10, help="Tokens of each answer.")] = 200,
    interval: Annotated[float, typer.Option(min=0.001, help="Seconds between two of them.")] = 0.05,
) -> None:
    """Answers streamed to many at once through one gateway, against the same scripted model read directly.

    Example: pagewire bench streams --streams 10
    """
    from bench import streams as bench

    bench.main(streams, tokens, interval)


@app.command()
def transport(
    gateways: Annotated[int, typer.Option(min=1, help="Gateways that share the answers out.")] = 4,
    streams: Annotated[int, typer.Option(min=1, help="Readers at each, at once.")] = 50,
    events: Annotated[int, typer.Option(min=1, help="Events of each answer.")] = 100,
    interval: Annotated[float, typer.Option(min=0.001, help="Seconds between two of them.")] = 0.1,
) -> None:
    """What each of several gateways reads of all answers.

    Example: pagewire bench transport --gateways 2
    """
    from bench import transport as bench

    bench.main(gateways, streams, events, interval)


@app.command()
def gateway(
    streams: Annotated[int, typer.Option(min=1, help="Visitors who read at once.")] = 1000,
    events: Annotated[int, typer.Option(min=1, help="Events of each answer.")] = 100,
    interval: Annotated[float, typer.Option(min=0.001, help="Seconds between two of them.")] = 0.1,
    profile: Annotated[bool, typer.Option(help="Say where the time goes; the figures hold without it.")] = False,
) -> None:
    """What an event costs the gateway's processor, and how late it comes.

    Example: pagewire bench gateway --streams 100 --profile
    """
    from bench import gateway as bench

    bench.main(streams, events, interval, profile)


@app.command()
def restart(
    answers: Annotated[int, typer.Option(min=1, help="Answers under way.")] = 64,
    events: Annotated[int, typer.Option(min=0, help="Events of others in the log, before and after.")] = 50_000,
) -> None:
    """A worker starts again: how soon do the answers that were under way go on?

    Example: pagewire bench restart --events 1000
    """
    from bench import restart as bench

    bench.main(answers, events)


@app.command()
def commands(rounds: Annotated[int, typer.Option(min=1, help="Times that each is run.")] = 5) -> None:
    """What commands cost in processor time, and `pagewire ask` beside the same question over HTTP.

    Example: pagewire bench commands --rounds 3
    """
    from bench import commands as bench

    bench.main(rounds)


@app.command()
def footprint() -> None:
    """Memory of the running system.

    Example: pagewire bench footprint
    """
    from bench import footprint

    footprint.main()


@app.command()
def scale(
    chunks: Annotated[str, typer.Option(help="Comma-separated sizes, multiples of 25.")] = "10000,100000",
    dims: Annotated[int, typer.Option(min=1, max=4096, help="Length of the vectors.")] = 384,
) -> None:
    """Rebuild, audit and search at several sizes: cost per chunk, memory, disk.

    Example: pagewire bench scale --chunks 10000 --dims 1024
    """
    from bench import scale

    scale.main(numbers(chunks), dims)


@app.command()
def sizing(
    chunks: Annotated[str, typer.Option(help="Comma-separated sizes.")] = "1000000,100000000,1000000000",
    dims: Annotated[str, typer.Option(help="Comma-separated lengths of vectors, as measured.")] = "384,1024",
    markdown: Annotated[bool, typer.Option("--markdown", help="As in docs/reference/scale.md.")] = False,
) -> None:
    """What a site of any size needs: memory, disk, shards, partitions, workers, hours. Computed, nothing is run.

    Example: pagewire bench sizing --chunks 1000000 --dims 384
    """
    from bench import sizing

    sizing.main(numbers(chunks), numbers(dims), markdown)


@app.command(name="site-bytes")
def site_bytes(
    sites: Annotated[int, typer.Option(min=2, help="Sites that share the change log.")] = 1_000,
) -> None:
    """What an audit and a rebuild of one small site read, where many share the change log.

    Example: pagewire bench site-bytes --sites 100
    """
    from bench import site_bytes as bench

    bench.main(sites)


@app.command()
def sites(
    sites: Annotated[str, typer.Option(help="Comma-separated numbers of sites, at each of which is looked.")] = (
        "100,1000,3000,10000"
    ),
    configured: Annotated[int, typer.Option(help="Sites that pagewire.yaml has at least.")] = 0,
    settle: Annotated[float, typer.Option(min=1, help="Seconds of quiet before each look.")] = 60.0,
    patience: Annotated[
        float, typer.Option(min=1, help="Seconds for a step's pages and questions; what has come until then is told.")
    ] = 3_600.0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """A fleet of small sites, with a page and a question each: memory, `status`, the first save of one more.

    Beyond some hundred sites Elasticsearch needs more heap: set PAGEWIRE_ENGINE_ES_HEAP. PAGEWIRE_SITE_INDEX=shared
    puts them into shared indexes.

    Example: pagewire bench sites --sites 100,1000
    """
    from bench import sites as bench

    bench.main(numbers(sites), configured, settle, patience, json)
