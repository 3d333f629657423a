"""The benchmarks of what is for those who run a site: question log, console, evaluations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.bench.given import Data, numbers

app = typer.Typer()


@app.command()
def gaps(
    part: Annotated[str, typer.Option(help="`tune` to look at, or `hold-out` to report.")] = "tune",
    embedder: Annotated[str, typer.Option(help="As PAGEWIRE_EMBEDDER.")] = "lite",
    questions: Annotated[int, typer.Option(min=0, help="Made-up questions for the time it takes; 0: none.")] = 10_000,
    show: Annotated[bool, typer.Option("--show", help="Print the groups, of the part to look at.")] = False,
) -> None:
    """Whether questions that mean the same fall together, in three languages and misspelled, and how long many take.
    Needs no system.

    Example: pagewire bench gaps --part hold-out
    """
    from bench import gaps as bench

    if part not in ("tune", "hold-out"):
        raise typer.BadParameter("must be tune or hold-out", param_hint="--part")
    bench.main(part, embedder, questions, show)  # type: ignore[arg-type]


@app.command()
def coverage(
    part: Annotated[str, typer.Option(help="`tune` to look at, or `hold-out` to report.")] = "tune",
    questions: Annotated[int, typer.Option(min=0, help="Made-up questions for the time it takes.")] = 10_000,
    pages: Annotated[int, typer.Option(min=0, help="Made-up pages for the time it takes; 0: none.")] = 10_000,
) -> None:
    """Whether topics that a site does not cover are named, and those that nobody asks for: pages of the sample site are
    taken away, and questions about others; and how long many pages and questions take.

    Example: pagewire bench coverage --part hold-out
    """
    from bench import coverage as bench

    if part not in ("tune", "hold-out"):
        raise typer.BadParameter("must be tune or hold-out", param_hint="--part")
    bench.main(part, questions, pages)  # type: ignore[arg-type]


@app.command()
def console(
    outcomes: Annotated[int, typer.Option(min=1, help="Made-up questions in the log.")] = 100_000,
    rounds: Annotated[int, typer.Option(min=1, help="Times that each page is asked for.")] = 20,
) -> None:
    """How long every page of the console and every filter takes over a full question log, at the server.

    Example: pagewire bench console --outcomes 100000
    """
    from bench import console as bench

    bench.main(outcomes, rounds)


@app.command()
def fidelity(
    pages: Annotated[
        list[Path] | None,
        typer.Option(exists=True, file_okay=False, help="Folder of NAME/source.html and NAME/expected.html."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """What arrives of what pages say: words, figures, structure; which pages are flagged. Needs no system.

    Of the sample site's pages in a frame, and of those of folders. `go mod download -json
    codeberg.org/readeck/go-readability/v2@v2.1.3` fetches Mozilla's 130, whose folder is `test-pages` in its `Dir`.

    Example: pagewire bench fidelity --pages test-pages
    """
    from bench import fidelity as bench

    bench.main(pages or [], as_json=json)


@app.command()
def masking(
    part: Annotated[
        str, typer.Option(help="`tune` to look at, `hold-out` to report (its single cases are not shown), or `all`.")
    ] = "tune",
    show: Annotated[bool, typer.Option("--show", help="Print the cases that were masked wrongly.")] = False,
) -> None:
    """What of visitors' words is masked before it is logged: recall and precision, per kind and language. Needs no
    system.

    Example: pagewire bench masking --part hold-out
    """
    from bench import masking as bench

    if part not in ("tune", "hold-out", "all"):
        raise typer.BadParameter("must be tune, hold-out or all", param_hint="--part")
    bench.main(part, show)  # type: ignore[arg-type]


@app.command()
def evaluate(
    data: Data,
    lang: Annotated[str, typer.Option(help="Language of pages and questions.")] = "en",
    cases: Annotated[int, typer.Option(min=2, help="Questions asked, at most.")] = 1_000,
    keep: Annotated[
        Path | None, typer.Option(dir_okay=False, help="Write what came of each case, without times, to compare with.")
    ] = None,
) -> None:
    """`pagewire evaluate` over many cases without a model: time, and CPU of every process for a case; a run that is
    killed and begun again beside one that is not.

    Example: pagewire bench evaluate --data xquad --cases 1000
    """
    from bench import evaluation

    evaluation.main(data, lang, cases, keep)


@app.command("gate-errors")
def gate_errors(
    sizes: Annotated[str, typer.Option(help="Comma-separated numbers of cases.")] = "100,300,1000",
    margin: Annotated[float, typer.Option(min=0.001, max=0.5, help="Loss that is put up with.")] = 0.03,
    draws: Annotated[int, typer.Option(min=1, help="Candidates of each kind.")] = 10_000,
) -> None:
    """How often `pagewire evaluate --against` lets a worse candidate through, or stops one that is as good: simulated.

    Example: pagewire bench gate-errors --sizes 300
    """
    from bench import gate_errors as bench

    bench.main(numbers(sizes), margin, draws)


@app.command("judge-errors")
def judge_errors(
    draws: Annotated[int, typer.Option(min=1, help="Sets of answers of each judge.")] = 2_000,
) -> None:
    """Whether what `pagewire judge-agreement` says of a judge is so: judges of known error, simulated.

    Example: pagewire bench judge-errors --draws 500
    """
    from bench import judge_errors as bench

    bench.main(draws)
