"""The report of an experiment as Markdown, and as one HTML page that needs nothing beside it.

report ─▶ Markdown ─▶ (markdown-it) ─▶ HTML, with the charts below
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from markdown_it import MarkdownIt

from pipelines.evaluate.charts import COLOURS, Point, bars, lines
from pipelines.evaluate.experiments.report import ArmDifference, ArmReport, ExperimentReport
from pipelines.evaluate.non_inferiority import ERROR

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
