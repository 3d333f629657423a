"""Student's t, which Python's `statistics` has not."""

from __future__ import annotations

import math

HALVINGS = 60  # of the angle, a quarter of a circle: to the last digit of a float


def student_t(degrees: int, sure: float) -> float:
    """The t that lies farther from 0 than this share of all: 12.7 for 1 degree and .95, 1.96 for very many.

    Looked for by halving, in the share as Abramowitz and Stegun (1964) have it, 26.7.3 and 26.7.4; takes time that
    grows with the degrees, 1,000 in a few milliseconds.
    """
    low, high = 0.0, math.pi / 2
    for _ in range(HALVINGS):
        angle = (low + high) / 2
        low, high = (angle, high) if _within(angle, degrees) < sure else (low, angle)
    return math.sqrt(degrees) * math.tan(low)


def _within(angle: float, degrees: int) -> float:
    """The share of all between -t and t, with t = √degrees · tan(angle)."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2
    term = cosine if odd else 1.0
    terms = 0.0
    for power in range(1 + odd, degrees, 2):
        terms += term
        term *= cosine**2 * power / (power + 1)
    return 2 / math.pi * (angle + sine * terms) if odd else sine * terms
