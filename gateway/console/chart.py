"""A bar chart as SVG: what it is made of, worked out here; the template draws it, the style sheet colours it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Units of the drawing, which is stretched to the room that there is.
WIDTH = 700
HEIGHT = 160
LINE = 3  # width of an interval
GAP = 0.3  # of a bar's place that stays empty


@dataclass(frozen=True)
class Rect:
    """A part of a bar; `kind` is its class in the style sheet."""

    kind: str
    x: float
    y: float
    width: float
    height: float


def shares(columns: Sequence[tuple[float, float, float]]) -> list[Rect]:
    """A bar for each share between 0 and 1, with its interval as a line: (share, low, high). 1 fills the chart."""
    place = WIDTH / max(len(columns), 1)
    made = []
    for n, (share, low, high) in enumerate(columns):
        left, width = place * (n + GAP / 2), place * (1 - GAP)
        made.append(
            Rect("answered", round(left, 1), round(HEIGHT * (1 - share), 1), round(width, 1), round(HEIGHT * share, 1))
        )
        tall = max(HEIGHT * (high - low), LINE)
        made.append(
            Rect("interval", round(left + width / 2 - LINE / 2, 1), round(HEIGHT * (1 - high), 1), LINE, round(tall, 1))
        )
    return made


def bars(columns: Sequence[Sequence[tuple[str, int]]]) -> list[Rect]:
    """A bar for each column: its parts from the bottom up, by kind and number. The highest fills the chart."""
    top = max((sum(count for _, count in parts) for parts in columns), default=0) or 1
    place = WIDTH / max(len(columns), 1)
    made = []
    for n, parts in enumerate(columns):
        y = float(HEIGHT)
        for kind, count in parts:
            height = HEIGHT * count / top
            y -= height
            if count:
                left = place * (n + GAP / 2)
                made.append(Rect(kind, round(left, 1), round(y, 1), round(place * (1 - GAP), 1), round(height, 1)))
    return made
