"""`pagewire eval`: what tells how good the answers are; and datasets: what one has in it, others made of files."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cli.check import check
from cli.evaluate import compare_runs, evaluate_site
from cli.experiment import report_again
from cli.experiment import run as run_experiment
from cli.judging import judge_agreement
from cli.output import Json, out, print_json, table
from cli.question_log import gaps
from cli.retired import GroupWithRetired
from pipelines.evaluate.conversions import question_log
from pipelines.evaluate.dataset import BadDataset, Dataset, dumped, load_dataset
from pipelines.evaluate.non_inferiority import MARGIN, fewest_cases
from pipelines.evaluate.question_sets import hotpotqa, openbookqa, pairs, recognised, squad

datasets_app = typer.Typer(help="Datasets: questions, and what makes an answer to them right.", no_args_is_help=True)


class Format(StrEnum):
    """What a dataset is made of."""

    AUTO = "auto"
    SQUAD = "squad"
    PAIRS = "pairs"
    HOTPOTQA = "hotpotqa"
    OPENBOOKQA = "openbookqa"
    QUESTIONS = "questions"


# Formats that bring their pages with them.
WITH_PAGES = {Format.SQUAD: squad, Format.PAIRS: pairs, Format.HOTPOTQA: hotpotqa, Format.OPENBOOKQA: openbookqa}


@datasets_app.command()
def show(
    dataset: Annotated[Path, typer.Argument(exists=True, help="YAML, NDJSON, or a folder of YAML files.")],
    json: Json = False,
) -> None:
    """Check a dataset, and say its version and what it can tell.

    Example: pagewire eval datasets show town.yaml
    """
    read = load_dataset(dataset)
    expected = Counter(case.expect or "not labelled" for case in read.cases)
    groups = {name: len(ids) for name, ids in read.groups().items()}
    if json:
        told = {"name": read.name, "version": read.version, "fingerprint": read.fingerprint, "cases": len(read.cases)}
        print_json({**told, "expected": dict(expected), "groups": groups})
        return
    out.print(f"{read.label}: {len(read.cases):,} cases", markup=False)
    counts = [*expected.items(), *groups.items()]
    out.print(table(("", "cases#"), [(name, f"{count:,}") for name, count in counts]))
    if len(read.cases) < (needed := fewest_cases(MARGIN)):
        out.print(f"too few cases to compare two systems with a margin of {MARGIN:g}: {needed} needed", markup=False)


@datasets_app.command("import")
def import_dataset(
    kind: Annotated[
        Format,
        typer.Argument(
            help="squad, hotpotqa, openbookqa: files in their formats. pairs: questions with answers. questions: what "
            "`pagewire questions --json` prints. auto: what it looks like."
        ),
    ],
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="File to read.")],
    to: Annotated[Path, typer.Argument(dir_okay=False, help="Dataset to write: .yaml or .ndjson.")],
    name: Annotated[str | None, typer.Option(help="Of the dataset; default: the file's.")] = None,
    version: Annotated[str, typer.Option(help="Of the dataset, as you count them.")] = "1",
    lang: Annotated[str, typer.Option(help="Of the questions and pages; not with questions.")] = "en",
    pages: Annotated[
        Path | None,
        typer.Option(dir_okay=False, help="Write the file's passages as NDJSON for `pagewire import`."),
    ] = None,
    per_stratum: Annotated[
        int | None,
        typer.Option(min=1, help="At most so many of each outcome and language, and all disliked; with questions."),
    ] = None,
) -> None:
    """Make a dataset of another file. Questions of visitors have no labels yet: write their pages, statements, or that
    they cannot be answered.

    Example: pagewire eval datasets import auto faq.json town.yaml --lang de --pages pages.ndjson

    Example: pagewire eval datasets import questions asked.json town.yaml --per-stratum 20
    """
    kind = Format(recognised(file)) if kind is Format.AUTO else kind
    if kind is Format.QUESTIONS:
        cases = question_log(file, per_stratum)
    else:
        cases, passages = WITH_PAGES[kind](file, lang)
        if pages:
            lines = (page.model_dump_json(exclude_none=True, exclude_defaults=True) for page in passages)
            pages.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    if not cases:
        raise BadDataset(f"{file}: no questions with their text")
    made = Dataset(name or to.stem, tuple(cases), version)
    to.write_text(dumped(made, to.suffix), encoding="utf-8")
    read = load_dataset(to)
    out.print(f"{read.label}: {len(read.cases):,} cases in {to}", markup=False, soft_wrap=True)


app = typer.Typer(
    cls=GroupWithRetired,
    no_args_is_help=True,
    help="Whether the answers are right: ask a dataset, compare runs, try settings, hold the judge against people, see "
    "what is not answered.",
)
app.command("run")(evaluate_site)
app.command("compare")(compare_runs)
app.command("sweep")(run_experiment)
app.command("report")(report_again)
app.command("calibrate")(judge_agreement)
app.command("gaps")(gaps)
app.command("check")(check)
app.add_typer(datasets_app, name="datasets")
