"""`pagewire worker`, `gateway`: the parts of the system."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cli.wired import logged
from pipelines.runtime.record import LANES, Lane

if TYPE_CHECKING:
    from wiring.settings import Settings

# `pagewire up` holds the other end of this pipe: when it dies, however, so do its children.
FollowParent = Annotated[bool, typer.Option("--follow-parent", hidden=True)]


def worker(
    stages: Annotated[
        list[str],
        typer.Argument(help="chunk embed index rebuild rephrase retrieve answer judge log, ingest, query or all"),
    ],
    lane: Annotated[
        Literal["save", "bulk", "both"],
        typer.Option(help="Ingest saves, or what they overtake (imports, bulk changes, repairs, rebuilds), or both."),
    ] = "both",
    follow_parent: FollowParent = False,
) -> None:
    """Run stages in this process. Many processes share the work.

    Example: pagewire worker chunk embed
    """
    if follow_parent:
        gc.disable()  # until `ready`: collecting takes a tenth of the start, and there is hardly any garbage
    from adapters.telemetry import traced
    from wiring import preflight
    from wiring.stages import in_lanes, stage_names, work  # loads Faust, which only a worker needs

    settings = started(follow_parent)
    lanes: tuple[Lane, ...] = LANES if lane == "both" else (lane,)
    names = in_lanes(stage_names(stages), lanes)
    preflight.stages(settings, names)
    with traced(f"pagewire-{names[0]}" if len(names) == 1 else "pagewire-worker"):
        code = asyncio.run(work(names, settings, lambda: ready(*names), lanes))
    raise typer.Exit(code)


def gateway(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = None,
    follow_parent: FollowParent = False,
) -> None:
    """Run the HTTP edge.

    Example: pagewire gateway --port 8080
    """
    if follow_parent:
        gc.disable()  # until `ready`: collecting takes a tenth of the start, and there is hardly any garbage
    from adapters.telemetry import traced
    from gateway.main import run_gateway

    settings = started(follow_parent)
    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    with traced("pagewire-gateway"):
        asyncio.run(run_gateway(settings.model_copy(update=given), ready))


def started(follow_parent: bool) -> Settings:
    """Settings and logs of a command that runs for long; it ends with its parent, if wanted."""
    settings = logged()
    if follow_parent:
        threading.Thread(target=_follow_parent, daemon=True, name="follow-parent").start()
    return settings


def _follow_parent() -> None:
    # Ends when the parent closes the pipe or dies. Not through sys.stdin, whose lock a daemon thread must not hold
    # when the interpreter ends.
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def ready(*what: str) -> None:
    """Print that this part is ready, for its parent; logs go to standard error."""
    print("ready", *what, flush=True)
    # Models, dictionaries and settings are loaded by now, and stay for good: without this each full collection of
    # garbage walks through all of it, a tenth of a second of every few questions.
    gc.collect()
    gc.freeze()
    gc.enable()
