"""Pages name files, functions and tests of this repository; what they name is there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TRACKED = subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
).stdout.split("\n")
PAGES = sorted(name for name in TRACKED if name.endswith(".md") and (ROOT / name).is_file())
TOP = {name.partition("/")[0] for name in TRACKED if "/" in name}
RINGS = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}
MEDIA_TYPES = {"text/csv", "text/event-stream", "text/html", "text/plain"}
# `pipelines/ingest/index.py`, `tests/faults`, `docs/decisions/`; in guarantees.md also `unit/ingest/test_index.py`.
NAMED = re.compile(r"`([\w.-]+(?:/[\w.{},*-]+)+/?)`")
STEP = re.compile(r"^\| \d+ \| `([^`]+)` \| (.*?): ", re.M)


@pytest.mark.parametrize("page", PAGES)
def test_files_that_a_page_names_are_there(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for name in NAMED.findall(text):
        first = name.partition("/")[0]
        if any(mark in name for mark in "{*") or first not in TOP | RINGS or name in MEDIA_TYPES:
            continue
        assert (ROOT / name).exists() or (ROOT / "tests" / name).exists(), name


def test_the_steps_of_the_architecture_name_what_is_in_their_file() -> None:
    steps = STEP.findall((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
    assert len(steps) >= 30
    for file, told in steps:
        code = (ROOT / file).read_text(encoding="utf-8")
        for name in re.findall(r"`([\w.]+)`", told):
            for part in name.split("."):
                assert re.search(rf"(?:def|class|function) {part}\b", code), f"{file}: {name}"
