"""Pages: the website, looked into with the visitor's rights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Protocol

from pydantic import Field

from pipelines.query.answer.tools.registry import Said
from schemas.query import Retrieved, Source
from text.markdown import plain
from text.sentences import split
from text.words import stems

LOOKED_UP = 5  # sentences with a word


class Finder(Protocol):
    """Looks into the site's pages with a visitor's rights."""

    async def find(self, retrieved: Retrieved, query: str) -> tuple[Source, ...]:
        """The passages for another question than the one that was retrieved for, numbered from 1.

        Raises: UnknownSite, Retryable.
        """

    async def page(self, retrieved: Retrieved, name: str) -> tuple[Source, ...]:
        """The text of the page that fits the name best, numbered from 1; nothing if none does.

        Raises: UnknownSite, Retryable.
        """


class Pages:
    """Searching, and reading what was found. `found`: the sources so far."""

    def __init__(self, finder: Finder, retrieved: Retrieved, found: Callable[[], Sequence[Source]]) -> None:
        self._finder = finder
        self._retrieved = retrieved
        self._found = found

    async def search(
        self,
        question: Annotated[
            str, Field(min_length=2, max_length=300, description="One short question, understandable by itself.")
        ],
    ) -> Said:
        """Finds passages of the website that answer a question."""
        sources = await self._finder.find(self._retrieved, question)
        return Said("" if sources else "nothing was found", sources)

    async def lookup(
        self, word: Annotated[str, Field(min_length=1, max_length=100, description="One word, or a few in a row.")]
    ) -> str:
        """Shows the sentences with a word in the passages found so far."""
        wanted = set(stems(word))
        hits = [
            f"[{source.n}] {plain(source.text[s.start : s.end])}"
            for source in self._found()
            for s in split(source.text, source.lang)
            if wanted and wanted <= set(stems(source.text[s.start : s.end]))
        ]
        return "\n".join(hits[:LOOKED_UP]) or "no sentence has it"

    async def page(
        self, name: Annotated[str, Field(min_length=2, max_length=200, description="Title or subject of the page.")]
    ) -> Said:
        """Reads a whole page of the website: for lists, tables and all that a passage shows only in part."""
        sources = await self._finder.page(self._retrieved, name)
        return Said("" if sources else "there is no such page", sources)
