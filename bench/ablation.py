"""What each part of the search is worth: everyday questions with that part taken away.

tuned part of a site's visitors ─▶ retrieve, without a part ─▶ the best unit, judged ─▶ a line of the table

Each line is fitted anew (bench.sureness): a part that only moves the figures that say how sure an answer is costs
nothing. Follow-ups, dates and courtesies are what `pagewire bench visitors` has beside this.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest.mock import patch

from rich.progress import track

import pipelines.query.retrieve.retrieve as stage
from adapters.embedders.lite import SURENESS
from bench.report import report
from bench.sureness import Sample, asking, outcome, samples
from pipelines.query.extractive import assessment, ranking
from pipelines.query.search import search
from pipelines.query.search.fuse import fuse
from text.likeness import Likeness


def _keywords_alone(dense: Any, keyword: Any, known: float, *, size: int | None) -> Any:
    return fuse([], keyword, known, size=size)


def _vectors_alone(dense: Any, keyword: Any, known: float, *, size: int | None) -> Any:
    return fuse(dense, [], known, size=size)


class _AsSpelled(Likeness):
    def of(self, word: str, *, misspelled: bool = True) -> dict[str, float]:
        return super().of(word, misspelled=False)


class _TheVeryWord(Likeness):
    def of(self, word: str, *, misspelled: bool = True) -> dict[str, float]:
        return {other: 1.0 for other in super().of(word, misspelled=False) if other == word}


WITHOUT: Mapping[str, Callable[[], AbstractContextManager[Any]]] = {
    "nothing": nullcontext,
    "keywords": lambda: patch.object(search, "fuse", _vectors_alone),
    "chunks by vector": lambda: patch.object(search, "fuse", _keywords_alone),
    "visitor's language": lambda: patch.object(search, "in_language", lambda found, lang, **_: list(found)),
    "language by words": lambda: patch.object(search, "language_by_words", lambda text, lang, found: lang),
    "ten more chunks": lambda: patch.object(stage, "LOOKED_INTO", 20),
    "units' cosine": lambda: patch.object(ranking, "APART_COSINE", 0.0),
    "cosine of their own": lambda: patch.object(assessment, "weigh", lambda *found: ranking.weigh(*found[:-1])),
    "units' words": lambda: patch.object(ranking, "SHARED", 0.0),
    "misspelled words": lambda: patch.object(ranking, "Likeness", _AsSpelled),
    "inflected, compound words": lambda: patch.object(ranking, "Likeness", _TheVeryWord),
    "standing": lambda: patch.multiple(ranking, STANDING=0.0, PAGE=0.0),
    "pages by units": lambda: patch.object(ranking.Findings, "ordered", lambda self, hits, size: list(hits[:size])),
}


def main(site: str, parts: Sequence[str]) -> None:
    """Print what is left without each of the parts. Raises: KeyError."""
    wanted = {part: WITHOUT[part] for part in ("nothing", *parts)}
    about = f"everyday questions (tune) on {site}, no model; always shown, and where it is sure enough"
    lines = asyncio.run(_lines(site, wanted))
    columns = ("without", "page first", "best unit useful", "useful", "wrong material", "false refusals")
    report("ablation", about, columns, lines)


async def _lines(
    site: str,
    wanted: Mapping[str, Callable[[], AbstractContextManager[Any]]],
) -> list[tuple[object, ...]]:
    lines: list[tuple[object, ...]] = []
    async with asking(site) as (questions, look):
        for part, without in wanted.items():
            with without():
                found = samples([(case, await look(case)) for case in track(questions, part)])
            lines.append((part, *_figures(found)))
    return lines


def _figures(found: Sequence[Sample]) -> tuple[float, ...]:
    answerable = [each for each in found if each.case.expect == "answer"]
    first = sum(each.page_right for each in answerable) / len(answerable)
    useful = sum(each.unit.useful for each in answerable) / len(answerable)
    return first, useful, *outcome(found, SURENESS.least_unit, SURENESS.least_page)[:3]
