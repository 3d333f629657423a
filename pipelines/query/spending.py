"""Spending: what a site's models may read and write in a day, and for one question.

    call ─▶ admitted? ─ yes ─▶ model ─▶ its own count, or an estimate ─▶ booked: site, day, question, step
                      └ no ──▶ TokensSpent: what comes next does without the model

A day is one of UTC. Once a call did not fit, the day is over for the models of that site: answers quote the pages until
the next one, which is better than models that come and go. What is booked is known to all processes half a second
later, and to later ones; what calls under way have read is known to their own process alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial

import structlog
from cachetools import LRUCache

from pipelines.query.ports import QuestionSpent, TokensSpent, ToolSpec
from pipelines.runtime.counts import DAY, SharedCounts
from pipelines.runtime.metrics import MODEL_TOKENS, TOKENS_SPENT
from pipelines.runtime.settings import SitesSettings, StepName
from prompts.loader import ChatMessage
from schemas.answer import Usage

log = structlog.get_logger(__name__)

TOKEN = 4  # bytes of UTF-8: about right for texts in Latin script, too many for the others, which is the safe side
MESSAGE = 4  # tokens around a message
LEAST = 50  # tokens that a model must be able to write, to be asked at all
QUESTIONS = 10_000  # whose tokens are known at a time


def estimated(messages: Sequence[ChatMessage], tools: Sequence[ToolSpec] = ()) -> int:
    """Tokens of a prompt, where no server counts them."""
    described = sum(len(f"{tool.name}{tool.description}{tool.parameters}") for tool in tools)
    return sum(MESSAGE + written(len(message.content.encode())) for message in messages) + written(described)


def written(size: int) -> int:
    """Tokens of so many bytes of text."""
    return -(-size // TOKEN)


@dataclass
class _Day:
    day: date
    reading: int = 0  # tokens that calls under way have read
    over: bool = False


class Spending:
    """What was spent by all models. One per process.

    Args:
        now: the time, with its zone.
        counts: those of the day that all processes share; default: this one's alone.
    """

    def __init__(
        self,
        settings: SitesSettings,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        counts: SharedCounts | None = None,
    ) -> None:
        self._settings = settings
        self._now = now
        self._counts = counts or SharedCounts(DAY, lambda: now().timestamp())
        self._days: dict[str, _Day] = {}
        self._questions: LRUCache[str, int] = LRUCache(QUESTIONS)
        for site, its in settings.sites.items():
            if its.daily_tokens is not None:
                TOKENS_SPENT.labels(settings.label(site)).set(0)

    def over(self, site: str) -> bool:
        return self._today(site).over

    def spent(self, site: str) -> int:
        """Tokens that are booked of this day, as far as it is known here; of sites without a limit none are."""
        return self._counts.of(_name(site))

    def open(self, site: str, question: str, reading: int, writing: int | None) -> int | None:
        """Let a call begin. Returns: how many tokens it may write; None: as many as it likes.

        Args:
            question: the request's id; empty: of none.
            reading: tokens of the prompt. writing: that it is meant to write at most.

        Raises: TokensSpent, QuestionSpent: it does not fit any more.
        """
        today, limits = self._today(site), self._settings.sites.get(site)
        if limits is None:
            return writing
        daily, each = limits.daily_tokens, limits.question_tokens
        tokens = self.spent(site) + today.reading
        if daily is not None and (today.over or tokens + reading + LEAST > daily):
            if not today.over:
                log.warning("the tokens of the day are spent, quoting from now on", site=site, tokens=tokens)
                TOKENS_SPENT.labels(self._settings.label(site)).inc()
            today.over = True
            raise TokensSpent(f"site {site}: its {daily:,} tokens of {today.day} are spent (daily_tokens)")
        if each is not None:
            left = each - self._questions.get(question, 0) - reading
            if left < LEAST:
                raise QuestionSpent(f"site {site}: the {each:,} tokens of a question are spent (question_tokens)")
            writing = left if writing is None else min(writing, left)
        today.reading += reading
        return writing

    def close(self, site: str, step: StepName, question: str, reading: int, used: Usage) -> None:
        """Book what a call came to, in place of what it was opened with."""
        total = used.prompt_tokens + used.completion_tokens
        today = self._today(site)
        today.reading = max(0, today.reading - reading)  # of a call that a midnight came into, nothing
        if (limits := self._settings.sites.get(site)) is not None and limits.daily_tokens is not None:
            self._counts.add(_name(site), total)
        if question:
            self._questions[question] = self._questions.get(question, 0) + total
        counted = partial(MODEL_TOKENS.labels, self._settings.label(site), step)
        counted("in").inc(used.prompt_tokens)
        counted("out").inc(used.completion_tokens)

    def _today(self, site: str) -> _Day:
        day = self._now().astimezone(UTC).date()
        known = self._days.get(site)
        if known is None or known.day != day:
            if known is not None and known.over:
                TOKENS_SPENT.labels(self._settings.label(site)).dec()
            known = _Day(day)
            its = self._settings.sites.get(site)
            if its is not None and its.daily_tokens is not None:  # of the others nothing is looked up again
                self._days[site] = known
        return known


def _name(site: str) -> str:
    return f"tokens {site}"
