"""Flows: bundles of the settings by which a question is searched and answered.

    the flow's own values ◀ all sites ◀ the site ◀ live settings ◀ a trial      each overrides the layers left of it

A layer that names a flow discards all layers below it, so `flow: original` is one switch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from schemas.flow import FlowName, Rephrasing, Retriever, SentenceCheck


@dataclass(frozen=True)
class Flow:
    """How one question is searched and answered: a value for each setting of schemas.flow.FlowParts."""

    flow: FlowName
    retriever: Retriever
    hits: int
    short_hits: int
    neighbours: int
    short_question_words: int
    context_chars: int
    rephrase: Rephrasing
    sentence_check: SentenceCheck
    courtesies: bool
    gate: bool
    gate_threshold: float | None = None  # None: the embedder's own
    short_floor: float | None = None  # None: the embedder's own
    content_floor: float | None = None

    @property
    def departures(self) -> dict[str, Any]:
        """The settings that differ from the bundle of its name."""
        bundle = FLOWS[self.flow]
        return {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if getattr(self, each.name) != getattr(bundle, each.name)
        }


FLOWS: Mapping[FlowName, Flow] = {
    "pagewire": Flow(
        flow="pagewire",
        retriever="hybrid",
        hits=10,
        short_hits=1,
        neighbours=2,
        short_question_words=3,
        context_chars=6_000,
        rephrase="repeat",
        sentence_check="mark",
        courtesies=True,
        gate=True,
    ),
    "original": Flow(
        flow="original",
        retriever="original",
        short_floor=0.5,
        content_floor=0.2,
        hits=10,
        short_hits=1,
        neighbours=2,
        short_question_words=3,
        # 10 content hits and 4 short ones of 5 chunks each, and 512 characters a chunk: 35,840 at most
        context_chars=36_000,
        rephrase="expand",
        sentence_check="off",
        courtesies=False,
        gate=False,
    ),
}


def resolved(*layers: Mapping[str, Any]) -> Flow:
    """The flow of a question. `layers`: settings by name (`FlowParts.parts`); later layers override earlier ones."""
    found = FLOWS["pagewire"]
    for layer in layers:
        base = FLOWS[layer["flow"]] if "flow" in layer else found
        found = replace(base, **layer)
    return found
