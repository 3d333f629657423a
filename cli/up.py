"""`pagewire up`: the whole system as one foreground tree.

up ─┬─ Kafka, Elasticsearch (unless their addresses are configured)
    ├─ worker ingest --lane save
    ├─ worker ingest --lane bulk, which gives way to all others
    ├─ worker query
    └─ gateway
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.engine import engine_settings
from cli.output import complain, err, out
from cli.wired import at_stop, configure_logs, load
from infra.supervise import Child, ChildFailed, preload
from pipelines.runtime.niceness import NICEST

if TYPE_CHECKING:
    from infra.engine import RunningEngine
    from wiring.settings import Settings


def up(
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port of the gateway; 0 takes a free one.")] = None,
) -> None:
    """Start everything in the foreground; Ctrl-C stops all of it cleanly.

    Example: pagewire up --port 8080
    """
    settings = load()
    if port is not None:
        settings = settings.model_copy(update={"port": port})
    configure_logs(settings)
    code = asyncio.run(_up(settings))
    raise typer.Exit(code)


async def _up(settings: Settings) -> int:
    stop = asyncio.Event()
    at_stop(stop.set)
    up = asyncio.Event()
    serving = asyncio.create_task(_serve(settings, up, stop))
    asked = asyncio.create_task(stop.wait())
    await asyncio.wait((serving, asked), return_when=asyncio.FIRST_COMPLETED)
    if not serving.done() and not up.is_set():  # what has not started yet need not be waited for
        serving.cancel()
    asked.cancel()
    try:
        return await serving
    except asyncio.CancelledError:
        return 0


async def _serve(settings: Settings, up: asyncio.Event, stop: asyncio.Event) -> int:
    from gateway.edge.auth import admin_key

    try:
        async with running(settings) as system:
            up.set()
            out.print(f"ready {system.url}", highlight=False)
            _, path = admin_key(settings)
            if path:
                out.print(f"admin key in {path}")
            failed = asyncio.create_task(system.failed())
            asked = asyncio.create_task(stop.wait())
            await asyncio.wait((failed, asked), return_when=asyncio.FIRST_COMPLETED)
            asked.cancel()
            if failed.done():
                complain(failed.result())
                return 1
            failed.cancel()
            err.print("stopping ...")
    except ChildFailed as error:
        complain(error)
        return error.code
    return 0


LOADED = ("adapters.telemetry", "cli.work", "gateway.main", "wiring.stages")  # what workers and gateways load anyway


@dataclass(frozen=True)
class System:
    """The running tree."""

    settings: Settings  # with the addresses and the port that were taken
    url: str
    engine: RunningEngine | None
    children: tuple[Child, ...]
    seconds: float  # from when the servers answered until all parts were ready

    async def failed(self) -> str:
        """Wait until a server of the engine has gone; crashed children are started again by themselves."""
        if self.engine is None:
            await asyncio.Event().wait()
        assert self.engine
        return str(await self.engine.wait_crashed())


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[System]:
    """Start everything; stops it at the end, the edge first, the servers last.

    Raises:
        SettingsError: what cannot work, before anything is started. ChildFailed, EngineError, Retryable: what did not
            start.
    """
    from adapters.kafka import bootstrap_servers, ensure_topics
    from gateway.edge.auth import admin_key, token_secret
    from infra import engine  # workers and gateways, which are commands beside this one, do without
    from wiring import preflight

    await preflight.whole_system(settings)
    admin_key(settings)  # both are made before the gateway and its visitors race for them
    token_secret(settings)
    preload(*LOADED)
    async with AsyncExitStack() as stack:
        local = None
        if not (settings.kafka and settings.elasticsearch):
            with engine.open_progress() as progress:
                local = await engine.start(engine_settings(settings), detach=False, progress=progress)
            stack.push_async_callback(local.stop)
            settings = settings.model_copy(
                update={
                    "kafka": settings.kafka or local.kafka,
                    "elasticsearch": settings.elasticsearch or local.elasticsearch,
                }
            )
        began = perf_counter()
        await ensure_topics(bootstrap_servers(settings), settings)
        assert settings.kafka
        assert settings.elasticsearch
        environment = {
            "PAGEWIRE_KAFKA": settings.kafka,
            "PAGEWIRE_ELASTICSEARCH": settings.elasticsearch,
            "PAGEWIRE_PORT": str(settings.port),
            "PAGEWIRE_LOG_LEVEL": settings.log_level,
        }
        nice = settings.nice if "nice" in settings.model_fields_set else NICEST
        giving_way = environment | {"PAGEWIRE_NICE": str(nice)}
        children = (
            Child("worker ingest", ("worker", "ingest", "--lane", "save"), environment),
            Child("worker bulk", ("worker", "ingest", "--lane", "bulk"), giving_way),
            Child("worker query", ("worker", "query"), environment),
            Child("gateway", ("gateway",), environment),
        )
        with engine.open_progress() as progress, progress.task("starting workers and gateway"):
            tasks = [asyncio.create_task(child.run(), name=child.name) for child in children]
            stack.push_async_callback(_stop, children, tasks)
            url = await _all_ready(children, tasks)
        yield System(settings, url, local, children, perf_counter() - began)


async def _all_ready(children: Sequence[Child], tasks: Sequence[asyncio.Task[None]]) -> str:
    """The gateway's URL once all are ready. Raises: ChildFailed."""
    for child in children:
        waiting: set[asyncio.Future[Any]] = {child.ready, *tasks}
        while not child.ready.done():
            ended, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
    return children[-1].ready.result()


async def _stop(children: tuple[Child, ...], tasks: list[asyncio.Task[None]]) -> None:
    # The edge first, so that nothing new comes in; then ingest and query side by side.
    await children[-1].stop()
    await asyncio.gather(*(child.stop() for child in children))
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
