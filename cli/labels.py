"""`pagewire labels`: what people say of the answers in the question log, how far they agree, and a file of it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, TypeVar, get_args

import typer

from cli.output import NOT_SO, err, explained, out, print_json, rows, table
from cli.wired import connected, logged
from pipelines.evaluate.labelling.export import line
from pipelines.evaluate.labelling.labelled import state
from pipelines.evaluate.labelling.labelling import Labelling, told
from pipelines.evaluate.labelling.ports import Labelled
from pipelines.runtime.errors import WrongUse
from schemas.label import Estimate, JudgeAgreement, JudgeFigure, LabelList, LabelState, RaterAgreement

HEAD = 80  # characters of a question

app = typer.Typer(
    no_args_is_help=True,
    help="What people say of the answers in the question log. They say it in the console, or over HTTP.",
)

Value = TypeVar("Value")
Site = Annotated[str, typer.Argument(help="Site, as in pagewire.yaml.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
State = Annotated[
    str | None, typer.Option("--state", help=f"Only those in this state: {', '.join(get_args(LabelState))}.")
]


@app.command("list")
def list_(site: Site, wanted: State = None, json: Json = False) -> None:
    """The questions that somebody has labelled, the newest first.

    Example: pagewire labels list town --state disagreed
    """
    found = _labelled(site, wanted)
    # Whoever runs this may read everything: nothing is hidden.
    listed = [told(each, each.labels[0].rater) for each in found]
    if json:
        print_json(LabelList(questions=tuple(listed)))
        return
    made = table("asked", "lang", "outcome", "state", "labels", "question", "id")
    for each in listed:
        labels = "\n".join(f"{label.rater}: {label.mark}" for label in each.labels)
        settled = f"\nsettled: {each.settled.mark}" if each.settled else ""
        question = " ".join((each.question or "").split())
        shown = question if len(question) <= HEAD else question[: HEAD - 1] + "…"
        at = each.asked_at.astimezone().strftime("%Y-%m-%d %H:%M")
        rows(made, [(at, each.lang, each.became, each.state, labels + settled, shown, each.request_id)])
    out.print(made)


@app.command()
def agreement(site: Site, json: Json = False) -> None:
    """How far each two raters agree, in all and by language. Exit code 1 when no question has two labels.

    Example: pagewire labels agreement town
    """
    found = _with_labelling(site, lambda labelling: labelling.agreement(site))
    if json:
        print_json(found)
    else:
        columns = ("raters", "of", "questions#", "same mark#", "one: right#", "other: right#", "kappa#")
        out.print(rows(table(*columns), [_pair(each) for each in found.pairs]))
    if not found.pairs:
        err.print("no question has two labels")
        raise typer.Exit(NOT_SO)


@app.command()
def judge(
    site: Site,
    figure: Annotated[str, typer.Option(help=f"One of {', '.join(get_args(JudgeFigure))}.")] = "faithfulness",
    bar: Annotated[
        float | None, typer.Option(min=0, max=1, help="The judge says right from here on; default: of the figure.")
    ] = None,
    json: Json = False,
) -> None:
    """How far the judge of the site's answers agrees with the labels that count, in all and by language, and what
    share of the answers is right by both. Exit code 1 when there is no judge.

    Example: pagewire labels judge town
    """
    figures: dict[str, JudgeFigure] = {name: name for name in get_args(JudgeFigure)}
    with explained():
        if figure not in figures:
            raise WrongUse(f"--figure {figure}: choose one of {', '.join(figures)}")
    found = _with_labelling(site, lambda labelling: labelling.judge_agreement(site, figures[figure], bar))
    if json:
        print_json(found)
    elif found.judge is not None:
        _print_judge(found)
    if found.judge is None:
        err.print(f"no judge: none of the answers of {site} is judged (judging.share)")
        raise typer.Exit(NOT_SO)


def _print_judge(found: JudgeAgreement) -> None:
    out.print(f"{found.figure} by {found.judge}, right from {found.bar:g} on\n", markup=False, soft_wrap=True)
    columns = ("of", "labels#", "people: right#", "judge: right#", "kappa#", "true positives#", "true negatives#")
    lines: list[tuple[object, ...]] = []
    for each in found.groups:
        shown = (each.people_right, each.judge_right, each.kappa, each.true_positives, each.true_negatives)
        lines.append((each.group, each.questions, *map(_range, shown)))
    out.print(rows(table(*columns), lines))
    out.print()
    shares = [(each.group, each.judged, _range(each.judged_right), _range(each.right)) for each in found.groups]
    out.print(rows(table("right, of", "judged#", "by the judge alone#", "by both#"), shares))
    if found.constancy is not None:
        out.print(f"\nsays the same of the same answer {found.constancy:.1%} of the time ({found.repeated:,} answers)")
    out.print(f"\nits figures: {found.groups[0].trust}", markup=False)
    if found.other_judges or found.undecided:
        out.print(f"set aside: {found.other_judges:,} verdicts of other judges, {found.undecided:,} without the figure")


@app.command()
def export(
    site: Site,
    to: Annotated[
        Path | None, typer.Argument(dir_okay=False, help="File to write (.ndjson); default: standard output.")
    ] = None,
    wanted: State = None,
) -> None:
    """What counts of each labelled question, a line of JSON each, without names: labels for `judge-agreement`, and
    cases for `datasets import labels`. What two raters differ on has no mark until it is settled.

    Example: pagewire labels export town labels.ndjson

    Example: pagewire datasets import labels labels.ndjson town.yaml
    """

    async def lines(labelling: Labelling) -> list[str]:
        found = [each for each in await labelling.of_site(site) if wanted in (None, state(each))]
        return [line(each, await labelling.earlier(each)) for each in found]

    _known(wanted)
    written = _with_labelling(site, lines)
    if to is None:
        sys.stdout.write("".join(written))
    else:
        to.write_text("".join(written), encoding="utf-8")
        out.print(f"{len(written):,} questions in {to}", markup=False, soft_wrap=True)


def _known(wanted: str | None) -> None:
    with explained():
        if wanted not in (None, *get_args(LabelState)):
            raise WrongUse(f"--state {wanted}: choose one of {', '.join(get_args(LabelState))}")


def _labelled(site: str, wanted: str | None) -> Sequence[Labelled]:
    _known(wanted)
    found = _with_labelling(site, lambda labelling: labelling.of_site(site))
    return [each for each in found if wanted in (None, state(each))]


def _pair(each: RaterAgreement) -> tuple[object, ...]:
    shown = (_range(found) for found in (each.same, each.one_right, each.other_right, each.kappa))
    return (f"{each.one}, {each.other}", each.group, each.questions, *shown)


def _range(found: Estimate | None) -> str:
    return f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})" if found else ""


def _with_labelling(site: str, work: Callable[[Labelling], Awaitable[Value]]) -> Value:
    async def run() -> Value:
        settings = logged()
        settings.site(site)
        async with connected(settings) as clients:
            return await work(await clients.labelling())

    with explained():
        return asyncio.run(run())
