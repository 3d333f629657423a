"""The rectangles of a bar chart. The template draws them as SVG, the style sheet colours them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Units of the SVG's view box; the browser stretches it to the width of the page.
WIDTH = 700
HEIGHT = 160
LINE = 3  # width of an interval
GAP = 0.3  # share of a bar's slot that stays empty


@dataclass(frozen=True)
class Rect:
    """A part of a bar; `kind` is its class in the style sheet."""

    kind: str
    x: float
    y: float
    width: float
    height: float


def shares(columns: Sequence[tuple[float, float, float]]) -> list[Rect]:
    """Bars for shares between 0 and 1, each with its interval as a line: (share, low, high). 1 fills the chart."""
    slot = WIDTH / max(len(columns), 1)
    made = []
    for n, (share, low, high) in enumerate(columns):
        left, width = slot * (n + GAP / 2), slot * (1 - GAP)
        made.append(
            Rect("answered", round(left, 1), round(HEIGHT * (1 - share), 1), round(width, 1), round(HEIGHT * share, 1))
        )
        tall = max(HEIGHT * (high - low), LINE)
        made.append(
            Rect("interval", round(left + width / 2 - LINE / 2, 1), round(HEIGHT * (1 - high), 1), LINE, round(tall, 1))
        )
    return made


def bars(columns: Sequence[Sequence[tuple[str, int]]]) -> list[Rect]:
    """A stacked bar for each column: its parts from the bottom up, (kind, count). The highest bar fills the chart."""
    top = max((sum(count for _, count in parts) for parts in columns), default=0) or 1
    slot = WIDTH / max(len(columns), 1)
    made = []
    for n, parts in enumerate(columns):
        y = float(HEIGHT)
        for kind, count in parts:
            height = HEIGHT * count / top
            y -= height
            if count:
                left = slot * (n + GAP / 2)
                made.append(Rect(kind, round(left, 1), round(y, 1), round(slot * (1 - GAP), 1), round(height, 1)))
    return made
