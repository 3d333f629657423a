"""The frame every puller fits into: a list of what is public now, and the pages themselves.

inventory ─▶ sync:       fetch everything ─▶ intake, bulk lane
          └▶ reconcile:  compare with the change log ─▶ fetch what is missing or newer, delete what is gone
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Protocol

from schemas.page import PageDocument


@dataclass(frozen=True)
class Listed:
    """One public page as its CMS lists it, without its content."""

    page_id: str
    lang: str
    revision: int  # from its modified time, milliseconds


@dataclass(frozen=True)
class Unreadable:
    """A page that is listed but could not be read; the others go on. In an inventory: a part of it that cannot be
    listed, so that nobody knows which pages are there, and none is deleted.
    """

    listed: Listed
    reason: str


@dataclass(frozen=True)
class Barred:
    """A page that is listed, and that visitors do not get at its address: it is not published, and goes if it was."""

    listed: Listed
    address: str
    reason: str


@dataclass(frozen=True)
class Omitted:
    """An address that was met and is no page for the search, and why: for who misses it there."""

    address: str
    reason: str


class Source(Protocol):
    """A CMS that can be asked. All raise Retryable (it is away) or Permanent (it refuses, or is not what we think)."""

    def inventory(self) -> AsyncGenerator[Listed | Omitted | Unreadable, None]:
        """Every page that is public now. Raises rather than ends early: what is not listed gets deleted."""
        ...

    def fetch(self, wanted: Sequence[Listed]) -> AsyncGenerator[PageDocument | Unreadable | Barred, None]:
        """The pages, each with its language and the revision it has by now. One that is gone meanwhile is left out,
        and so is one that was saved in the last seconds where modified times are in whole seconds: its webhook tells.
        """
        ...

    async def now(self) -> int:
        """Milliseconds on the CMS's own clock: the revision of a delete that is noticed now."""
        ...
