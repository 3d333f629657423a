"""Pages: a whole page to read, where passages are not enough."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipelines.query.answer.ports import Finder
from pipelines.query.answer.tools.registry import Said
from schemas.query import Retrieved


class Pages:
    """Looks pages up with the visitor's rights."""

    def __init__(self, finder: Finder, retrieved: Retrieved) -> None:
        self._finder = finder
        self._retrieved = retrieved

    async def page(
        self, name: Annotated[str, Field(min_length=2, max_length=200, description="Title or subject of the page.")]
    ) -> Said:
        """Reads a whole page of the website: for lists, tables and all that a passage shows only in part."""
        sources = await self._finder.page(self._retrieved, name)
        if not sources:
            return Said("there is no such page")
        return Said(f"the page {sources[0].title!r} is among the sources now", sources)
