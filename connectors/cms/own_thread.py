"""A thread for one blocking object that is not thread-safe, such as a SQLite database.

If a caller is cancelled, its call still runs to the end, and the object is closed after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Closes(Protocol):
    def close(self) -> None: ...


Thing = TypeVar("Thing", bound=Closes)


class OwnThread(Generic[Thing]):
    """`async with OwnThread(make) as own: await own.do(own.thing.method, argument)`."""

    def __init__(self, make: Callable[[], Thing]) -> None:
        self._make = make
        self._thread = ThreadPoolExecutor(1, "own")

    async def __aenter__(self) -> Self:
        try:
            self.thing = await self.do(self._make)
        except BaseException:
            self._thread.shutdown(wait=False)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.submit(self.thing.close)
        self._thread.shutdown(wait=False)

    async def do(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call in the thread; calls run one after the other."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(work, *args, **kwargs))


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of all coroutines, run concurrently. If one fails, the others are cancelled."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
