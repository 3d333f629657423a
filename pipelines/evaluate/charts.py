"""Charts as SVG, for the docs and for reports: no library, the same picture for the same figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 640, 400  # pixels
LEFT, RIGHT, TOP, BOTTOM = 60, 190, 20, 50
COLOURS = ("#0b6e99", "#d9730d", "#448361", "#9065b0", "#c14c8a", "#787774")
TICKS = 5
BAR, NAMES = 20, 230  # pixels: height of a bar, and what stands before it
LONGEST = 34  # characters of a name beside a bar

Point = tuple[float, float]


def lines(
    curves: Mapping[str, Sequence[Point]],
    across: str,
    up: str,
    x_range: Point,
    y_range: Point,
    diagonal: bool = False,
) -> str:
    """Curves by name, with axes named `across` and `up`; values outside the ranges are cut off."""

    def place(point: Point) -> Point:
        shares = [
            min(max((value - low) / (high - low), 0.0), 1.0)
            for value, (low, high) in zip(point, (x_range, y_range), strict=True)
        ]
        return (
            round(LEFT + shares[0] * (WIDTH - LEFT - RIGHT), 1),
            round(HEIGHT - BOTTOM - shares[1] * (HEIGHT - TOP - BOTTOM), 1),
        )

    def path_of(points: Sequence[Point]) -> str:
        return " ".join(f"{x},{y}" for x, y in map(place, points))

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for step in range(TICKS + 1):
        x = x_range[0] + step * (x_range[1] - x_range[0]) / TICKS
        y = y_range[0] + step * (y_range[1] - y_range[0]) / TICKS
        (px, _), (_, py) = place((x, y_range[0])), place((x_range[0], y))
        parts += [
            f'<line x1="{px}" y1="{TOP}" x2="{px}" y2="{HEIGHT - BOTTOM}" stroke="#e3e2e0"/>',
            f'<line x1="{LEFT}" y1="{py}" x2="{WIDTH - RIGHT}" y2="{py}" stroke="#e3e2e0"/>',
            f'<text x="{px}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{x:.2f}</text>',
            f'<text x="{LEFT - 8}" y="{py + 4}" text-anchor="end">{y:.2f}</text>',
        ]
    if diagonal:
        parts.append(
            f'<polyline points="{path_of([(0, 0), (1, 1)])}" fill="none" stroke="#9b9a97" stroke-dasharray="4"/>'
        )
    for number, (name, points) in enumerate(curves.items()):
        colour = COLOURS[number % len(COLOURS)]
        y = TOP + 14 + 18 * number
        parts += [
            f'<polyline points="{path_of(points)}" fill="none" stroke="{colour}" stroke-width="2"/>',
            f'<line x1="{WIDTH - RIGHT + 12}" y1="{y - 4}" x2="{WIDTH - RIGHT + 32}" y2="{y - 4}" stroke="{colour}" '
            'stroke-width="2"/>',
            f'<text x="{WIDTH - RIGHT + 38}" y="{y}">{escape(name)}</text>',
        ]
    parts += [
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">{escape(across)}</text>',
        f'<text x="16" y="{(TOP + HEIGHT - BOTTOM) / 2}" text-anchor="middle" '
        f'transform="rotate(-90 16 {(TOP + HEIGHT - BOTTOM) / 2})">{escape(up)}</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def bars(values: Mapping[str, float], across: str) -> str:
    """A bar for each name, below each other; none is below 0."""
    most = max((*values.values(), 0.0)) or 1.0
    height = TOP + BAR * len(values) + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for number, (name, value) in enumerate(values.items()):
        y = TOP + BAR * number
        length = round(value / most * (WIDTH - NAMES - RIGHT / 2), 1)
        shown = name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
        parts += [
            f'<text x="{NAMES - 8}" y="{y + 14}" text-anchor="end">{escape(shown)}</text>',
            f'<rect x="{NAMES}" y="{y + 3}" width="{length}" height="{BAR - 6}" fill="{COLOURS[0]}"/>',
            f'<text x="{NAMES + length + 6}" y="{y + 14}">{value:,.0f}</text>',
        ]
    parts += [
        f'<text x="{NAMES}" y="{height - 20}">{escape(across)}</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"
