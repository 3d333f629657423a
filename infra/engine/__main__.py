"""`python -m infra.engine fetch|start|stop|status|reset`: the engine alone, for tests."""

# ruff: noqa: T201 (a command line prints)

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import signal
import sys
from pathlib import Path

from infra.engine import EngineStatus, LocalEngineSettings, jars, open_progress, reset, start, status, stop
from infra.engine.settings import DEFAULT_ES_HEAP, DEFAULT_ES_PORT, DEFAULT_KAFKA_HEAP, DEFAULT_KAFKA_PORT
from pipelines.runtime.errors import PagewireError, SettingsError

EXIT_NO = 1  # the answer is no
EXIT_WRONG_USE = 2
EXIT_UNAVAILABLE = 3  # a service is unavailable


def main(arguments: list[str] | None = None) -> int:
    """Run a command. Returns the exit code (docs/reference/commands.md)."""
    options = _parser().parse_args(arguments)
    try:
        settings = LocalEngineSettings(
            home=options.home,
            kafka_port=options.kafka_port,
            es_port=options.es_port,
            kafka_heap=options.kafka_heap,
            es_heap=options.es_heap,
        )
        if options.command == "fetch":
            return asyncio.run(_fetch(settings))
        if options.command == "start":
            return asyncio.run(_start(settings, options.detach))
        if options.command == "stop":
            return 0 if asyncio.run(stop(settings)) else EXIT_NO
        if options.command == "status":
            return _print_status(asyncio.run(status(settings)), options.json)
        reset(settings)
    except SettingsError as err:
        print(err, file=sys.stderr)
        return EXIT_WRONG_USE
    except PagewireError as err:
        print(err, file=sys.stderr)
        return EXIT_UNAVAILABLE
    except KeyboardInterrupt:
        return EXIT_NO
    return 0


async def _fetch(settings: LocalEngineSettings) -> int:
    """Download the servers before a start."""
    with open_progress() as progress:
        await jars.fetch(settings.cache, progress)
    return 0


async def _start(settings: LocalEngineSettings, detach: bool) -> int:
    """Start; without `detach`, run until SIGINT, SIGTERM or the end of a server."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    with open_progress() as progress:
        engine = await start(settings, detach=detach, progress=progress)
    print(f"kafka {engine.kafka}\nelasticsearch {engine.elasticsearch}", flush=True)
    if detach or not engine.owned:
        return 0
    try:
        raise await engine.wait_crashed()
    except asyncio.CancelledError:
        return 0
    finally:
        await engine.stop()


def _print_status(state: EngineStatus, as_json: bool) -> int:
    if as_json:
        print(json.dumps(dataclasses.asdict(state), default=str, indent=1))
    else:
        for server in (state.kafka, state.elasticsearch):
            if server.running and server.rss_bytes is not None:
                health = "serves" if server.healthy else "does not answer"
                where = f"{health}, {server.url}, pid {server.pid}, {server.rss_bytes / 2**20:.0f} MiB"
            else:
                where = "stopped"
            print(f"{server.name} {server.version}: {where}; data in {server.data_dir}")
    return 0 if state.running else EXIT_NO


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.engine", description=__doc__)
    parser.add_argument("command", choices=["fetch", "start", "stop", "status", "reset"])
    parser.add_argument("--home", type=Path, default=Path(".pagewire"), help="PAGEWIRE_HOME (%(default)s)")
    parser.add_argument("--kafka-port", type=int, default=DEFAULT_KAFKA_PORT)
    parser.add_argument("--es-port", type=int, default=DEFAULT_ES_PORT)
    parser.add_argument("--kafka-heap", default=DEFAULT_KAFKA_HEAP)
    parser.add_argument("--es-heap", default=DEFAULT_ES_HEAP)
    parser.add_argument("--detach", action="store_true", help="start and return")
    parser.add_argument("--json", action="store_true", help="status as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
