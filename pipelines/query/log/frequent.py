"""Frequent questions: what many visitors have asked and got an answer to, for the visitors who come after them.

question log ─▶ answered questions ─▶ by wording, of enough visitors, from pages for everybody ─▶ kept for an hour

A question is shown in its visitors' words, so no question is shown that fewer than `least` visitors have asked, none in
which something was masked, and none of a visitor with access groups.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from time import monotonic
from typing import Protocol

import structlog

from pipelines.query.extractive.follow_ups import signs, stands_alone
from pipelines.query.log.readable import PageName, PageRights
from pipelines.runtime.errors import PagewireError
from schemas.query import Question
from text.folding import fold
from text.masking import is_masked
from text.words import words

log = structlog.get_logger(__name__)

ASKERS = 3  # visitors that must have asked a question before others see it
LONGEST = 120  # characters of a question that is shown
DAYS = 90.0  # of the log that are read
MOST_READ = 20_000  # answered questions, the newest
MOST_KEPT = 2_000  # frequent questions of a site, the most frequent
AGE = 3_600.0  # seconds until the log is read again
RETRY = 60.0  # seconds, where it could not be read
_ADDRESS = re.compile(r"://|\bwww\.|\w\.(?:com|net|org|info|[a-z]{2})\b", re.IGNORECASE)  # no advertisement


@dataclass(frozen=True)
class AnsweredQuestion:
    """A logged question that was answered from pages."""

    question: str  # masked
    lang: str  # asked in
    asker: str  # as in schemas.outcome
    pages: frozenset[PageName]  # that the answer cites
    restricted: bool | None  # as in schemas.outcome
    doubtful: bool  # its visitor disliked or stopped the answer, or a part of it was left out

    @property
    def shareable(self) -> bool:
        """Whether it may be shown to others, once enough visitors have asked it."""
        known = self.asker and self.restricted is False and not self.doubtful
        text = self.question
        return bool(known) and len(text) <= LONGEST and not is_masked(text) and not _ADDRESS.search(text)


class AnsweredReader(Protocol):
    """Reads the question log (adapters.elastic.outcomes)."""

    async def answered(self, site: str, since: datetime, most: int) -> Sequence[AnsweredQuestion]:
        """The newest first. Raises: Retryable."""


@dataclass(frozen=True)
class FrequentQuestion:
    """A question that many visitors have asked, as most of them have written it."""

    question: str
    lang: str
    askers: int
    pages: frozenset[PageName]
    wording: tuple[str, ...] = field(repr=False)


def wording_of(question: str) -> tuple[str, ...]:
    """What questions have in common that differ in case, accents, spaces and punctuation alone."""
    return tuple(words(fold(question)))


def is_understood_alone(asked: Question) -> bool:
    """Whether a question makes sense to others, who do not see what was asked before it in its conversation."""
    return not asked.history or stands_alone(asked.question, signs(asked.question))


def frequent(answered: Iterable[AnsweredQuestion], least: int) -> list[FrequentQuestion]:
    """The questions that `least` visitors have asked, the most frequent first."""
    same: dict[tuple[str, ...], list[AnsweredQuestion]] = {}
    for one in answered:
        if one.shareable and (said := wording_of(one.question)):
            same.setdefault(said, []).append(one)
    found = [
        FrequentQuestion(
            question=_most_common((one.asker, one.question) for one in every),
            lang=_most_common((one.asker, one.lang) for one in every),
            askers=len({one.asker for one in every}),
            pages=frozenset().union(*(one.pages for one in every)),
            wording=said,
        )
        for said, every in same.items()
    ]
    return sorted((one for one in found if one.askers >= least), key=lambda one: (-one.askers, one.question))


def _most_common(of_askers: Iterable[tuple[str, str]]) -> str:
    """What most askers have written. One who repeats it counts once, or one visitor could choose what others see."""
    return Counter(written for _, written in dict.fromkeys(of_askers)).most_common(1)[0][0]


def beginning(known: Iterable[FrequentQuestion], typed: str, lang: str | None, size: int) -> list[str]:
    """Those that have the typed words, of which the last one may be a prefix; the most frequent first."""
    *whole, last = wording_of(typed) or ("",)
    there = (
        one.question
        for one in known
        if last and _speaks(one.lang, lang) and set(whole) <= set(one.wording)
        if any(word.startswith(last) for word in one.wording)
    )
    return [question for question, _ in zip(there, range(size), strict=False)]


def following(
    known: Iterable[FrequentQuestion], asked: str, pages: Collection[str], lang: str | None, size: int
) -> list[str]:
    """Those that were answered from the same pages as `asked`, without `asked` itself.

    Args:
        pages: ids of the pages that its answer cites, the most important first.
    """
    said, order = wording_of(asked), {page: n for n, page in reversed(list(enumerate(pages)))}
    near = [
        (min(order[page] for page, _ in one.pages if page in order), one)
        for one in known
        if one.wording != said and _speaks(one.lang, lang) and any(page in order for page, _ in one.pages)
    ]
    near.sort(key=lambda each: (each[0], -each[1].askers))
    return [one.question for _, one in near[:size]]


def _speaks(own: str, lang: str | None) -> bool:
    return lang is None or own.partition("-")[0] == lang.partition("-")[0]


@dataclass
class _Kept:
    questions: Sequence[FrequentQuestion] = ()
    good_until: float = 0.0
    task: asyncio.Task[None] | None = None


class FrequentQuestions:
    """Of all sites. One per process; close it last.

    Args:
        least: visitors that must have asked a question, by site; other sites show none.
        rights: tell which pages everybody can find.
        now: the time that questions are logged by.
    """

    def __init__(
        self, log: AnsweredReader, rights: PageRights, least: Mapping[str, int], now: Callable[[], datetime]
    ) -> None:
        self._log = log
        self._rights = rights
        self._least = least
        self._now = now
        self._kept: dict[str, _Kept] = {}
        self._one_at_a_time = asyncio.Lock()

    def shown(self, site: str) -> bool:
        """Whether the site shows its visitors what others have asked."""
        return site in self._least

    def of(self, site: str) -> Sequence[FrequentQuestion]:
        """Those that are known. They are read again where these are too old; no request waits for it."""
        if not self.shown(site):
            return ()
        kept = self._kept.setdefault(site, _Kept())
        if kept.task is None and monotonic() >= kept.good_until:
            kept.task = asyncio.create_task(self._read(site, kept), name=f"frequent questions of {site}")
        return kept.questions

    async def aclose(self) -> None:
        for task in [kept.task for kept in self._kept.values() if kept.task is not None]:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _read(self, site: str, kept: _Kept) -> None:
        wait = RETRY
        try:
            async with self._one_at_a_time:
                answered = await self._log.answered(site, self._now() - timedelta(days=DAYS), MOST_READ)
                found = (await asyncio.to_thread(frequent, answered, self._least[site]))[:MOST_KEPT]
                # A page may be gone, or for some people only, since it has answered.
                ids = {page for one in found for page, _ in one.pages}
                open_to_all = await self._rights(site, ids, ()) if ids else frozenset()
                kept.questions = [
                    replace(one, pages=one.pages & open_to_all) for one in found if one.pages & open_to_all
                ]
            wait = AGE
        except PagewireError as err:
            log.warning("frequent questions cannot be read", site=site, error=str(err))
        except Exception:
            log.exception("frequent questions cannot be read", site=site)
        finally:
            kept.good_until, kept.task = monotonic() + wait, None
