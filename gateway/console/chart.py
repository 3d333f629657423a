"""A bar chart as SVG: what it is made of, worked out here; the template draws it, the style sheet colours it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 700
HEIGHT = 160
GAP = 0.3  # of a bar's place that stays empty
LABELS = 7  # days that are named below the bars, at most


@dataclass(frozen=True)
class Rect:
    """A part of a bar; `kind` is its class in the style sheet."""

    kind: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Bar:
    """A day. `label` is empty where there is no room for one."""

    label: str
    middle: float
    rects: tuple[Rect, ...]


def bars(days: Sequence[tuple[str, Sequence[tuple[str, int]]]]) -> list[Bar]:
    """A bar for each day: its label, and its parts from the bottom up, by kind and number."""
    top = max((sum(count for _, count in parts) for _, parts in days), default=0) or 1
    place = WIDTH / max(len(days), 1)
    every = -(-len(days) // LABELS)
    made = []
    for n, (label, parts) in enumerate(days):
        y = float(HEIGHT)
        rects = []
        for kind, count in parts:
            height = HEIGHT * count / top
            y -= height
            if count:
                left = place * (n + GAP / 2)
                rects.append(Rect(kind, round(left, 1), round(y, 1), round(place * (1 - GAP), 1), round(height, 1)))
        named = (len(days) - 1 - n) % every == 0  # the last day always is
        made.append(Bar(label if named else "", round(place * (n + 0.5), 1), tuple(rects)))
    return made
