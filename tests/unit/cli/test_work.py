"""Commands that run for long: what they do when they are ready."""

from __future__ import annotations

import gc

import pytest

from cli.work import ready


def test_what_is_loaded_is_put_aside_before_it_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        ready("retrieve", "answer")
        assert gc.get_freeze_count() > 1_000
    finally:
        gc.unfreeze()
    assert capsys.readouterr().out == "ready retrieve answer\n"
