"""The command `pagewire`: parses and prints; the work stands in the packages it calls."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from cli import (
    audit,
    audit_log,
    backup,
    bench,
    chat,
    check,
    connectors,
    content,
    coverage,
    datasets,
    demo,
    engine,
    evaluate,
    evaluating,
    evaluations,
    examples,
    experiment,
    gaps,
    generations,
    judge_agreement,
    keys,
    labels,
    letters,
    privacy,
    prompts,
    question_log,
    questions,
    rebuild,
    status,
    topics,
    up,
    work,
)

app = typer.Typer(
    name="pagewire",
    help="Keeps a website searchable and answers its visitors' questions from its pages, streamed and cited.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="Exit codes: 0 fine, 1 the thing asked for is not so, 2 wrong use, 3 a needed service is not there.",
)

app.command("up")(up.up)
app.command("demo")(demo.demo)
app.add_typer(engine.app, name="engine")
app.command("worker")(work.worker)
app.command("gateway")(work.gateway)
app.command("topics")(topics.topics)
app.command("import")(content.import_pages)
app.command("reconcile")(connectors.reconcile_site)
app.command("watch")(connectors.watch)
app.command("pages")(content.pages)
app.command("delete")(content.delete)
app.command("receipt")(content.receipt)
app.command("search")(questions.search)
app.command("ask")(questions.ask)
app.command("check")(check.check)
app.command("evaluate")(evaluate.evaluate_site)
app.command("judge-agreement")(judge_agreement.judge_agreement)
app.command("questions")(question_log.questions)
app.command("gaps")(gaps.gaps)
app.command("coverage")(coverage.coverage)
app.command("status")(status.status)
app.command("audit")(audit.audit)
app.command("audit-log")(audit_log.audit_log)
app.command("rebuild")(rebuild.rebuild)
app.command("rebuilds")(generations.rebuilds)
app.command("promote")(generations.promote)
app.command("rollback")(generations.rollback)
app.command("discard")(generations.discard)
app.command("backup")(backup.backup)
app.command("restore")(backup.restore)
app.add_typer(evaluating.app, name="eval")
app.add_typer(datasets.app, name="datasets")
app.add_typer(experiment.app, name="experiment")
app.add_typer(evaluations.app, name="evaluations")
app.add_typer(labels.app, name="labels")
app.add_typer(letters.app, name="dlq")
app.add_typer(examples.app, name="examples")
app.add_typer(prompts.app, name="prompts")
app.add_typer(keys.app, name="keys")
app.add_typer(chat.app, name="chat")
app.add_typer(privacy.app, name="privacy")
app.add_typer(bench.app, name="bench")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pagewire {version('pagewire')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    # No docstring: it would take the place of the help above.
    ...


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
