"""`pagewire privacy`: what a site keeps of what its visitors say, changed while it runs, with a history."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from cli.admin_client import Gateway
from cli.output import Json, Site, explained, out, print_json, table
from pipelines.runtime.errors import PagewireError
from schemas.privacy import MAX_DAYS, PrivacyRules, PrivacyState, QuestionLogging

app = typer.Typer(
    no_args_is_help=True, help="What a site keeps of its visitors, and for how long; changed while it runs."
)

Note = Annotated[str, typer.Option(help="Why, for the history.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask, also where this deletes something.")]


@app.command()
def show(site: Site, json: Json = False) -> None:
    """What is kept, what pagewire.yaml says, and the versions.

    Example: pagewire privacy show town
    """
    with explained():
        found = Gateway().read(PrivacyState, "sites", site, "privacy")
    _print(found, json, history=True)


@app.command("set")
def set_(
    site: Site,
    log_questions: Annotated[
        QuestionLogging | None, typer.Option(help="The question log: on, off, or without visitors' words.")
    ] = None,
    conversations: Annotated[
        int | None, typer.Option(min=1, max=MAX_DAYS, help="Days after its last question that a conversation goes.")
    ] = None,
    outcomes: Annotated[
        int | None, typer.Option(min=1, max=MAX_DAYS, help="Days that the question log keeps a question.")
    ] = None,
    note: Note = "",
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Keep so much from now on, in place of what pagewire.yaml says; what is not given stays as it is. Every gateway
    and worker follows within ten seconds. Fewer days delete what is older, an hour later at the earliest: that is asked
    before.

    Example: pagewire privacy set town --log-questions without-text

    Example: pagewire privacy set town --conversations 30 --outcomes 90 --note "as our notice says" --yes
    """
    if (log_questions, conversations, outcomes) == (None, None, None):
        raise typer.BadParameter("say what is to be kept: --log-questions, --conversations, --outcomes")
    kept = {"log_questions": log_questions, "conversations": conversations, "outcomes": outcomes}
    _change(site, "PUT", (), kept | {"note": note}, yes, json)


@app.command()
def undo(site: Site, note: Note = "", yes: Yes = False, json: Json = False) -> None:
    """Keep again what was kept before the last change; again, what was kept before that. Exit code 1 when there is
    nothing before.

    Example: pagewire privacy undo town
    """
    _change(site, "POST", ("rollback",), {"note": note}, yes, json)


@app.command()
def reset(site: Site, note: Note = "", yes: Yes = False, json: Json = False) -> None:
    """Keep again what pagewire.yaml says. Exit code 1 when it counts already.

    Example: pagewire privacy reset town
    """
    _change(site, "DELETE", (), {"note": note}, yes, json)


def _change(site: str, method: str, path: tuple[str, ...], change: dict[str, Any], yes: bool, json: bool) -> None:
    """Over what is in force when it begins; what deletes something is asked about, unless `yes`."""
    with explained():
        gateway, where = Gateway(), ("sites", site, "privacy")
        change["over"] = gateway.read(PrivacyState, *where).live

        def changed(*, sure: bool) -> PrivacyState:
            given = change | {"sure": sure}
            content = {"query": given} if method == "DELETE" else {"body": given}
            return gateway.send(PrivacyState, method, *where, *path, **content)

        try:
            found = changed(sure=yes)
        except PagewireError as error:
            if error.code != "would-delete" or not somebody_there():
                raise
            typer.confirm(f"{error}. Go on?", abort=True, err=True)
            found = changed(sure=True)
    _print(found, json)


def somebody_there() -> bool:
    return sys.stdin.isatty()


def _print(state: PrivacyState, json: bool, *, history: bool = False) -> None:
    if json:
        print_json(state)
        return
    whose = f"version {state.live}" if state.live else "pagewire.yaml"
    out.print(f"{state.site} ({whose}): {_line(state.rules)}", markup=False, soft_wrap=True)
    if history and state.versions:
        lines = [
            (
                one.version,
                "pagewire.yaml" if one.rules is None else _line(one.rules),
                one.by,
                one.at,
                one.note,
            )
            for one in state.versions
        ]
        out.print()
        out.print(table(("version#", "kept", "by", "at", "note"), lines))


def _line(rules: PrivacyRules) -> str:
    return (
        f"question log {rules.log_questions}, conversations {rules.conversations} days, "
        f"logged questions {rules.outcomes} days"
    )
