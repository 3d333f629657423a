"""`pagewire bench embedder` with the real FlagEmbedding, on a small checkpoint of its own making."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app

pytestmark = [
    pytest.mark.bge,
    # Of the libraries, about themselves.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


def test_it_compares_ours_with_theirs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    wanted = ["--texts", "10", "--batches", "2,5", "--slice-tokens", "300,600", "--questions", "2"]
    ran = CliRunner().invoke(app, ["bench", "embedder", "--random", *wanted])
    assert ran.exit_code == 0, ran.output
    assert "lowest cosine of theirs and ours 1.0000" in " ".join(ran.output.split())
    rows = json.loads(Path(".bench/embedder.json").read_text())["rows"]
    assert len(rows) == 2 + 1 + 2 * 3
    rates = {row["way"]: row["texts/s"] for row in rows if row["texts/s"] != ""}
    assert all(rate > 0 for rate in rates.values())
    assert [row["ratio"] for row in rows[:2]].count(1.0) == 1
    waits = [row["p95 ms"] for row in rows if row["p95 ms"] != ""]
    assert len(waits) == 5
    assert all(wait > 0 for wait in waits)
