"""Runs of a strategy on a small site, and what came of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pipelines.query.answer.judging import Judge
from pipelines.query.answer.strategies.base import LeftOut, StrategyContext, TakenBack, Task
from pipelines.query.answer.strategies.registry import strategies
from pipelines.query.answer.tools.registry import Tool
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.runtime.settings import StrategyName, ToolCalling
from schemas.answer import Citation, SourcesFound, Step, Token, Usage
from schemas.query import PendingCall, Retrieved, Source
from tests.asking import retrieved, source
from tests.fakes.chat_model import FakeChat, Reply

BOOKS = SitePrompts()
POOL = source(1, "The pool opens daily at 9. It is closed on Sundays.")
FERRY = source(1, "The ferry runs hourly. It needs ten minutes.", title="Ferry").model_copy(update={"page_id": "ferry"})
MILL = source(1, "The mill was built in 1911 by Ada Brook.", title="Mill").model_copy(update={"page_id": "mill"})
MONDAY = datetime(2026, 5, 4, 12, tzinfo=UTC)


@dataclass
class Site:
    """Finds what a test puts there, by a word of the query."""

    pages: Mapping[str, Sequence[Source]] = field(default_factory=dict)
    searched: list[str] = field(default_factory=list)

    async def find(self, retrieved: Retrieved, query: str) -> tuple[Source, ...]:
        self.searched.append(query)
        return tuple(s for word, sources in self.pages.items() if word in query.lower() for s in sources)

    async def page(self, retrieved: Retrieved, name: str) -> tuple[Source, ...]:
        return await self.find(retrieved, name)


@dataclass
class Ran:
    """What a strategy has made."""

    model: FakeChat
    site: Site
    text: str = ""
    citations: list[Citation] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    sources: tuple[Source, ...] = ()
    spent: int = 0
    taken_back: list[str] = field(default_factory=list)
    left_out: int = 0
    pending: PendingCall | None = None

    @property
    def kinds(self) -> list[str]:
        return [step.kind for step in self.steps]

    def prompt(self, call: int) -> str:
        """System message, and what follows the worked examples, of one call of the model."""
        messages = self.model.asked[call]
        begins = max(i for i, m in enumerate(messages) if "<question-" in m.content or "<words-" in m.content)
        return "\n".join(message.content for message in (messages[0], *messages[begins:]))


async def run(
    name: StrategyName,
    *replies: Reply,
    found: Sequence[Source] = (POOL,),
    tool_calls: ToolCalling = "auto",
    judge: Judge | None = None,
    until: float = math.inf,
    thinks: bool | None = None,
    asked: Retrieved | None = None,
    tools: Sequence[Tool] = (),
) -> Ran:
    """`await run("react", replies...)` on a site with a pool, a ferry and a mill."""
    ran = Ran(FakeChat(*replies), Site({"ferry": [FERRY], "mill": [MILL]}))
    task = Task(
        asked or retrieved(*found),
        site="Town",
        language="English",
        now=MONDAY,
        budget=6_000,
        history_messages=15,
        tool_calls=tool_calls,
        judge="model" if judge else "none",
        until=until,
        thinks=thinks,
    )

    async def of_site(site: str) -> Sequence[Tool]:
        return tools

    means = StrategyContext(ran.model, BOOKS, ran.site, {"model": judge} if judge else {}, of_site)
    async for piece in strategies(means)[name].run(task):
        match piece:
            case Token(text=text):
                ran.text += text
            case Citation():
                ran.citations.append(piece)
            case Step():
                ran.steps.append(piece)
            case SourcesFound(sources=sources):
                ran.sources = sources
            case PendingCall():
                ran.pending = piece
            case Usage():
                ran.spent += 1
            case TakenBack():
                ran.taken_back.append(ran.text)
                ran.text, ran.citations = "", []
            case LeftOut(sentences=left_out):
                ran.left_out = left_out
    return ran
