"""What a worker or a gateway loads, seen from a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["wiring.stages", "gateway.main"])
def test_production_does_not_load_the_development_engine(module: str) -> None:
    code = f"import sys, cli.main, {module}; print([m for m in sys.modules if m.startswith('infra.engine')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
