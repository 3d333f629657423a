"""`pagewire eval run` and `compare`: a dataset asked of a running system, and whether it may take another's place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import SecretStr, ValidationError

from cli.admin_client import address, key_for
from cli.evaluation_print import (
    AtOnce,
    Deciding,
    Junit,
    Margin,
    Url,
    comparison_told,
    known_measure,
    known_measures,
    missed,
    print_evaluation,
    write_junit,
)
from cli.judging import CALLS, NO_JUDGE, TOKENS, Judging, hear, print_heard
from cli.output import NOT_SO, Bars, Json, err, out, print_json
from cli.wired import logged
from pipelines.evaluate.dataset import BadDataset, Dataset, load_dataset
from pipelines.evaluate.evaluation import against, evaluate
from pipelines.evaluate.evaluator import AT_ONCE, AsyncEvaluator
from pipelines.evaluate.judged.registry import ALL, JUDGED, named
from pipelines.evaluate.non_inferiority import MARGIN, fewest_cases
from pipelines.evaluate.publication import publication
from pipelines.evaluate.run import AskCase, Run, RunHead, askable
from pipelines.runtime.errors import WrongUse
from schemas.base import problems
from schemas.evaluation import JudgeNumbers, ListedRun, NewRun

GOES_ON = timedelta(hours=24)  # a run that was stopped earlier begins again: the system has changed since
JUDGE_NUMBERS = tuple(name for name in JudgeNumbers.model_fields if name != "v")


def evaluate_site(
    site: Annotated[str, typer.Argument(help="Site of the running system.")],
    dataset: Annotated[Path, typer.Option(exists=True, help="Dataset: YAML, NDJSON, or a folder of YAML files.")],
    url: Url = None,
    key: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="File with a key of the scope chat; default, here: the admin key."
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            help="File that keeps the run, an unfinished one of which goes on. Default: of the "
            "last 24 hours, or a new one, in PAGEWIRE_HOME/evaluations.",
        ),
    ] = None,
    live: Annotated[
        Path | None,
        typer.Option(
            "--against",
            exists=True,
            dir_okay=False,
            help="File of an earlier run: exit code 1 unless this one is shown not to be worse.",
        ),
    ] = None,
    margin: Margin = MARGIN,
    measure: Deciding = None,
    least: Annotated[
        list[str] | None,
        typer.Option(help="Exit code 1 when a figure of all cases is lower, as `right=0.8`; may be repeated."),
    ] = None,
    at_once: AtOnce = AT_ONCE,
    corrections: Annotated[
        bool,
        typer.Option(
            help="Also ask the questions of the site's corrections in force, for which the key needs the scope view."
        ),
    ] = True,
    judge: Annotated[
        list[str] | None,
        typer.Option(
            help="Have a model judge the answers by this measure; may be repeated. "
            f"One of {', '.join((ALL, *(measure.name for measure in JUDGED)))}. Decides nothing."
        ),
    ] = None,
    judge_number: Annotated[
        list[str] | None,
        typer.Option(
            help="What the measures claims and rubrics make of what the judge says, as `f=0.5`; may be repeated. "
            f"One of {', '.join(JUDGE_NUMBERS)}."
        ),
    ] = None,
    judge_model: Annotated[
        str | None,
        typer.Option(
            help="Model that judges, of the configured server. Default: PAGEWIRE_JUDGING_MODEL, or else "
            "PAGEWIRE_LLM_MODEL."
        ),
    ] = None,
    judge_calls: Annotated[int, typer.Option(min=1, help="Calls that judging may cost.")] = CALLS,
    judge_tokens: Annotated[int, typer.Option(min=1, help="Tokens that judging may cost.")] = TOKENS,
    judge_repeats: Annotated[
        int, typer.Option(min=1, max=20, help="How often each answer is judged, to see whether the judge is constant.")
    ] = 1,
    publish: Annotated[
        bool,
        typer.Option(
            "--publish", help="Let everybody see it in the site's console. The key needs the scope edit as well."
        ),
    ] = False,
    note: Annotated[str, typer.Option(help="What is tried out, for people; with --publish.")] = "",
    json: Json = False,
    xml: Junit = None,
) -> None:
    """Ask every case of a dataset as a visitor would, and measure pages, answers, citations, refusals and time. Needs
    no model, but for `--judge`. Exit code 1 when a figure is too low or the comparison does not pass.

    The questions of the site's corrections are asked, too: what an editor has put right stays right. Stopped or killed,
    the same command goes on where it was. Its questions are not logged; only those of a case with
    others before it count in the question log, without words.

    Example: pagewire eval run town --dataset town.yaml --run live.ndjson

    Example: pagewire eval run town --dataset town.yaml --against live.ndjson --margin 0.05 --junit report.xml

    Example: pagewire eval run town --dataset town.yaml --publish --note "chunks of 1000"

    Example: pagewire eval run town --dataset town.yaml --judge score --judge faithfulness --judge-calls 500
    """  # fmt: skip
    settings = logged()
    measures = known_measures(measure)
    bars = dict(_least(text) for text in least or ())
    before = Run.read(live) if live else None
    numbers = _numbers(judge_number or ())
    wanted, model = named(judge or (), numbers), judge_model or settings.judge_of_answers
    judging = Judging(model, wanted, judge_calls, judge_tokens, judge_repeats) if wanted and model else None
    where = address(settings, url)
    secret = key_for(settings, where, key)
    cases = load_dataset(dataset)
    if not askable(cases, site):
        raise BadDataset(f"{dataset}: no case for site {site} that can be asked at any time")
    if corrections:
        cases = asyncio.run(_with_corrections(cases, where, site, secret))
    head = RunHead.of(cases, site, where, datetime.now(UTC))
    _warn(head, margin if before else None)
    folder, unfinished = settings.home / "evaluations", _unfinished(cases, judging)
    made = Run.begin(run or kept_at(folder, head, unfinished), head)
    asyncio.run(_ask(cases, head, secret, made, at_once))
    report = evaluate(cases, made)
    comparison = against(cases, before, made, margin, measures) if before else None
    heard = asyncio.run(hear(cases, made, judging, settings, before, margin)) if judging else None
    said = heard.report if heard else None
    new = publication(cases, made, report, note, said) if publish else None
    shown = asyncio.run(_publish(head, secret, new)) if new else None
    too_low = missed(report, bars)
    write_junit(xml, f"pagewire eval run {site}: {cases.label}", report, comparison, bars)
    if json:
        found: dict[str, Any] = {"file": str(made.path), "report": report.model_dump(mode="json"), "too_low": too_low}
        published = shown and {"published": shown.id}
        print_json(
            {**found, "comparison": comparison_told(comparison), "judged": heard and heard.told(), **(published or {})}
        )
        if wanted and not heard:
            err.print(NO_JUDGE)
    else:
        print_evaluation(report, comparison, too_low)
        if heard:
            print_heard(heard)
        elif wanted:
            out.print(f"\n{NO_JUDGE}", markup=False, soft_wrap=True)
        out.print(f"kept in {made.path}", markup=False, soft_wrap=True)
        if shown:
            out.print(f"published as {shown.id}: {_page_of(head, shown)}", markup=False, soft_wrap=True)
    if too_low or (comparison and not comparison.passed):
        raise typer.Exit(NOT_SO)


def kept_at(folder: Path, head: RunHead, unfinished: Callable[[Run], bool] = lambda run: not run.complete) -> Path:
    """The newest run of the same questions to the same system that was stopped in the last day, or a new file."""
    for path in sorted(folder.glob(f"{head.site}-*.ndjson"), reverse=True):
        try:
            found = Run.read(path)
        except WrongUse:
            continue
        if found.head.same(head) and unfinished(found) and head.begun - found.head.begun < GOES_ON:
            return path
    name = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in head.dataset)
    new = folder / f"{head.site}-{head.begun:%Y%m%dT%H%M%S}-{name}.ndjson"
    # Of one that was done in this very second it would go on, and ask nothing.
    return folder / f"{head.site}-{head.begun:%Y%m%dT%H%M%S.%f}-{name}.ndjson" if new.exists() else new


def _unfinished(cases: Dataset, judging: Judging | None) -> Callable[[Run], bool]:
    return lambda run: not run.complete or (judging is not None and judging.unfinished(cases, run))


async def _with_corrections(cases: Dataset, url: str, site: str, key: SecretStr) -> Dataset:
    """A key that may not read them asks without them, as before there were any; that is printed."""
    from adapters.http_site import HttpSite

    async with HttpSite(url, site, key) as system:
        try:
            return cases.joined(await system.corrected())
        except WrongUse as refused:
            err.print(f"the questions of corrections are left out: {refused}", markup=False, soft_wrap=True)
            return cases


async def _ask(cases: Dataset, head: RunHead, key: SecretStr, run: Run, at_once: int) -> None:
    from adapters.http_site import HttpSite

    async with HttpSite(head.url, head.site, key) as system:
        await asked_with_a_bar(cases, head, system.ask, run, at_once)


async def _publish(head: RunHead, key: SecretStr, run: NewRun) -> ListedRun:
    from adapters.http_site import HttpSite

    async with HttpSite(head.url, head.site, key) as system:
        return await system.publish(run)


def _page_of(head: RunHead, run: ListedRun) -> str:
    return f"{head.url.rstrip('/')}/console/evaluations/{run.id}?site={head.site}"


async def asked_with_a_bar(cases: Dataset, head: RunHead, ask: AskCase, run: Run, at_once: int = AT_ONCE) -> None:
    """Ask what is left of a run. Raises: Retryable, Permanent."""
    with run, Bars(transient=True) as bars:
        questions = askable(cases, head.site)
        evaluator = AsyncEvaluator(at_once=at_once)
        await evaluator.ask(questions, ask, run, lambda done: bars.step("asking", done, head.cases))


def _numbers(given: Sequence[str]) -> JudgeNumbers:
    """Raises: WrongUse."""
    try:
        return JudgeNumbers.model_validate_strings(dict(text.partition("=")[::2] for text in given))
    except ValidationError as err:
        raise WrongUse(f"--judge-number: {problems(err)}") from err


def _least(text: str) -> tuple[str, float]:
    name, equals, value = text.rpartition("=")
    try:
        least = float(value)
    except ValueError:
        equals = ""
    if not equals:
        raise WrongUse(f"--least {text}: as `right=0.8`")
    return known_measure(name), least


def _warn(head: RunHead, margin: float | None) -> None:
    if head.left_out:
        err.print(f"{head.left_out} cases hang on a time of their own and are left out")
    if margin is not None and head.cases < fewest_cases(margin):
        err.print(
            f"[yellow]too few cases[/]: {fewest_cases(margin)} needed for a margin of {margin:g}; nothing can pass"
        )


def compare_runs(
    live: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="File of the run that is to be beaten.")],
    candidate: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="File of the run that is held to it.")],
    dataset: Annotated[Path, typer.Option(exists=True, help="Dataset of both.")],
    margin: Margin = MARGIN,
    measure: Deciding = None,
    json: Json = False,
    xml: Junit = None,
) -> None:
    """Say whether a run is shown not to be worse than another of the same dataset, in all and by language and tag. Asks
    nothing, and needs no running system. Exit code 1 when it is not shown. A run of the system as it is now is compared
    by `pagewire eval run --against`.

    Example: pagewire eval compare live.ndjson candidate.ndjson --dataset town.yaml --margin 0.05
    """
    measures = known_measures(measure)
    cases, before, after = load_dataset(dataset), Run.read(live), Run.read(candidate)
    comparison = against(cases, before, after, margin, measures)
    report = evaluate(cases, after)
    write_junit(xml, f"pagewire eval compare {candidate.name}: {cases.label}", report, comparison, {})
    if json:
        print_json({"report": report.model_dump(mode="json"), "comparison": comparison_told(comparison)})
    else:
        print_evaluation(report, comparison, ())
    if not comparison.passed:
        raise typer.Exit(NOT_SO)
