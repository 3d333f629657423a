"""Rehearsal: loads everything for the first question in advance.

The word lists of courtesies and days take a tenth of a second to load, Elasticsearch's first searches of an index take
several times longer than later ones, and the process has to open its connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime

from pipelines.query.extractive.courtesy import recognized
from pipelines.query.extractive.days import asked_day
from pipelines.query.search.search import Searcher
from pipelines.runtime.errors import PagewireError
from text import dictionary, words
from text.language import identified, spoken

SECONDS = 5.0  # for the searches of all sites; a worker may start while Elasticsearch is busy
QUESTION = "When do you open today?"


def rehearse_words(langs: Iterable[str]) -> None:
    """Load the word lists of these languages; it takes a second or two, so call it in a thread."""
    langs = list(langs)
    words.ready(langs)
    dictionary.ready(langs)
    identified(QUESTION)
    spoken(QUESTION)
    for lang in langs:
        recognized(QUESTION, lang)
        asked_day(QUESTION, datetime.now(UTC), lang)


async def rehearse_searches(search: Searcher, sites: Iterable[str]) -> None:
    """Search each site once, within SECONDS. Errors are ignored; the first question will report them."""
    with suppress(TimeoutError):
        async with asyncio.timeout(SECONDS):
            for site in sites:
                with suppress(PagewireError):
                    await search.hits(site, QUESTION, kind="hybrid", size=1)
