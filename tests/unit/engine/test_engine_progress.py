"""Bars for people at a terminal, lines for everyone else."""

from __future__ import annotations

import io

import pytest

from infra.engine.errors import PlainProgress, RichProgress, open_progress


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self) -> bool:
        return True


def test_a_pipe_gets_plain_lines() -> None:
    stream = io.StringIO()
    with open_progress(stream) as progress:
        assert isinstance(progress, PlainProgress)
        with progress.task("fetching", 86_000_000) as advance:
            advance(86_000_000)
    first, last = stream.getvalue().splitlines()
    assert first == "fetching (86 MB) ..."
    assert last.startswith("fetching: done in ")


def test_failed_work_is_not_called_done() -> None:
    stream = io.StringIO()
    with pytest.raises(RuntimeError, match="died"), PlainProgress(stream).task("starting Kafka"):
        raise RuntimeError("died")
    assert stream.getvalue() == "starting Kafka ...\n"


def test_a_terminal_gets_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    with open_progress(stream) as progress:
        assert isinstance(progress, RichProgress)
        progress.note("port 19092 is busy [really]")
        with progress.task("fetching", 10) as advance:
            advance(10)
    assert "fetching" in stream.getvalue()
    assert "100%" in stream.getvalue()
    assert "busy [really]" in stream.getvalue()
