"""Tools: the model calls typed functions before it answers (pipelines.query.answer.tools).

    tools? ─ call(arguments) ─▶ checked ─▶ run ─▶ note, perhaps sources ─▶ tools? ... at most three rounds
           │                └ an argument nobody gave ─▶ note: ask the visitor for it
           └ none ─▶ answer, with the notes

A slot that is still empty becomes a question to the visitor. Their reply, made self-contained by the rephrase stage,
comes back with it filled.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from time import perf_counter
from typing import ClassVar

from pipelines.query.answer.prompt import fenced
from pipelines.query.answer.strategies.base import NumberedSources, Piece, StrategyContext, Task, ask, step, write
from pipelines.query.answer.tools.calendar import Calendar
from pipelines.query.answer.tools.pages import Pages
from pipelines.query.answer.tools.registry import BadCall, MissingSlots, Said, Tools
from pipelines.query.ports import ToolCall
from pipelines.query.retrieve.widen import fit

ROUNDS = 3
CALLS = 4  # of a round
CALL_TOKENS = 400


class ToolCalls:
    """As many calls of the model as there are rounds, and two."""

    searches: ClassVar = True

    def __init__(self, means: StrategyContext) -> None:
        self._means = means

    async def run(self, task: Task) -> AsyncGenerator[Piece, None]:
        calendar, pages = Calendar(task.now), Pages(self._means.finder, task.retrieved)
        tools = Tools([calendar.date_calculator, calendar.opening_hours, pages.page])
        library = NumberedSources.of(task.retrieved.sources)
        notes: list[str] = []
        facts: list[str] = []  # what the tools say; what they are asked, the model has made up
        done: set[ToolCall] = set()
        for _ in range(ROUNDS):
            shown = fenced(fit(library.ranked, task.budget), task.fence)
            said, asking = await ask(
                self._means,
                "tools",
                task,
                max_tokens=CALL_TOKENS,
                tools=tools.specs,
                sources=shown or "(none)",
                notes="\n".join(notes),
            )
            yield said.usage
            yield asking
            calls = [call for call in said.calls[:CALLS] if call not in done]
            for call in calls:
                done.add(call)
                began = perf_counter()
                result, missing = await _run(tools, call)
                if result.sources:
                    library.add(result.sources)
                    yield library.event(task)
                facts.append(result.text)
                notes.append(f"{call.name}({call.arguments}): {result.text}")
                yield step("tool", f"{call.name}({call.arguments})", result.text, began)
                if missing:
                    calls = []  # only the visitor can help now
            if not calls:
                break
        if not library.all and not notes:
            return
        async with aclosing(write(self._means, task, library.ranked, notes, facts)) as pieces:
            async for piece in pieces:
                yield piece


async def _run(tools: Tools, call: ToolCall) -> tuple[Said, bool]:
    """What the tool says, and whether something is missing that only the visitor knows."""
    try:
        return await tools.call(call), False
    except MissingSlots as err:
        return Said(f"the visitor must be asked for: {', '.join(err.slots)}"), True
    except BadCall as err:
        return Said(f"wrong call: {err}"), False
