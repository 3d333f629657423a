"""Logs: an outage fills no disk, a record's place is in every line."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
import structlog
from aiokafka.errors import NotLeaderForPartitionError

from pipelines.runtime import logs
from wiring.settings import Settings


@pytest.fixture
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    configured = structlog.get_config()
    levels = {name: logging.getLogger(name).level for name in logs.CHATTY}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)
    structlog.configure(**configured)


def line(name: str, number: int) -> logging.LogRecord:
    return logging.LogRecord(name, logging.ERROR, "a.py", number, "cannot connect to %s", ("node 1",), None)


def test_the_same_line_of_a_chatty_library_comes_once_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(logs, "monotonic", lambda: now)
    once = logs.OncePer(10.0)
    assert [once.filter(line("aiokafka.conn", 1)) for _ in range(5)] == [True, False, False, False, False]
    assert once.filter(line("aiokafka.conn", 2))
    assert all(once.filter(line("worker.guard", 1)) for _ in range(5))
    now = 10.0
    later = line("aiokafka.conn", 1)
    assert once.filter(later)
    assert later.getMessage() == "cannot connect to node 1 (and 4 more like it)"


def test_a_new_brokers_first_second_is_no_error() -> None:
    text, args = "Failed fetch offsets from %s: %s", (1, NotLeaderForPartitionError())
    lines = [
        logging.LogRecord(name, logging.ERROR, "fetcher.py", 987, text, args, None)
        for name in ("aiokafka.consumer.fetcher", "our.module")
    ]
    assert [logs.OncePer(10.0).filter(each) for each in lines] == [False, True]


@pytest.mark.usefixtures("_restored")
def test_json_lines_carry_what_is_bound(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(Settings(log_json=True))
    with structlog.contextvars.bound_contextvars(topic="t", offset=7, trace_id="abc"):
        structlog.get_logger("x").info("done", records=1)
    logging.getLogger("library").warning("by %s", "stdlib")
    logging.getLogger("aiokafka").info("nothing new")
    ours, theirs = map(json.loads, capsys.readouterr().err.splitlines())
    assert (ours["event"], ours["topic"], ours["offset"], ours["trace_id"]) == ("done", "t", 7, "abc")
    assert (theirs["event"], theirs["level"], theirs["logger"]) == ("by stdlib", "warning", "library")


@pytest.mark.usefixtures("_restored")
@pytest.mark.parametrize("as_json", [True, False])
def test_a_traceback_says_where_and_not_with_what(capsys: pytest.CaptureFixture[str], as_json: bool) -> None:
    logs.configure(Settings(log_json=as_json))
    question = "my secret" + " illness"
    try:
        raise ValueError("broken")
    except ValueError:
        structlog.get_logger("x").exception("failed")
    said = capsys.readouterr().err
    assert "ValueError: broken" in said
    assert "test_logs.py" in said
    assert question not in said
