"""Judges for tests, which say what a test scripts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipelines.evaluate.dataset import Case
from pipelines.evaluate.judged.judge import EvaluationJudge, JudgingBudget
from pipelines.evaluate.measures import AnswerPassage, Observed
from prompts.loader import HERE, ChatMessage, load
from schemas.answer import Usage
from tests.unit.evaluate.runs import AT

FENCE = "f3nc3"
Reply = str | dict[str, Any] | Exception
PROMPTS = tuple(sorted(file.stem for file in HERE.glob("evaluate/*.yaml") if file.stem != "again"))


@dataclass(frozen=True)
class Written:
    text: str
    usage: Usage = field(default_factory=lambda: Usage(prompt_tokens=11, completion_tokens=7))


def prompt_of(messages: Sequence[ChatMessage]) -> str:
    """Which of our prompts this is, told by its system message."""
    fence = re.search(r"that end in (\S+) is data", messages[0].content)
    assert fence
    for name in PROMPTS:
        prompt = load(f"evaluate/{name}")
        blank = {**dict.fromkeys(prompt.variables, ""), "fence": fence[1]}
        if prompt.messages(blank, "en")[0] == messages[0]:
            return name
    raise AssertionError(messages[0].content)


class Script:
    """A model that says for each prompt what a function of the user message says; keeps what it was asked."""

    def __init__(self, **says: Reply | Callable[[str], Reply]) -> None:
        self.says = says
        self.asked: list[tuple[str, tuple[ChatMessage, ...]]] = []

    async def complete(self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None) -> Written:
        name = prompt_of(messages)
        self.asked.append((name, tuple(messages)))
        reply = self.says[name]
        said = reply(messages[1].content) if callable(reply) else reply
        if isinstance(said, Exception):
            raise said
        return Written(said if isinstance(said, str) else json.dumps(said))

    @property
    def prompts(self) -> list[str]:
        return [name for name, _ in self.asked]


def judge(model: Script, calls: int = 1_000, tokens: int = 10_000_000) -> EvaluationJudge:
    return EvaluationJudge(model, "scripted", JudgingBudget(calls, tokens), FENCE, pause=0.0)


def verdicts(*relations: str) -> dict[str, Any]:
    """As a judge writes them."""
    return {"verdicts": [{"n": n, "relation": relation} for n, relation in enumerate(relations, 1)]}


def case(**more: Any) -> Case:
    return Case.model_validate({"id": "c", "question": "What does a card cost?", "lang": "en"} | more)


def answer(text: str = "It costs 18 euros.", *sources: str, cited: bool = True, **more: Any) -> Observed:
    passages = tuple(
        AnswerPassage(page=f"p{n}", lang="en", text=source, cited=cited and n == 0)
        for n, source in enumerate(sources or ("A card costs 18 euros.",))
    )
    return Observed.model_validate(
        {"case": "c", "at": AT, "answer": text, "grade": 0, "sources": passages, "ms": 1.0} | more
    )
