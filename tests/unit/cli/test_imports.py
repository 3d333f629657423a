"""What a worker or a gateway loads, seen from a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys

import pytest


def loaded(code: str) -> str:
    """What of the names it prints a fresh interpreter has loaded."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


@pytest.mark.parametrize("module", ["wiring.stages", "gateway.main"])
def test_production_does_not_load_the_development_engine(module: str) -> None:
    code = f"import sys, cli.main, {module}; print([m for m in sys.modules if m.startswith('infra.engine')])"
    assert loaded(code) == "[]"


@pytest.mark.parametrize("module", ["wiring.stages", "gateway.main"])
def test_what_makes_spans_is_not_loaded_while_nothing_is_traced(module: str) -> None:
    names = ("opentelemetry.sdk", "opentelemetry.exporter", "pipelines.runtime.spans")
    code = f"import sys, cli.main, {module}; print([m for m in sys.modules if m.startswith({names})])"
    assert loaded(code) == "[]"


@pytest.mark.parametrize("arguments", [["--version"], ["engine", "--help"]], ids=" ".join)
def test_a_command_loads_what_it_needs_and_no_other(arguments: list[str]) -> None:
    run = f"from cli.main import app; app({arguments}, standalone_mode=False)"
    code = f"import sys; {run}; print('elasticsearch' in sys.modules, 'wiring.clients' in sys.modules)"
    assert loaded(code).splitlines()[-1] == "False False"


def test_status_loads_little_beside_what_it_looks_at() -> None:
    names = ("wiring.clients", "pipelines.ingest.handlers", "pipelines.evaluate.run", "fastapi")
    assert loaded(f"import sys, cli.main, cli.status; print([m for m in sys.modules if m.startswith({names})])") == "[]"
