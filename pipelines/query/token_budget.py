"""Token budget: limits the tokens that a site's models read and write in a day, and for one question.

    call ─▶ admitted? ─ yes ─▶ model ─▶ the server's count, or an estimate ─▶ booked: site, day, question, step
                      └ no ──▶ TokensSpent: the question goes on without the model

Days are in UTC. Once a call does not fit, the site's models rest until the next day and answers quote the pages, which
is better than models that come and go. All processes see booked tokens half a second later, also after a restart.
Tokens of running calls are counted in their own process only.
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

TOKEN = 4  # bytes of UTF-8 per token: about right for Latin script, and an overestimate for other scripts
MESSAGE = 4  # tokens around a message
LEAST = 50  # tokens of output for which a call is worth while
QUESTIONS = 10_000  # questions whose tokens are counted at a time


def estimated(messages: Sequence[ChatMessage], tools: Sequence[ToolSpec] = ()) -> int:
    """Estimated tokens of a prompt, for servers that do not count them."""
    described = sum(len(f"{tool.name}{tool.description}{tool.parameters}") for tool in tools)
    return sum(MESSAGE + written(len(message.content.encode())) for message in messages) + written(described)


def written(size: int) -> int:
    """Estimated tokens of a text of so many bytes."""
    return -(-size // TOKEN)


@dataclass
class _Day:
    day: date
    reading: int = 0  # tokens of the prompts of running calls
    over: bool = False


class TokenBudget:
    """Counts the tokens of all models. One per process.

    Args:
        now: the time, with its zone.
        counts: the day's counts, shared by all processes; default: counts of this process only.
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
        """Tokens booked today, as far as this process has read them; 0 for sites without a limit."""
        return self._counts.of(_name(site))

    def open(self, site: str, question: str, reading: int, writing: int | None) -> int | None:
        """Admit a call. Returns: the tokens that it may write; None: no limit.

        Args:
            question: the request's id; empty for a call of no question.
            reading: tokens of the prompt.
            writing: the call's own limit of output tokens.

        Raises: TokensSpent, QuestionSpent: the call does not fit into the budget.
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
        """Book the tokens of a finished call, and release those that `open` has reserved."""
        total = used.prompt_tokens + used.completion_tokens
        today = self._today(site)
        today.reading = max(0, today.reading - reading)  # 0 for a call that began before midnight
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
            if its is not None and its.daily_tokens is not None:  # only these need a lasting day
                self._days[site] = known
        return known


def _name(site: str) -> str:
    return f"tokens {site}"
