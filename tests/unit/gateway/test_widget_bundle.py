"""The committed bundles: small, and made of the source beside them."""

from __future__ import annotations

import gzip
import re
import subprocess
from pathlib import Path

import pytest

from widget import wire

ROOT = Path(__file__).parents[3]
WIDGET = ROOT / "widget"
BUNDLE = ROOT / "gateway/site/static/widget.js"
SEARCH = BUNDLE.with_name("search.js")
LARGEST_SEARCH = 15 * 1024  # bytes, gzipped
LARGEST = 40_000  # bytes, gzipped


def test_they_are_small() -> None:
    assert len(gzip.compress(BUNDLE.read_bytes())) <= LARGEST
    assert len(gzip.compress(SEARCH.read_bytes())) <= LARGEST_SEARCH


@pytest.mark.parametrize("file", [BUNDLE, SEARCH])
def test_they_ask_for_nothing_else(file: Path) -> None:
    text = file.read_text("utf-8")
    assert "innerHTML" not in text
    assert "eval(" not in text
    assert "import(" not in text
    # Names of namespaces and examples apart, it knows no address.
    assert set(re.findall(r"http://([\w.:/]*)", text)) <= {"www.w3.org/2000/svg", "127.0.0.1:8080"}


def test_the_lock_names_no_registry() -> None:
    assert "resolved" not in (WIDGET / "package-lock.json").read_text("utf-8")


def test_it_speaks_as_the_schemas_do() -> None:
    assert wire.TARGET.read_text("utf-8") == wire.typescript(), "run `make widget`"


@pytest.mark.node
def test_its_types_fit() -> None:
    done = subprocess.run(
        ["node_modules/.bin/tsc"], cwd=WIDGET, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.node
def test_they_are_made_of_their_source(tmp_path: Path) -> None:
    subprocess.run(["node", "build.mjs", str(tmp_path)], cwd=WIDGET, check=True, timeout=60)
    for file in (BUNDLE, SEARCH):
        assert (tmp_path / file.name).read_bytes() == file.read_bytes(), "run `make widget`"
