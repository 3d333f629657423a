"""`pagewire engine`: the local Kafka and Elasticsearch.

The engine is loaded by the commands that are about it alone: workers and gateways do without.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from cli.output import NOT_SO, Json, err, out, print_json, table
from cli.wired import at_stop, load

if TYPE_CHECKING:
    from infra.engine import EngineStatus, LocalEngineSettings
    from wiring.settings import Settings

app = typer.Typer(
    help="The local engine: real Kafka and real Elasticsearch on loopback, without Docker or an installed JDK.",
    no_args_is_help=True,
)


def engine_settings(settings: Settings) -> LocalEngineSettings:
    """The engine's part of the settings."""
    from infra.engine import LocalEngineSettings

    return LocalEngineSettings(
        home=settings.home,
        kafka_port=settings.engine_kafka_port,
        es_port=settings.engine_es_port,
        kafka_heap=settings.engine_kafka_heap,
        es_heap=settings.engine_es_heap,
    )


@app.command("start")
def start(
    detach: Annotated[
        bool,
        typer.Option("--detach", help="Return when both answer; stop with `engine stop`. Default: run until Ctrl-C."),
    ] = False,
) -> None:
    """Start what does not run yet.

    Example: pagewire engine start --detach
    """
    asyncio.run(_start(engine_settings(load()), detach))


async def _start(settings: LocalEngineSettings, detach: bool) -> None:
    from infra import engine

    with engine.open_progress() as progress:
        running = await engine.start(settings, detach=detach, progress=progress)
    out.print(f"kafka          {running.kafka}\nelasticsearch  {running.elasticsearch}")
    if detach:
        return
    # On stderr, so that it is seen where the output goes through a pipe, which stays open until then.
    err.print("running until Ctrl-C; `pagewire engine start --detach` returns at once")
    stop = asyncio.Event()
    at_stop(stop.set)
    crashed = asyncio.create_task(running.wait_crashed())
    asked = asyncio.create_task(stop.wait())
    await asyncio.wait((crashed, asked), return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    await running.stop()
    if crashed.done():
        raise crashed.result()
    crashed.cancel()


@app.command("stop")
def stop() -> None:
    """Stop both, also those that another command started; data stays.

    Example: pagewire engine stop
    """
    from infra import engine

    stopped = asyncio.run(engine.stop(engine_settings(load())))
    out.print("stopped" if stopped else "nothing was running")


@app.command("status")
def status(json: Json = False) -> None:
    """Versions, ports, memory. Exit code 1 when it is not running.

    Example: pagewire engine status --json
    """
    from infra import engine

    found = asyncio.run(engine.status(engine_settings(load())))
    if json:
        print_json(found)
    else:
        out.print(_status_table(found))
    if not found.running:
        raise typer.Exit(NOT_SO)


def _status_table(found: EngineStatus) -> object:
    lines = [
        (
            server.name,
            server.version,
            ("serving" if server.healthy else "starting") if server.running else "stopped",
            server.url,
            server.pid,
            f"{server.rss_bytes / 2**20:,.0f} MiB" if server.rss_bytes else "",
            server.data_dir,
        )
        for server in (found.kafka, found.elasticsearch)
    ]
    return table(("server", "version", "state", "address", "pid#", "memory#", "data"), lines)


@app.command("reset")
def reset(yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False) -> None:
    """Stop both and delete their data.

    Example: pagewire engine reset --yes
    """
    from infra import engine
    from pipelines.ingest.importing import forget_all

    settings = engine_settings(load())
    if not yes:
        typer.confirm(f"Delete all topics and indexes under {settings.home}?", abort=True)
    asyncio.run(engine.stop(settings))
    engine.reset(settings)
    forget_all(settings.home)
    out.print("data deleted")
