"""A judge: a model that is asked by a prompt, within a budget, and whose answer is JSON or nothing.

prompt, values ─▶ budget left? ─▶ model ─▶ JSON of the right shape? ─▶ decision
                    │ no            │ away: tried again   │ no: asked again, once
                    └───────────────┴─────────────────────┴─▶ Unjudged, with a code
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from cachetools import LRUCache
from pydantic import BaseModel, ConfigDict, ValidationError

from pipelines.runtime.errors import PagewireError, Permanent, Retryable
from pipelines.runtime.retry import doubled, patiently
from prompts.loader import ChatMessage, load, table
from schemas.answer import Usage
from schemas.base import problems

AT_ONCE = 8  # calls side by side: some measures ask several questions of one answer
TRIES = 3  # of a call, while the model is away or busy
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 20.0  # seconds between two of them
GIVE_UP = 20  # calls in a row without an answer, after which the judge counts as gone
KNOWN = 1_000  # decisions that are not asked for twice
TOKEN = 4  # bytes, about: for a server that does not count, and before it has
PROBLEM_CHARS = 300  # of the fault in an answer that the judge reads again

_FENCED = re.compile(r"```[a-zA-Z]*+(?P<inside>.*)```", re.DOTALL)

Shape = TypeVar("Shape", bound=BaseModel)
Decision = TypeVar("Decision")


class Written(Protocol):
    """What a model wrote."""

    @property
    def text(self) -> str: ...

    @property
    def usage(self) -> Usage:
        """Zeros if the server does not count."""


class JudgeModel(Protocol):
    """A chat model (adapters.llm)."""

    async def complete(self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None) -> Written:
        """Raises: PagewireError: it gave no answer; Retryable when it may later."""


class Unjudged(Permanent):
    """The judge has not decided; the code says why."""

    code = "unjudged"


class UnreadableVerdict(Unjudged):
    """The judge answered twice with something else than was asked for."""

    code = "judge-unreadable"


class BudgetSpent(Unjudged):
    """The calls or tokens of this evaluation are spent."""

    code = "budget-spent"


class JudgeGone(Unjudged):
    """The model has failed so often in a row that it is not asked any more."""

    code = "judge-gone"


class Decided(BaseModel):
    """What a judge writes. Nothing is converted: a number in quotation marks is none."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


@dataclass
class JudgingBudget:
    """What an evaluation may spend. What calls under way may come to is held back, so that it is never exceeded."""

    calls: int
    tokens: int
    asked: int = 0
    used: int = 0  # tokens, and those held back

    def open(self, tokens: int) -> None:
        """Before a call that may come to so many tokens. Raises: BudgetSpent."""
        if self.asked >= self.calls:
            raise BudgetSpent(f"its {self.calls:,} calls are spent")
        if self.used + tokens > self.tokens:
            raise BudgetSpent(f"its {self.tokens:,} tokens are spent")
        self.asked += 1
        self.used += tokens

    def close(self, held: int, tokens: int) -> None:
        """After the call: what it came to, in place of what was held back."""
        self.used += tokens - held


class EvaluationJudge:
    """A model that decides. One per evaluation and repeat.

    Args:
        name: of the model.
        fence: word in the marks around data, which no page can know.
        pause: seconds before the second try of a call.
    """

    def __init__(
        self, model: JudgeModel, name: str, budget: JudgingBudget, fence: str, pause: float = FIRST_PAUSE
    ) -> None:
        self.name = name
        self.fence = fence
        self._model = model
        self._budget = budget
        self._pause = pause
        self._failures = 0
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._again = table("evaluate/again")["unreadable"]
        self._known: LRUCache[tuple[str, tuple[tuple[str, str], ...]], object] = LRUCache(KNOWN)

    async def ask(
        self, prompt: str, values: Mapping[str, str], read: Callable[[str], Decision], max_tokens: int
    ) -> Decision:
        """What the judge decides; of the same question the same, without asking twice.

        Args:
            prompt: in prompts/evaluate. values: without the fence.
            read: raises ValueError for what it cannot read.

        Raises: Unjudged, PagewireError.
        """
        key = (prompt, tuple(sorted(values.items())))
        if key not in self._known:
            self._known[key] = await self._decided(prompt, values, read, max_tokens)
        known: Decision = self._known[key]  # type: ignore[assignment]  # of the same prompt, so of the same `read`
        return known

    async def _decided(
        self, prompt: str, values: Mapping[str, str], read: Callable[[str], Decision], max_tokens: int
    ) -> Decision:
        messages = load(f"evaluate/{prompt}").messages({**values, "fence": self.fence}, "en")
        said = await self._said(messages, max_tokens)
        try:
            return read(said)
        except ValueError as err:
            again = ChatMessage("user", self._again.replace("{problem}", _problem(err)))
        said = await self._said((*messages, ChatMessage("assistant", said), again), max_tokens)
        try:
            return read(said)
        except ValueError as err:
            raise UnreadableVerdict(f"{self.name}, {prompt}: {_problem(err)}") from err

    async def _said(self, messages: Sequence[ChatMessage], max_tokens: int) -> str:
        if self._failures >= GIVE_UP:
            raise JudgeGone(f"{self.name}: no answer {GIVE_UP} times in a row")
        try:
            async with self._turns:
                said = await patiently(partial(self._call, messages, max_tokens), self._wait)
        except Unjudged:
            raise
        except PagewireError:
            self._failures += 1
            raise
        self._failures = 0
        return said

    async def _call(self, messages: Sequence[ChatMessage], max_tokens: int) -> str:
        reading = sum(_tokens(message.content) for message in messages)
        self._budget.open(reading + max_tokens)
        used = Usage(prompt_tokens=reading)  # of a call that fails: what the server may have read
        try:
            written = await self._model.complete(messages, max_tokens=max_tokens)
            counted = written.usage.prompt_tokens + written.usage.completion_tokens
            used = written.usage if counted else Usage(prompt_tokens=reading, completion_tokens=_tokens(written.text))
        finally:
            self._budget.close(reading + max_tokens, used.prompt_tokens + used.completion_tokens)
        return written.text

    def _wait(self, _: Retryable, failures: int) -> float | None:
        return doubled(failures, self._pause, LONGEST_PAUSE) if failures < TRIES else None


def parsed(shape: type[Shape], text: str) -> Shape:
    """A decision out of what the judge wrote, also between code fences. Raises: ValueError."""
    said = text.strip()
    fenced = _FENCED.fullmatch(said)
    return shape.model_validate_json(fenced["inside"].strip() if fenced else said)


def _problem(err: ValueError) -> str:
    said = problems(err) if isinstance(err, ValidationError) else str(err)
    return said[:PROBLEM_CHARS]


def _tokens(text: str) -> int:
    return -(-len(text.encode()) // TOKEN)
