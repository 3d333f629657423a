"""The command `pagewire`: parses and prints; the work stands in the packages it calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand

from cli.retired import GroupWithRetired

# Name -> module and its function or group, and how its help begins, in the order in which the help shows them: to load
# all the modules for it takes seconds.
COMMANDS = {
    "help": ("cli.main:help_", "All commands, or those of a group."),
    "up": ("cli.up:up", "Start everything in the foreground; Ctrl-C stops all of it cleanly."),
    "demo": ("cli.demo:demo", "Start everything, import the sample site, ask one question, serve until Ctrl-C."),
    "engine": (
        "cli.engine:app",
        "The local engine: real Kafka and real Elasticsearch on loopback, without Docker or an installed JDK.",
    ),
    "worker": ("cli.work:worker", "Run stages in this process."),
    "gateway": ("cli.work:gateway", "Run the HTTP edge."),
    "topics": (
        "cli.topics:topics",
        "Create or check the topics, and show them; or give them the copies or the partitions that they lack.",
    ),
    "import": ("cli.content:import_pages", "Import pages."),
    "reconcile": (
        "cli.connectors:reconcile_site",
        "Compare what a CMS lists with the change log, and send what is missing, newer or gone.",
    ),
    "watch": (
        "cli.connectors:watch",
        "Follow a folder: what is saved, renamed or deleted there is so in the search, seconds later.",
    ),
    "pages": ("cli.content:pages", "The pages that visitors can find, by their ids."),
    "delete": ("cli.content:delete", "Delete pages, and wait until no search finds them any more."),
    "receipt": ("cli.content:receipt", "Show the state of a page's newest change."),
    "read": ("cli.read:read", "Show what would be indexed of a page or a file."),
    "search": ("cli.questions:search", "Show the hits for a query."),
    "ask": ("cli.questions:ask", "Stream an answer to the terminal; Ctrl-C stops it."),
    "mcp": ("cli.mcp:mcp", "Speak MCP over standard input and output, for an assistant that starts this command."),
    "eval": (
        "cli.evaluating:app",
        "Whether the answers are right: ask a dataset, compare runs, try settings.",
    ),
    "questions": (
        "cli.question_log:questions",
        "What visitors asked, the newest first, after a line that counts all that fit.",
    ),
    "status": ("cli.status:status", "Lag, rate, freshness and dead letters."),
    "audit-log": (
        "cli.operators:audit_log",
        "Who changed what, when and with what outcome: keys, dead letters, examples, rebuilds, repairs, erasures.",
    ),
    "index": ("cli.rebuild:app", "The indexes of a site: build one anew, make it live, compare it."),
    "backup": (
        "cli.backup:backup",
        "Write what cannot be made again into a folder, while saves and questions go on.",
    ),
    "restore": ("cli.backup:restore", "Put a backup back."),
    "dlq": (
        "cli.letters:app",
        "Dead letters: messages that no try could work on, what they say, and putting them right.",
    ),
    "corrections": (
        "cli.corrections:app",
        "Put answers right: the page that is right, the answer itself, what a word means, what is not answered.",
    ),
    "prompts": (
        "cli.prompts:app",
        "Prompts, settings, replies, contact and glossary of a site, changed while it runs, with a history.",
    ),
    "doctor": ("cli.status:doctor_app", "What is missing on this machine, and the command that mends it."),
    "keys": ("cli.operators:keys_app", "Keys for programs and people, made and revoked without a restart."),
    "chat": ("cli.operators:chat_app", "The kill switch: whether a site's visitors are answered."),
}

# Short names of `index`, not in the help.
SHORT = {
    "audit": "cli.audit:audit",
    "discard": "cli.generations:discard",
    "promote": "cli.generations:promote",
    "rebuild": "cli.rebuild:rebuild",
    "rollback": "cli.generations:rollback",
}

# The groups of `pagewire help`; of each the first two commands are in `pagewire --help`.
GROUPS = {
    "Start": ("up", "demo", "engine", "worker", "gateway", "topics"),
    "Pages": ("import", "index", "reconcile", "watch", "pages", "delete", "receipt", "read"),
    "Visitors": ("ask", "questions", "search", "chat", "mcp"),
    "Answers": ("eval", "corrections", "prompts"),
    "Upkeep": ("status", "keys", "doctor", "dlq", "audit-log", "backup", "restore"),
}
EVERYDAY = {group: names[:2] for group, names in GROUPS.items()}


class OnDemand(Mapping[str, Any]):
    """Commands by name, each imported when it is asked for: `pagewire --version` needs no Elasticsearch."""

    def __getitem__(self, name: str) -> Any:
        if name == "bench" and find_spec("bench"):  # not in the help: only a checkout has it
            found = import_module("bench.__main__").app()
        else:
            module, _, attribute = (SHORT.get(name) or COMMANDS[name][0]).partition(":")
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


class Root(GroupWithRetired):
    """The group of all commands."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = cast("dict[str, Any]", OnDemand())  # which Typer only reads

    def invoke(self, ctx: Any) -> Any:
        """Run the command that is asked for; of all of them, what Pagewire can explain is printed as one line."""
        from cli.output import explained  # not for `pagewire --version`

        with explained():
            return super().invoke(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The commands of every day."""
        self.show(ctx, EVERYDAY)

    def show(self, ctx: Any, groups: Mapping[str, Sequence[str]]) -> None:
        """Print the help with these commands alone, by their first sentences."""
        shown = copy(self)
        shown.commands = {
            name: TyperCommand(name, help=COMMANDS[name][1], rich_help_panel=group)
            for group, names in groups.items()
            for name in names
        }
        super(Root, shown).format_help(ctx, ctx.make_formatter())


def help_(
    ctx: typer.Context,
    group: Annotated[str, typer.Argument(help="start, pages, visitors, answers or upkeep; default: all.")] = "",
) -> None:
    """All commands, or those of a group.

    Example: pagewire help upkeep
    """
    found = {name: commands for name, commands in GROUPS.items() if group in ("", name.lower())}
    if not found:
        raise typer.BadParameter(f"{group!r}: {', '.join(GROUPS).lower()}", param_hint="group")
    root = ctx.find_root()
    cast("Root", root.command).show(root, found)


app = typer.Typer(
    name="pagewire",
    cls=Root,
    help="Keeps a website searchable and answers its visitors' questions from its pages, streamed and cited.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="All commands: `pagewire help`, or `pagewire help` and a group: start, pages, visitors, answers, upkeep.\n\n"
    "Exit codes: 0 fine, 1 the thing asked for is not so, 2 wrong use, 3 a needed service is not there.",
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
