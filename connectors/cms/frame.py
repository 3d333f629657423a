"""The protocol of sources: a list of public pages, and the pages themselves.

inventory ─▶ sync:       fetch everything ─▶ intake, bulk lane
          └▶ reconcile:  compare with the change log ─▶ fetch what is missing or newer, delete what is gone

OwnThread is for sources that block and are not thread-safe. If a caller is cancelled, its call still runs to the end,
and the object is closed after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeVar

from schemas.page import PageDocument


@dataclass(frozen=True)
class Listed:
    """One public page in a CMS's list, without its content."""

    page_id: str
    lang: str
    revision: int  # from its modified time, milliseconds


@dataclass(frozen=True)
class UnreadablePage:
    """A listed page that cannot be read. In an inventory: a part that cannot be listed, so that nothing is deleted."""

    listed: Listed
    reason: str


@dataclass(frozen=True)
class Barred:
    """A listed page that is not shown to visitors at its address. It is not published, and deleted if it was."""

    listed: Listed
    address: str
    reason: str


@dataclass(frozen=True)
class Omitted:
    """An address that is no page for the search, and why, for editors who miss it."""

    address: str
    reason: str


class CmsSource(Protocol):
    """A CMS that can be read. All methods raise Retryable (it is down) or Permanent (it refuses, or is another CMS)."""

    def inventory(self) -> AsyncGenerator[Listed | Omitted | UnreadablePage, None]:
        """All public pages. An incomplete list must raise, since pages that are not listed are deleted."""
        ...

    def fetch(self, wanted: Sequence[Listed]) -> AsyncGenerator[PageDocument | UnreadablePage | Barred, None]:
        """The pages with their languages and current revisions. Pages that are gone are left out. So are pages saved in
        the last seconds, if modified times are in whole seconds: their webhooks send them.
        """
        ...

    async def now(self) -> int:
        """The CMS's clock in milliseconds, which is the revision of deletes."""
        ...


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
