"""`python -m bench`: every measurement is a command with a sentence of help, and only a checkout has them."""

from __future__ import annotations

import sys

import pytest
from typer.testing import CliRunner

from bench.__main__ import NAMES, app
from cli.main import app as pagewire


def test_every_measurement_has_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["bench"])
    shown = CliRunner().invoke(app(), ["--help"]).output
    assert all(name in shown for name in (*NAMES, "all"))


def test_pagewire_bench_is_the_same_and_is_not_in_the_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["pagewire", "bench", "sizing"])
    assert "in a day" in CliRunner().invoke(pagewire, ["bench", "sizing", "--markdown"]).output
    assert "bench" not in CliRunner().invoke(pagewire, ["--help"]).output


def test_without_a_checkout_there_is_no_such_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.main.find_spec", lambda name: None)
    assert CliRunner().invoke(pagewire, ["bench", "sizing"]).exit_code == 2
