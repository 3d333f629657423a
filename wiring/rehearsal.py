"""Rehearsal: what a process loads with its first question is loaded before that comes.

The lists of words behind courtesies and days cost a tenth of a second, Elasticsearch's first searches of an index
several times what later ones do, and the process's connections are still to be made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Protocol

from pipelines.query.extractive.courtesy import recognized
from pipelines.query.extractive.days import asked_day
from pipelines.runtime.errors import PagewireError
from schemas.http import SearchKind
from text import words
from text.language import identified, spoken

SECONDS = 5.0  # for the searches of all sites; a worker may start while Elasticsearch is busy
QUESTION = "When do you open today?"


class Search(Protocol):
    """Searches a site (pipelines.query.search.search.Searcher)."""

    async def hits(self, site: str, text: str, *, kind: SearchKind, size: int) -> object:
        """Raises: PagewireError."""
        ...


def rehearse_words(langs: Iterable[str]) -> None:
    """Load what tells of a question in one of these languages; takes a second or two, so call it in a thread."""
    langs = list(langs)
    words.ready(langs)
    identified(QUESTION)
    spoken(QUESTION)
    for lang in langs:
        recognized(QUESTION, lang)
        asked_day(QUESTION, datetime.now(UTC), lang)


async def rehearse_searches(search: Search, sites: Iterable[str]) -> None:
    """Search each site once, as far as time allows. What goes wrong is for the first question to tell."""
    with suppress(TimeoutError):
        async with asyncio.timeout(SECONDS):
            for site in sites:
                with suppress(PagewireError):
                    await search.hits(site, QUESTION, kind="hybrid", size=1)
