"""The protocol of sources: a list of public pages, and the pages themselves.

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
