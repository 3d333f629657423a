"""The report of an experiment as Markdown, and as one HTML page that needs nothing beside it.

report ─▶ Markdown ─▶ (markdown-it) ─▶ HTML, with the charts below
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from markdown_it import MarkdownIt

from pipelines.evaluate.experiments.report import ArmDifference, ArmReport, ExperimentReport
from pipelines.evaluate.non_inferiority import ERROR

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


NAMES_OF = {"hits": "hits", "shots": "worked answers in the prompt"}
STYLE = """body{font:16px/1.5 sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#1f1f1e}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:14px}th,td{padding:.3rem .6rem;border-bottom:1px solid
#e3e2e0;text-align:left;font-variant-numeric:tabular-nums}svg{width:100%;max-width:44rem;height:auto}"""


def markdown(report: ExperimentReport) -> str:
    """The whole report but its charts."""
    return "\n\n".join((*_opening(report), *_verdicts(report), *_tables(report))) + "\n"


def html(report: ExperimentReport) -> str:
    """The same with its charts. Markup in names is shown as it is."""
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown(report))
    body = body.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")
    drawn = "\n".join(f"<h2>{escape(title)}</h2>\n{picture}" for title, picture in charts(report))
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(report.name)}</title>\n<style>{STYLE}</style></head>\n"
        f"<body>\n{body}{drawn}\n</body>\n</html>\n"
    )


def charts(report: ExperimentReport) -> Iterator[tuple[str, str]]:
    """Titles and pictures: what decides by hits and by shots, tokens where there are any, and time."""
    for setting, across in NAMES_OF.items():
        for measure in report.measures:
            if curves := _curves(report, setting, measure):
                at = [x for points in curves.values() for x, _ in points]
                yield f"{measure} by {across}", lines(curves, across, measure, (min(at), max(at)), (0, 1))
    if any(arm.tokens for arm in report.arms):
        yield "Cost", bars({arm.name: arm.tokens for arm in report.arms}, "tokens read and written for a question")
    yield "Latency", bars({arm.name: arm.latency_ms["p50"] for arm in report.arms}, "ms to the whole answer, median")


def _curves(report: ExperimentReport, setting: str, measure: str) -> dict[str, list[Point]]:
    """A curve for each choice of the other settings; where these are too many to tell apart, their mean."""
    found: dict[str, dict[float, list[float]]] = {}
    for arm in report.arms:
        at = arm.varied.get(setting)
        if isinstance(at, int | float) and measure in arm.figures and setting in report.vary:
            others = ", ".join(f"{name} {arm.varied.get(name)}" for name in report.vary if name != setting)
            found.setdefault(others or measure, {}).setdefault(float(at), []).append(arm.figures[measure].mean)
    if len(found) > len(COLOURS):
        merged: dict[float, list[float]] = {}
        for points in found.values():
            for at, values in points.items():
                merged.setdefault(at, []).extend(values)
        found = {"mean of all arms": merged}
    curves = {name: [(at, sum(each) / len(each)) for at, each in sorted(some.items())] for name, some in found.items()}
    return {name: points for name, points in curves.items() if len(points) > 1}


def _opening(report: ExperimentReport) -> Iterator[str]:
    yield f"# Experiment {_cell(report.name)}"
    arms = len(report.arms) + len(report.missing)
    yield (
        f"{_cell(report.dataset)}, {report.cases:,} cases asked of {_cell(report.site)} at {_cell(report.url)} under "
        f"each of {arms} arms, the base among them. System {_cell(report.system)}."
    )
    if failed := [f"{arm.name}: {failures(arm)}" for arm in report.arms if arm.failed]:
        yield f"**Failed**, and counted as no answer: {_cell('; '.join(failed))}."
    if not report.finished:
        unfinished = [
            f"{arm.name} ({arm.asked:,} of {report.cases:,})" for arm in report.arms if arm.asked < report.cases
        ]
        left = [*unfinished, *report.missing]
        yield f"**Not finished**: {_cell('; '.join(left))}. Of these arms nothing is compared yet."


def _verdicts(report: ExperimentReport) -> Iterator[str]:
    yield "## What is shown"
    compared = [each for arm in report.arms for each in arm.differences]
    for verdict in ("better", "worse"):
        held = [each for each in compared if each.verdict == verdict]
        if held:
            yield "\n".join(f"- **{verdict}** than the base in {each.measure}: {_told(each)}" for each in held)
    if compared and not any(each.verdict != "not shown" for each in compared):
        yield "No arm is shown to be better or worse than the base."
    if compared:
        yield (
            f"A difference is called shown where the chance that noise makes it is at most {ERROR:g} after Holm's "
            f"correction for the {len(compared)} that are looked at. What is not shown may still be there."
        )
    if report.needed:
        yield (
            f"**Too few cases**: about {report.needed:,} are needed to show a difference of {report.worth:g} in every "
            f"arm; there are {report.cases:,}."
        )


def _tables(report: ExperimentReport) -> Iterator[str]:
    yield "## Differences from the base"
    columns = ("arm", "figure", "cases", "base", "arm's", "difference", "95 %", "by noise", "corrected", "", "needed")
    yield _table(columns, [_difference(each) for arm in report.arms for each in arm.differences])
    yield "## All arms"
    shown = report.shown
    bleu = tuple(report.arms[0].bleu)
    figures = ("arm", "asked", *shown, *bleu, "ms, median", "ms, 95th", "tokens", "calls", "failed")
    yield _table(figures, [_arm(arm, shown, bleu) for arm in report.arms])
    yield (
        f"Only {_cell(' and '.join(report.measures))} decides; of other figures nothing is said. Tokens and calls of "
        "the model are means of a question. Times hang on what else the machine did."
    )


def _told(each: ArmDifference) -> str:
    interval = f"{each.low:+.3f} to {each.high:+.3f}"
    return f"{_cell(each.arm)}, {each.base:.3f} to {each.mean:.3f}, {each.difference:+.3f} ({interval})"


def _difference(each: ArmDifference) -> tuple[str, ...]:
    return (
        each.arm,
        each.measure,
        f"{each.cases:,}",
        f"{each.base:.3f}",
        f"{each.mean:.3f}",
        f"{each.difference:+.3f}",
        f"{each.low:+.3f} to {each.high:+.3f}",
        f"{each.by_noise:.4f}",
        f"{each.corrected:.4f}",
        each.verdict,
        f"{each.needed:,}" if each.needed else "",
    )


def _arm(arm: ArmReport, shown: Sequence[str], bleu: Sequence[str]) -> tuple[str, ...]:
    return (
        arm.name,
        f"{arm.asked:,}",
        *(f"{arm.figures[name].mean:.3f}" if name in arm.figures else "" for name in shown),
        *(f"{arm.bleu[name]:.3f}" if name in arm.bleu else "" for name in bleu),
        f"{arm.latency_ms['p50']:,.0f}",
        f"{arm.latency_ms['p95']:,.0f}",
        f"{arm.tokens:,.0f}",
        f"{arm.calls:.1f}",
        failures(arm),
    )


def failures(arm: ArmReport) -> str:
    """How many questions failed, by their codes."""
    return ", ".join(f"{count} {code}" for code, count in sorted(arm.failed.items()))


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines_ = [columns, ["---"] * len(columns), *rows]
    return "\n".join(
        "| " + " | ".join(each if each == "---" else _cell(each) for each in line) + " |" for line in lines_
    )


def _cell(text: str) -> str:
    """As it stands, whatever is in it: a name is no markup."""
    return "".join(f"\\{letter}" if letter in "\\|*_`[]<>" else " " if letter in "\r\n" else letter for letter in text)
