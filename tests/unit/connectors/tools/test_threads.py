"""Functions of strangers in threads: whatever they do, the worker goes on."""

from __future__ import annotations

import asyncio
import sys
import threading
from time import perf_counter
from typing import Any

import pytest
from pydantic import BaseModel

from connectors.tools.threads import RESULT_BYTES, InThread
from pipelines.query.answer.tools.registry import ToolFailed


async def test_a_function_runs_in_a_thread_of_its_own() -> None:
    assert await InThread("t", lambda: threading.current_thread().name)() == "tool t"


async def test_coroutines_run_there_too() -> None:
    async def slow(n: int) -> str:
        await asyncio.sleep(0)
        return f"{n} {threading.current_thread().name}"

    assert await InThread("t", slow)(n=3) == "3 tool t"


class Fee(BaseModel):
    amount: float


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (4.5, "4.5"),
        ({"a": [1]}, '{"a":[1]}'),
        (Fee(amount=3), '{"amount":3.0}'),
        ("", ""),
        (False, "false"),
        ("a\ud800", "a?"),
    ],
)
async def test_data_becomes_json(result: Any, text: str) -> None:
    assert await InThread("t", lambda: result)() == text


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("result", "complaint"),
    [
        (None, "returned nothing"),
        ("x" * 5_000_000, "more than"),
        (["x" * RESULT_BYTES], "more than"),
        (object(), "no text and no data"),
        (LOOP, "no text and no data"),
    ],
    ids=["nothing", "5 MB", "long data", "an object", "a circle"],
)
async def test_what_is_no_result_is_refused(result: Any, complaint: str) -> None:
    with pytest.raises(ToolFailed, match=complaint):
        await InThread("t", lambda: result)()


async def test_only_complaints_about_arguments_are_passed_on() -> None:
    def fails(error: BaseException) -> str:
        raise error

    with pytest.raises(ValueError, match="grades"):
        await InThread("t", fails)(error=ValueError("grades"))
    for error in (RuntimeError("password=x"), SystemExit(3), KeyboardInterrupt(), MemoryError()):
        with pytest.raises(ToolFailed, match=r"^it failed$"):
            await InThread("t", fails)(error=error)


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


async def test_an_error_without_words_frees_its_thread() -> None:
    def fails() -> str:
        raise Wordless

    tool = InThread("t", fails)
    with pytest.raises(ToolFailed, match=r"^it failed$"):
        await tool()
    assert tool._running == 0


async def test_a_function_that_hangs_is_given_up_and_refused_when_all_of_its_threads_hang() -> None:
    go = threading.Event()

    def hangs() -> str:
        go.wait(30)
        return "late"

    tool = InThread("t", hangs, timeout=0.05, most=2)
    began = perf_counter()
    for _ in range(2):
        with pytest.raises(ToolFailed, match="no result within"):
            await tool()
    with pytest.raises(ToolFailed, match="its calls do not end"):
        await tool()
    assert perf_counter() - began < 5
    go.set()  # they end after all, and it can be called again
    async with asyncio.timeout(5):
        while True:
            try:
                assert await tool() == "late"
                break
            except ToolFailed:
                await asyncio.sleep(0.01)


async def test_a_coroutine_that_waits_for_ever_frees_its_thread() -> None:
    async def waits() -> str:
        await asyncio.Event().wait()
        return ""

    tool = InThread("t", waits, timeout=0.05, most=1)
    for _ in range(3):
        with pytest.raises(ToolFailed, match="no result within"):
            await tool()
        async with asyncio.timeout(5):
            while tool._running:  # noqa: ASYNC110  # nothing says that it ended
                await asyncio.sleep(0.01)


async def test_a_coroutine_that_blocks_stops_nobody() -> None:
    go = threading.Event()

    async def blocks() -> str:
        go.wait(30)
        return ""

    tool = InThread("t", blocks, timeout=0.3)
    call = asyncio.create_task(tool())
    began = perf_counter()
    await asyncio.sleep(0.01)
    assert perf_counter() - began < 0.25
    with pytest.raises(ToolFailed, match="no result within"):
        await call
    go.set()


async def test_a_thread_that_hangs_keeps_no_process_from_stopping() -> None:
    code = (
        "import asyncio, time\n"
        "from connectors.tools.threads import InThread\n"
        "async def main():\n"
        "    try: await InThread('t', lambda: time.sleep(600), timeout=0.05)()\n"
        "    except Exception as err: print(err)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(60):
        out, _ = await process.communicate()
    assert b"no result within" in out
    assert process.returncode == 0
