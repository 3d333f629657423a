"""The repository stands alone: nothing in it points to a document that is not in it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from docs.generate import NOT_COMMITTED

ROOT = Path(__file__).parents[3]
# What the project was begun from, and what comments called it.
OUTSIDE = re.compile(r"\b(?:SPEC|CONTRACT|DESIGN) [A-E]?\d|\b(?:FAUST|PEERS|SPEC|CONTRACT|DESIGN)\.md|\bfounders\b")
PAGE = re.compile(r"(?<![\w/])docs/[\w./-]*\w\.(?:md|yaml|py|svg|png)\b")


def lines() -> Iterator[tuple[str, str]]:
    """Every line of text that git keeps, with where it stands."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        path = ROOT / name
        if path == Path(__file__) or not path.is_file() or b"\0" in (raw := path.read_bytes()):
            continue
        for number, line in enumerate(raw.decode("utf-8", "replace").split("\n"), 1):
            yield f"{name}:{number}", line


def test_nothing_refers_to_documents_from_before() -> None:
    assert [f"{where}: {line.strip()}" for where, line in lines() if OUTSIDE.search(line)] == []


def test_pages_that_code_and_pages_name_are_there() -> None:
    named = {(where, page) for where, line in lines() for page in PAGE.findall(line)}
    assert len(named) > 50
    built = tuple(f"docs/reference/{name}" for name in NOT_COMMITTED)
    gone = {(where, page) for where, page in named if not ((ROOT / page).exists() or page.startswith(built))}
    assert sorted(gone) == []
