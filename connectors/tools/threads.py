"""Runs a tool's function in a thread of its own, so that one that hangs stops nothing else.

Python cannot end a thread. A call that is past its time is given up, and its thread runs on as a daemon, which keeps no
process from stopping. A tool has so many threads at most: when all of them hang, it is refused, and everything else
goes on. A function that holds the interpreter's lock (an extension in C) stops the process all the same.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Any

import structlog
from pydantic_core import PydanticSerializationError, to_json

from pipelines.query.answer.tools.registry import ToolFailed
from pipelines.runtime.metrics import TOOL_THREADS

log = structlog.get_logger(__name__)

TIMEOUT = 5.0  # seconds of a call
MOST_THREADS = 8  # of one tool at once
RESULT_BYTES = 64 * 1024


class InThread:
    """The function as a coroutine that returns text.

    Raises (when called):
        ToolFailed: it failed, took too long or returned too much. ValueError: the function's own, about its arguments.
    """

    def __init__(
        self, name: str, function: Callable[..., Any], timeout: float = TIMEOUT, most: int = MOST_THREADS
    ) -> None:
        self._name = name
        self._function = function
        self._timeout = timeout
        self._most = most
        self._late = f"no result within {timeout:g} s"
        self._running = 0
        TOOL_THREADS.labels(name).set(0)

    async def __call__(self, /, **arguments: Any) -> str:
        if self._running >= self._most:
            log.error("tool refused", tool=self._name, code="tool-hangs", threads=self._running)
            raise ToolFailed("it is busy, or its calls do not end")
        loop = asyncio.get_running_loop()
        result: asyncio.Future[str] = loop.create_future()
        run = partial(contextvars.copy_context().run, self._run, loop, result, arguments)
        thread = Thread(target=run, name=f"tool {self._name}", daemon=True)
        try:
            thread.start()
        except RuntimeError as err:
            raise ToolFailed("this machine has no thread left") from err
        self._count(1)
        try:
            async with asyncio.timeout(self._timeout):
                return await result
        except TimeoutError:
            log.error("tool took too long", tool=self._name, code="tool-timeout", seconds=self._timeout)
            raise ToolFailed(self._late) from None

    def _run(self, loop: asyncio.AbstractEventLoop, result: asyncio.Future[str], arguments: dict[str, Any]) -> None:
        text, failure = "", None
        try:
            text = self._text(arguments)
        except (ValueError, OverflowError, ToolFailed) as err:
            failure = err
        except TimeoutError:
            failure = ToolFailed(self._late)
        except BaseException as err:  # noqa: BLE001  # strangers' code may raise anything
            log.error("tool failed", tool=self._name, code="tool-failed", error=_message(err))
            failure = ToolFailed("it failed")
        with suppress(RuntimeError):  # the loop is closed: the caller has left
            loop.call_soon_threadsafe(self._ended, result, text, failure)

    def _text(self, arguments: dict[str, Any]) -> str:
        said = self._function(**arguments)
        if inspect.isawaitable(said):
            said = asyncio.run(self._awaited(said))
        if said is None:
            raise ToolFailed("it returned nothing")
        try:
            text = said if isinstance(said, str) else to_json(said).decode()
        except (PydanticSerializationError, ValueError, RecursionError) as err:
            raise ToolFailed(f"it returned a {type(said).__name__}, which is no text and no data") from err
        if len(text) > RESULT_BYTES:
            raise ToolFailed(f"it returned more than {RESULT_BYTES:,} characters")
        return text.encode("utf-8", "replace").decode()

    async def _awaited(self, said: Any) -> Any:
        async with asyncio.timeout(self._timeout):
            return await said

    def _ended(self, result: asyncio.Future[str], text: str, failure: Exception | None) -> None:
        self._count(-1)
        if result.done():
            return
        if failure is None:
            result.set_result(text)
        else:
            result.set_exception(failure)

    def _count(self, more: int) -> None:
        self._running += more
        TOOL_THREADS.labels(self._name).set(self._running)


def _message(err: BaseException) -> str:
    """Of an error whose own code may fail."""
    try:
        return f"{type(err).__name__}: {err}"
    except Exception:  # noqa: BLE001
        return type(err).__name__
