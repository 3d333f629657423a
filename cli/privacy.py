"""`pagewire privacy`: what a site keeps of what its visitors say, changed while it runs, with a history."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer

from cli.output import explained, out, print_json, table
from cli.user import noted, user
from cli.wired import connected, logged
from pipelines.query.live.privacy_changes import PrivacyChanges, WouldDelete
from pipelines.runtime.errors import WrongUse
from schemas.audit_log import Action
from schemas.privacy import MAX_DAYS, PrivacyChange, PrivacyOrder, PrivacyRules, PrivacyState, QuestionLogging
from schemas.text_version import MAX_NOTE

app = typer.Typer(
    no_args_is_help=True, help="What a site keeps of its visitors, and for how long; changed while it runs."
)

Value = TypeVar("Value")
SiteName = Annotated[str, typer.Argument(help="Site, as in pagewire.yaml.")]
Note = Annotated[str, typer.Option(help="Why, for the history.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask, also where this deletes something.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def show(site: SiteName, json: Json = False) -> None:
    """What is kept, what pagewire.yaml says, and the versions.

    Example: pagewire privacy show town
    """
    with explained():
        found = _run(site, None, lambda changes: changes.state(site))
    _print(found, json, history=True)


@app.command("set")
def set_(
    site: SiteName,
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
    given = {"log_questions": log_questions, "conversations": conversations, "outcomes": outcomes, "note": _fit(note)}
    if (log_questions, conversations, outcomes) == (None, None, None):
        raise typer.BadParameter("say what is to be kept: --log-questions, --conversations, --outcomes")
    _change(
        site,
        "privacy.put",
        json,
        yes,
        lambda changes, over, sure: changes.put(
            site, PrivacyOrder.model_validate(given | {"over": over, "sure": sure}), user()
        ),
    )


@app.command()
def undo(site: SiteName, note: Note = "", yes: Yes = False, json: Json = False) -> None:
    """Keep again what was kept before the last change; again, what was kept before that. Exit code 1 when there is
    nothing before.

    Example: pagewire privacy undo town
    """
    _change(
        site,
        "privacy.rollback",
        json,
        yes,
        lambda changes, over, sure: changes.roll_back(
            site, PrivacyChange(note=_fit(note), over=over, sure=sure), user()
        ),
    )


@app.command()
def reset(site: SiteName, note: Note = "", yes: Yes = False, json: Json = False) -> None:
    """Keep again what pagewire.yaml says. Exit code 1 when it counts already.

    Example: pagewire privacy reset town
    """
    _change(
        site,
        "privacy.remove",
        json,
        yes,
        lambda changes, over, sure: changes.remove(site, PrivacyChange(note=_fit(note), over=over, sure=sure), user()),
    )


def _change(
    site: str,
    action: Action,
    json: bool,
    yes: bool,
    work: Callable[[PrivacyChanges, int, bool], Awaitable[PrivacyState]],
) -> None:
    """Over what is in force when it begins, and, where something would be deleted, when that was said yes to."""

    seen: list[int] = []

    async def first(changes: PrivacyChanges) -> PrivacyState:
        seen.append((await changes.state(site)).live)
        return await work(changes, seen[0], yes)

    with explained():
        try:
            found = _run(site, action, first)
        except WouldDelete as err:
            if not somebody_there():
                raise
            typer.confirm(f"{err}. Go on?", abort=True, err=True)
            found = _run(site, action, lambda changes: work(changes, seen[0], True))
    _print(found, json)


def somebody_there() -> bool:
    return sys.stdin.isatty()


def _run(site: str, action: Action | None, work: Callable[[PrivacyChanges], Awaitable[Value]]) -> Value:
    async def run() -> Value:
        known = logged()
        known.site(site)
        async with connected(known) as clients:
            changes = await clients.privacy_changes()
            if action is None:
                return await work(changes)
            async with noted(clients, action, site):
                return await work(changes)

    return asyncio.run(run())


def _fit(note: str) -> str:
    with explained():
        if len(note) > MAX_NOTE:
            raise WrongUse(f"--note: {MAX_NOTE} characters at most")
    return note


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
                f"{one.at.astimezone():%Y-%m-%d %H:%M}",
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
