"""A child that ends, hangs or never starts costs its own order, and the next one finds another child."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

import psutil
import pytest

from adapters import child_process
from adapters.child_process import ChildEnded, Kept, NotReady, environment

LONG = 60.0  # seconds


@contextmanager
def kept(*args: str) -> Iterator[Kept]:
    child = Kept("tests.obeying_child", args, environment=environment({}))
    try:
        yield child
    finally:
        child.close()


def ask(child: Kept, *order: Any, seconds: float = LONG) -> list[Any]:
    answer: list[Any] = json.loads(child.ask(json.dumps(order).encode(), seconds))
    return answer


def test_it_is_kept_and_answers_in_order_whatever_its_libraries_print() -> None:
    with kept() as child:
        assert ask(child, "echo", "first") == [child.pid, "first"]
        assert ask(child, "echo", "x" * 300_000) == [child.pid, "x" * 300_000]


@pytest.mark.parametrize("how", [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT])
def test_one_that_dies_of_its_order_is_replaced(how: signal.Signals) -> None:
    with kept() as child:
        [first] = ask(child, "echo")
        with pytest.raises(ChildEnded, match=how.name):
            ask(child, "die", how)
        assert ask(child, "echo") != [first]


def test_one_that_died_between_two_orders_is_replaced_and_no_order_blamed() -> None:
    with kept() as child:
        [first] = ask(child, "echo")
        os.kill(first, signal.SIGKILL)
        while psutil.Process(first).status() != psutil.STATUS_ZOMBIE:
            pass
        assert ask(child, "echo") != [first]


def test_one_that_hangs_is_killed_in_time() -> None:
    with kept() as child:
        [first] = ask(child, "echo")
        with pytest.raises(ChildEnded, match=r"took more than 0\.3 s"):
            ask(child, "hang", seconds=0.3)
        assert not psutil.pid_exists(first)


def test_one_that_is_frozen_is_killed_in_time_also_when_it_does_not_take_the_order() -> None:
    with kept() as child:
        [first] = ask(child, "echo")
        os.kill(first, signal.SIGSTOP)
        with pytest.raises(ChildEnded, match="took more than"):
            ask(child, "echo", "x" * 3_000_000, seconds=0.3)
        assert not psutil.pid_exists(first)


def test_one_that_computes_without_an_end_ends_itself() -> None:
    with kept() as child, pytest.raises(ChildEnded, match="computed for too long"):
        ask(child, "spin")


def test_one_that_never_gets_ready_is_not_the_orders_fault() -> None:
    with kept("unready") as child, pytest.raises(NotReady, match="exit code 3"):
        ask(child, "echo")


def test_after_each_death_in_a_row_the_pause_grows_and_an_answer_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process, "PAUSE", 7.0)
    monkeypatch.setattr(child_process, "LONGEST_PAUSE", 20.0)
    with kept() as child:
        pauses: list[float] = []
        monkeypatch.setattr(child._closing, "wait", pauses.append)
        for _ in range(5):
            with pytest.raises(ChildEnded):
                ask(child, "die", signal.SIGKILL)
        assert pauses == [7.0, 14.0, 20.0]
        ask(child, "echo")
        with pytest.raises(ChildEnded):
            ask(child, "die", signal.SIGKILL)
        ask(child, "echo")
        assert pauses == [7.0, 14.0, 20.0, 20.0]


def test_closing_ends_it() -> None:
    with kept() as child:
        [pid] = ask(child, "echo")
    assert not psutil.pid_exists(pid)


def test_it_knows_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    with kept() as child:
        assert "OPENAI_API_KEY" not in ask(child, "environment")


PARENT = """
import json, sys
from adapters.child_process import Kept, environment
child = Kept("tests.obeying_child", environment=environment({}))
print(json.loads(child.ask(b'["echo"]', 60))[0], flush=True)
if "busy" in sys.argv:
    child.ask(b'["spin"]', 60)
sys.stdin.read()
"""


@pytest.mark.parametrize("at", ["idle", "busy"])
def test_it_does_not_outlive_a_parent_that_was_killed(at: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, at], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
        parent.wait()
        began = monotonic()
        child.wait(timeout=30)
        assert monotonic() - began < 30
