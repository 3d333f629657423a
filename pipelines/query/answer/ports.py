"""What answering needs of searching."""

from __future__ import annotations

from typing import Protocol

from schemas.query import Retrieved, Source


class Finder(Protocol):
    """Looks into the site's pages with a visitor's rights."""

    async def find(self, retrieved: Retrieved, query: str) -> tuple[Source, ...]:
        """The passages for another question than the one that was retrieved for, numbered from 1.

        Raises:
            UnknownSite, Retryable.
        """
        ...

    async def page(self, retrieved: Retrieved, name: str) -> tuple[Source, ...]:
        """The text of the page that fits the name best, numbered from 1; nothing if none does.

        Raises:
            UnknownSite, Retryable.
        """
        ...
