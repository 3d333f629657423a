"""The wheel, built once from the checkout, and fixtures of the tests that install it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.package.contents import ROOT
from tests.package.outside import Outside

BUILD_TIMEOUT = 120.0  # seconds; the registry brings hatchling


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution it was built from, as `make dist` makes them."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_TIMEOUT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    (wheel,) = dist.glob("pagewire-*.whl")
    return wheel


@pytest.fixture(scope="session")
def package_cache() -> Iterator[Path]:
    # Not pytest's own temporary folder: that one is kept for three runs, and this is half a gigabyte.
    with TemporaryDirectory(prefix="pagewire-packages-") as folder:
        yield Path(folder)


@pytest.fixture
def outside(package_cache: Path) -> Iterator[Outside]:
    with TemporaryDirectory(prefix="pagewire-outside-") as folder:
        yield Outside(Path(folder), package_cache)
