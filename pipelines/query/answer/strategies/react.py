"""ReAct: think, act, observe, at most five times (Yao et al. 2022), then answer from what was found.

Thought, Action ─ search[question] ─▶ passages ──▶ Observation ─┐
     ▲          ├ lookup[word] ─▶ a sentence of them ▶          │
     └──────────┼───────────────────────────────────────────────┘
                └ finish[], the fifth action, or the same one for the third time ─▶ answer
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from time import perf_counter
from typing import ClassVar, NamedTuple

from pipelines.query.answer.strategies.base import (
    NumberedSources,
    Piece,
    StrategyContext,
    Task,
    ask,
    search,
    shortened,
    step,
    write,
)
from schemas.query import Source
from text.markdown import plain
from text.sentences import cut, split
from text.words import stems

STEPS = 5
STEP_TOKENS = 200
SHOWN = 3  # passages of a search
SHOWN_CHARS = 500  # of each
REPEATS = 2  # of one action, until the model is stuck

NO_ACTION = "That was no action. Write: Action: search[...], Action: lookup[...] or Action: finish[]"
REPEATED = "You have done exactly this before. Search for something else, or finish."
AT_LIMIT = "Nothing more was found in the time there was: say kindly what is known and what is not."

_ACTION = re.compile(r"^\W*action\W*?:?\s*(?P<name>search|lookup|finish)\s*\[(?P<input>[^\n]*?)\]?\s*$", re.I | re.M)
_THOUGHT = re.compile(r"^\W*thought\W*:\s*(?P<text>.+)$", re.I | re.M)


class Action(NamedTuple):
    """What the model wants to have done."""

    name: str
    input: str

    @property
    def key(self) -> tuple[str, ...]:
        """Alike for actions that find the same."""
        return self.name, *stems(self.input)


def action(said: str) -> Action | None:
    """The first action: what follows it the model has made up, observations too."""
    match = _ACTION.search(said)
    return Action(match["name"].lower(), " ".join(match["input"].split()).strip("\"'“”")) if match else None


@dataclass
class _Run:
    """What has been thought, done and observed."""

    library: NumberedSources
    steps: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)  # notes for the answer; what was observed is in the sources
    done: dict[tuple[str, ...], int] = field(default_factory=dict)
    looked_up: dict[str, int] = field(default_factory=dict)  # word -> sentences shown


class ReAct:
    """At most six calls of the model."""

    searches: ClassVar = True

    def __init__(self, means: StrategyContext) -> None:
        self._means = means

    async def run(self, task: Task) -> AsyncGenerator[Piece, None]:
        run = _Run(NumberedSources.of(task.retrieved.sources))
        first = Action("search", task.question)
        run.done[first.key] = 1
        run.steps += _observed(f"search[{task.question}]", run.library.all)
        finished = False
        for left in range(STEPS, 0, -1):
            steps = "\n".join(run.steps)
            said, thinking = await ask(self._means, "react", task, max_tokens=STEP_TOKENS, steps=steps, left=str(left))
            yield said.usage
            yield thinking
            if thought := _THOUGHT.search(said.text):
                run.thoughts.append(shortened(" ".join(thought["text"].split())))
                run.steps.append(f"Thought: {run.thoughts[-1]}")
            wanted = action(said.text)
            if wanted is None:
                run.steps.append(f"Observation: {NO_ACTION}")
                continue
            if wanted.name == "finish":
                finished = True
                break
            before = run.done.get(wanted.key, 0)
            run.done[wanted.key] = before + 1
            if before == REPEATS:
                break
            # To look up a word again shows its next sentence.
            if before and wanted.name == "search":
                run.steps += [f"Action: search[{wanted.input}]", f"Observation: {REPEATED}"]
                continue
            if wanted.name == "search":
                found, searching = await search(self._means, task, run.library, wanted.input)
                yield searching
                yield run.library.event(task)
                run.steps += _observed(f"search[{wanted.input}]", found)
            else:
                began = perf_counter()
                shown = _looked_up(run, wanted.input)
                run.steps += [f"Action: lookup[{wanted.input}]", f"Observation: {shown}"]
                yield step("lookup", wanted.input, shown, began)
        if not run.library.all:
            return
        notes = run.thoughts if finished else [*run.thoughts, AT_LIMIT]
        async with aclosing(write(self._means, task, run.library.ranked, notes)) as pieces:
            async for piece in pieces:
                yield piece


def _observed(did: str, found: Sequence[Source]) -> list[str]:
    passages = [
        f"[{s.n}] {' '.join(s.title.split())}: {' '.join(cut(s.text, SHOWN_CHARS, s.lang).split())}"
        for s in found[:SHOWN]
    ]
    return [f"Action: {did}", f"Observation: {' / '.join(passages) or 'nothing'}"]


def _looked_up(run: _Run, word: str) -> str:
    wanted = set(stems(word))
    hits = [
        f"[{source.n}] {plain(source.text[s.start : s.end])}"
        for source in run.library.all
        for s in split(source.text, source.lang)
        if wanted and wanted <= set(stems(source.text[s.start : s.end]))
    ]
    key = " ".join(sorted(wanted))
    at = run.looked_up.get(key, 0)
    run.looked_up[key] = at + 1
    return f"({at + 1} of {len(hits)}) {shortened(hits[at])}" if at < len(hits) else "no (further) sentence has it"
