"""An evaluation on a terminal, and the options of the commands that make and compare some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from cli.output import out, table
from pipelines.evaluate.comparison import GATED, WHOLE, Comparison, FigureCheck
from pipelines.evaluate.evaluation import Evaluation, MeanFigure, ReportLine, junit
from pipelines.evaluate.measures import MEASURES
from pipelines.runtime.errors import WrongUse

NAMES = tuple(measure.name for measure in MEASURES)

Url = Annotated[str | None, Option(help="Of the gateway; default: PAGEWIRE_URL, or the gateway that runs here.")]
AtOnce = Annotated[int, Option(min=1, max=64, help="Cases asked side by side.")]
Margin = Annotated[float, Option(min=0.001, max=0.5, help="Loss that is put up with, of figures between 0 and 1.")]
Deciding = Annotated[
    list[str] | None,
    Option("--measure", help=f"Decides the comparison; may be repeated. Default: {', '.join(GATED)}."),
]
Junit = Annotated[Path | None, Option("--junit", dir_okay=False, help="Write what decides as JUnit's XML, too.")]


def print_evaluation(report: Evaluation, comparison: Comparison | None, too_low: Sequence[str]) -> None:
    """The figures of all cases, those of languages and tags, and the comparison where there is one."""
    run = report.run
    version = " ".join(part for part in (run.dataset, run.version, f"({run.fingerprint})") if part)
    out.print(f"{version} on {run.site} at {run.url}: {report.asked} cases\n", markup=False, soft_wrap=True)
    figures = [(name, *_figure(figure)) for name, figure in report.groups.get(WHOLE, {}).items()]
    figures += [
        (name, *_figure(figure))
        for name, figure in (
            ("false refusals", report.refusals.false_refusals),
            ("false answers", report.refusals.false_answers),
        )
        if figure
    ]
    out.print(table(("figure", "cases#", "mean#", "95 %#"), figures))
    named = [name for name in GATED if name in report.groups.get(WHOLE, {})]
    groups = [(name, some) for name, some in report.groups.items() if name != WHOLE]
    if groups:
        out.print()
        parts = [
            (name, max(figure.cases for figure in some.values()), *(_mean(some.get(each)) for each in named))
            for name, some in groups
        ]
        out.print(table(("of", "cases#", *(f"{name}#" for name in named)), parts))
    out.print(f"\n{'; '.join(_others(report))}", markup=False, soft_wrap=True)
    for name in too_low:
        out.print(f"[red]too low[/]: {name}")
    if comparison:
        _print_comparison(comparison)


def comparison_told(comparison: Comparison | None) -> dict[str, Any] | None:
    """A comparison as JSON."""
    return None if comparison is None else {**asdict(comparison), "passed": comparison.passed}


def _others(report: Evaluation) -> list[str]:
    latency, tokens = report.latency_ms, report.tokens
    told = [f"{latency['p50']:,.0f} ms to the whole answer, {latency['p95']:,.0f} at the 95th percentile"]
    if report.refusals.auroc is not None:
        told.append(f"AUROC of the gate's grade {report.refusals.auroc:.3f}")
    told.extend(f"{name} {score:.3f}" for name, score in report.bleu.items())
    if any(tokens.values()):
        told.append(f"{tokens['prompt']:,} tokens read, {tokens['completion']:,} written")
    if report.failed:
        told.append("failed: " + ", ".join(f"{count} {code}" for code, count in report.failed.items()))
    return told


def _print_comparison(comparison: Comparison) -> None:
    # Of languages and tags only what stops: with each of them, the table would hide what matters.
    shown = [check for check in comparison.checks if check.group == WHOLE or check.stops]
    columns = ("of", "figure", "cases#", "before#", "now#", "difference#", "90 %#", "")
    out.print()
    out.print(table(columns, [_check(check) for check in shown]))
    undecided = sum(check.figures.state == "undecided" for check in comparison.checks if check.group != WHOLE)
    if undecided:
        out.print(f"[dim]{undecided} figures of languages and tags have too few cases to show as much by themselves[/]")
    margin = f"a margin of {comparison.margin:g}"
    match comparison.outcome:
        case "passed":
            out.print(f"\n[green]not worse[/] by more than {margin}")
        case "worse":
            out.print("\n[red]worse[/]")
        case _:
            out.print(f"\n[red]too few cases[/]: {comparison.needed:,} needed for {margin}")


def _check(check: FigureCheck) -> tuple[object, ...]:
    found = check.figures
    figures = (f"{found.live:.3f}", f"{found.candidate:.3f}", f"{found.difference:+.3f}")
    return (
        check.group,
        check.measure,
        found.cases,
        *figures,
        f"{found.low:+.3f} to {found.high:+.3f}",
        check.outcome,
    )


def _figure(figure: MeanFigure) -> tuple[object, ...]:
    return figure.cases, f"{figure.mean:.3f}", f"{figure.low:.3f} to {figure.high:.3f}"


def _mean(figure: MeanFigure | None) -> str:
    return f"{figure.mean:.3f}" if figure else ""


def known_measure(name: str) -> str:
    """Raises: WrongUse."""
    if name not in NAMES:
        raise WrongUse(f"no measure {name!r}; there are {', '.join(NAMES)}")
    return name


def known_measures(names: Sequence[str] | None) -> list[str]:
    """Those that decide a comparison. Raises: WrongUse."""
    return [known_measure(name) for name in names or GATED]


def missed(report: Evaluation, bars: Mapping[str, float]) -> list[str]:
    """The figures of all cases that are lower than they may be, or not measured."""
    figures = report.groups.get(WHOLE, {})
    return [name for name, least in bars.items() if name not in figures or figures[name].mean < least]


def write_junit(
    to: Path | None, title: str, report: Evaluation, comparison: Comparison | None, bars: Mapping[str, float]
) -> None:
    """What decides, if it is wanted as JUnit's XML."""
    if to is not None:
        to.write_text(junit(title, lines(report, comparison, bars)), encoding="utf-8")


def lines(report: Evaluation, comparison: Comparison | None, bars: Mapping[str, float]) -> list[ReportLine]:
    """What decides, as a CI shows it; where nothing does, that all was asked."""
    figures = report.groups.get(WHOLE, {})
    decided = []
    low = missed(report, bars)
    for name, bar in bars.items():
        is_ = f"{figures[name].mean:.3f}" if name in figures else "not measured"
        decided.append(ReportLine(WHOLE, f"{name} is at least {bar:g}", f"it is {is_}" if name in low else ""))
    for check in comparison.checks if comparison else ():
        found = check.figures
        why = f"{check.outcome}: {found.live:.3f} before, {found.candidate:.3f} now, {found.cases} cases"
        decided.append(ReportLine(check.group, f"{check.measure} is not worse", why if check.stops else ""))
    return decided or [ReportLine(WHOLE, f"{report.asked} cases are asked")]
