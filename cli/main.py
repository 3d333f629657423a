"""The command `pagewire`: parses and prints; the work stands in the packages it calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

# Name -> module and its function or group, in the order in which the help shows them.
COMMANDS = {
    "up": "cli.up:up",
    "demo": "cli.demo:demo",
    "engine": "cli.engine:app",
    "worker": "cli.work:worker",
    "gateway": "cli.work:gateway",
    "topics": "cli.topics:topics",
    "import": "cli.content:import_pages",
    "reconcile": "cli.connectors:reconcile_site",
    "watch": "cli.connectors:watch",
    "pages": "cli.content:pages",
    "delete": "cli.content:delete",
    "receipt": "cli.content:receipt",
    "search": "cli.questions:search",
    "ask": "cli.questions:ask",
    "check": "cli.check:check",
    "eval": "cli.evaluating:app",
    "evaluate": "cli.evaluate:evaluate_site",
    "judge-agreement": "cli.judge_agreement:judge_agreement",
    "questions": "cli.question_log:questions",
    "gaps": "cli.gaps:gaps",
    "coverage": "cli.coverage:coverage",
    "status": "cli.status:status",
    "audit": "cli.audit:audit",
    "audit-log": "cli.audit_log:audit_log",
    "rebuild": "cli.rebuild:rebuild",
    "rebuilds": "cli.generations:rebuilds",
    "promote": "cli.generations:promote",
    "rollback": "cli.generations:rollback",
    "discard": "cli.generations:discard",
    "backup": "cli.backup:backup",
    "restore": "cli.backup:restore",
    "datasets": "cli.datasets:app",
    "experiment": "cli.experiment:app",
    "evaluations": "cli.evaluations:app",
    "labels": "cli.labels:app",
    "dlq": "cli.letters:app",
    "examples": "cli.examples:app",
    "prompts": "cli.prompts:app",
    "keys": "cli.keys:app",
    "chat": "cli.chat:app",
    "privacy": "cli.privacy:app",
    "bench": "cli.bench:app",
}


class OnDemand(Mapping[str, Any]):
    """Commands by name, each imported when it is asked for: `pagewire --version` needs no Elasticsearch."""

    def __getitem__(self, name: str) -> Any:
        module, _, attribute = COMMANDS[name].partition(":")
        found = getattr(import_module(module), attribute)
        around = typer.Typer(rich_markup_mode="rich")
        if isinstance(found, typer.Typer):
            around.add_typer(found, name=name)
        else:
            around.command(name)(found)
        return typer.main.get_group(around).commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Root(TyperGroup):
    """The group of all commands."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = cast("dict[str, Any]", OnDemand())  # which Typer only reads


app = typer.Typer(
    name="pagewire",
    cls=Root,
    help="Keeps a website searchable and answers its visitors' questions from its pages, streamed and cited.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="Exit codes: 0 fine, 1 the thing asked for is not so, 2 wrong use, 3 a needed service is not there.",
)


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
