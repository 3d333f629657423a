from __future__ import annotations

from pathlib import Path

import pytest

from docs import wording

PYTHON = '''"""Whoever reads it."""
x = "nobody"  # by the clock
def f() -> None:
    """One idea. `whom` is code."""
'''


def test_turns_are_found_in_comments_docstrings_and_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wording, "ROOT", tmp_path)
    (tmp_path / "a.py").write_text(PYTHON)
    (tmp_path / "b.md").write_text("Fine.\n\nThe stage is told.\n")
    lines = [line for name in ("a.py", "b.md") for line in wording.found(tmp_path / name)]
    assert [line.partition("': ")[0] for line in lines] == [
        "a.py:2: 'by the clock",
        "a.py:1: 'Whoever",
        "b.md:3: 'is told",
    ]
