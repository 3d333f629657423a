"""What a worker or a gateway loads, seen from a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys

import pytest


def loaded(code: str) -> str:
    """What of the names it prints a fresh interpreter has loaded."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


def test_production_loads_neither_the_development_engine_nor_what_makes_spans() -> None:
    names = ("infra.engine", "opentelemetry.sdk", "opentelemetry.exporter", "pipelines.runtime.spans")
    code = (
        "import sys, cli.main\n"
        "for module in ('wiring.stages', 'gateway.main'):\n"
        f"    __import__(module); print(module, [m for m in sys.modules if m.startswith({names})])"
    )
    assert loaded(code).splitlines() == ["wiring.stages []", "gateway.main []"]


HEAVY = (
    "aiokafka",
    "bs4",
    "elasticsearch",
    "fastapi",
    "faust",
    "httpx",
    "numpy",
    "openai",
    "pipelines.runtime.settings",
    "sklearn",
    "wiring",
)


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["no-such-command"]], ids=" ".join)
def test_who_asks_what_there_is_loads_nothing(arguments: list[str]) -> None:
    assert loaded_by(arguments) == set()


def test_no_command_loads_the_clients_of_servers_before_it_runs() -> None:
    """For their help and for a wrong option; one after the other, so that the first that does is told."""
    heavy = ("elasticsearch", "faust", "fastapi", "openai", "wiring")
    code = (
        "import sys; from cli.main import OnDemand\n"
        "for name, command in OnDemand().items():\n"
        f"    if found := [module for module in {heavy} if module in sys.modules]: print(name, found); break"
    )
    assert loaded(code) == ""


def loaded_by(arguments: list[str]) -> set[str]:
    """Of what takes long to load, what a command has loaded."""
    run = f"from cli.main import app\ntry: app({arguments})\nexcept SystemExit: pass"
    code = f"import sys\n{run}\nprint('loaded', *(name for name in {HEAVY} if name in sys.modules))"
    return set(loaded(code).splitlines()[-1].split()[1:])


def test_status_loads_little_beside_what_it_looks_at() -> None:
    names = ("wiring.clients", "pipelines.ingest.handlers", "pipelines.evaluate.run", "fastapi")
    assert loaded(f"import sys, cli.main, cli.status; print([m for m in sys.modules if m.startswith({names})])") == "[]"
