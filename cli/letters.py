"""`pagewire dlq`: dead letters, for those who run it."""

from __future__ import annotations

import asyncio
import json as json_format
import os
import shlex
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from cli.letter_print import print_detail, print_list, printable
from cli.output import NOT_SO, Bars, Json, complain, out, print_json
from cli.wired import connected, logged, noted, point
from pipelines.operate.dead_letters.letters import DEFAULT_LIMIT, Letters
from pipelines.operate.dead_letters.view import BadValue
from pipelines.runtime.errors import PagewireError, Retryable, WrongUse
from schemas.audit_log import Action
from schemas.letters import DeadLetterCounts, DeadLetterDetail, DeadLetterFilter, DeadLetterSummary

if TYPE_CHECKING:
    from wiring.clients import Clients

app = typer.Typer(
    help="Dead letters: messages that no try could work on, what they say, and putting them right.",
    no_args_is_help=True,
)

LOOKS, LOOK_EVERY = 3, 1.0  # at the letters after a redrive; seconds

Id = Annotated[str, typer.Argument(help="As `dlq list` shows it, for example cms.changes/0/17.", show_default=False)]
Ids = Annotated[list[str] | None, typer.Argument(help="As `dlq list` shows them.", show_default=False)]
Stage = Annotated[str | None, typer.Option(help="Only those that this stage gave up on.")]
FromTopic = Annotated[str | None, typer.Option("--topic", help="Only those of this topic, for example cms.changes.")]
Site = Annotated[str | None, typer.Option(help="Only pages of this site.")]
Page = Annotated[str | None, typer.Option(help="Only this page id, in any language.")]
Code = Annotated[str | None, typer.Option(help="Only this error code; `unreadable`: what is no dead letter.")]
Since = Annotated[str | None, typer.Option(help="Only failures since then: 30m, 2h, 3d, or an ISO 8601 time.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]

Verb = Literal["redrive", "drop"]
ACTIONS: dict[Verb, Action] = {"redrive": "letters.redrive", "drop": "letters.drop"}

Result = TypeVar("Result")


@app.command("list")
def list_letters(
    stage: Stage = None,
    topic: FromTopic = None,
    site: Site = None,
    page: Page = None,
    code: Code = None,
    since: Since = None,
    limit: Annotated[int, typer.Option(min=0, help="Shown at most; the newest.")] = DEFAULT_LIMIT,
    all: Annotated[bool, typer.Option("--all", help="Also those that were redriven, edited or dropped.")] = False,
    json: Json = False,
) -> None:
    """List the open dead letters, newest first.

    Example: pagewire dlq list --site town --since 2h
    """
    wanted = _filter(stage, topic, site, page, code, since)
    found = _with_letters(lambda letters, _: letters.list(wanted, limit, handled=all))
    if json:
        print_json(found)
        return
    print_list(found)


@app.command("show")
def show(id: Id, json: Json = False) -> None:
    """Show a dead letter: headers, value, and what its change would do to the page. Exit code 1: unknown.

    Example: pagewire dlq show cms.changes/0/17
    """
    found = _with_letters(lambda letters, _: letters.show(id))
    if json:
        print_json(found)
    else:
        print_detail(found)


@app.command("edit")
def edit(
    id: Id,
    file: Annotated[
        Path | None,
        typer.Option(help="The corrected message as JSON; default: opens it in $EDITOR.", exists=True, dir_okay=False),
    ] = None,
) -> None:
    """Redrive a dead letter with a corrected message, about the same page.

    Example: pagewire dlq edit cms.changes/0/17 --file corrected.json
    """
    done = _edited(id, _editor()) if file is None else _replaced(id, file.read_bytes())
    out.print(f"{done.id} {done.state}")


@app.command("redrive")
def redrive(
    ids: Ids = None,
    all: Annotated[bool, typer.Option("--all", help="All open ones that fit the options.")] = False,
    stage: Stage = None,
    topic: FromTopic = None,
    site: Site = None,
    page: Page = None,
    code: Code = None,
    since: Since = None,
    yes: Yes = False,
) -> None:
    """Send dead letters again to where they failed.

    Exit code 1 when none fits, one cannot be sent, or one that was named fails again at once.

    Example: pagewire dlq redrive --all --stage index --yes
    """
    _handle("redrive", ids, all, _filter(stage, topic, site, page, code, since), yes)


@app.command("drop")
def drop(
    ids: Ids = None,
    all: Annotated[bool, typer.Option("--all", help="All open ones that fit the options.")] = False,
    stage: Stage = None,
    topic: FromTopic = None,
    site: Site = None,
    page: Page = None,
    code: Code = None,
    since: Since = None,
    yes: Yes = False,
) -> None:
    """Settle dead letters without working on them. Exit code 1 when one cannot be, or none fits.

    Example: pagewire dlq drop cms.changes/0/17
    """
    _handle("drop", ids, all, _filter(stage, topic, site, page, code, since), yes)


def _handle(verb: Verb, ids: Sequence[str] | None, all: bool, wanted: DeadLetterFilter, yes: bool) -> None:
    if all == bool(ids):
        raise WrongUse("name the letters by their ids, or give --all")
    if ids and wanted != DeadLetterFilter():
        raise WrongUse("options choose among --all; with ids there is nothing to choose")
    if ids:
        _each(verb, ids)
    else:
        _all(verb, wanted, yes)


def _with_letters(ask: Callable[[Letters, Clients], Awaitable[Result]]) -> Result:
    async def run() -> Result:
        async with connected(logged()) as clients:
            return await ask(await clients.letters(), clients)

    return asyncio.run(run())


def _replaced(id: str, value: bytes) -> DeadLetterSummary:
    """Redrive a letter with this message. Raises: BadValue."""

    async def run(letters: Letters, clients: Clients) -> DeadLetterSummary:
        async with noted(clients, "letters.edit", target=id):
            return await letters.redrive(id, value)

    return _with_letters(run)


def _filter(
    stage: str | None, topic: str | None, site: str | None, page: str | None, code: str | None, since: str | None
) -> DeadLetterFilter:
    return DeadLetterFilter(stage=stage, topic=topic, site=site, page=page, code=code, since=point("--since", since))


async def _failed_again(letters: Letters, redriven: Sequence[DeadLetterSummary], since: datetime) -> int:
    """How many of the letters fail again within a moment, since "redriven" alone would sound like the end."""
    waiting = {(letter.topic, letter.key) for letter in redriven}
    failed = 0
    for _ in range(LOOKS):
        if not waiting:
            break
        await asyncio.sleep(LOOK_EVERY)
        for new in (await letters.list(DeadLetterFilter(since=since), DEFAULT_LIMIT)).letters:
            if new.redrives and (new.topic, new.key) in waiting:
                waiting.remove((new.topic, new.key))
                complain(f"{new.key}: failed again as {new.id}, {new.code}: {printable(new.message)}")
                failed += 1
    return failed


def _each(verb: Verb, ids: Sequence[str]) -> None:
    """One after the other; a failure is printed and does not stop the others."""

    async def run(letters: Letters, clients: Clients) -> int:
        failed, handled, since = 0, list[DeadLetterSummary](), datetime.now(UTC)
        for id in ids:
            try:
                async with noted(clients, ACTIONS[verb], target=id):
                    done = await (letters.redrive(id) if verb == "redrive" else letters.drop(id))
            except Retryable:
                raise
            except PagewireError as error:
                complain(error)
                failed += 1
            else:
                out.print(f"{done.id} {done.state}")
                handled.append(done)
        return failed + (await _failed_again(letters, handled, since) if verb == "redrive" else 0)

    if _with_letters(run):
        raise typer.Exit(NOT_SO)


def _all(verb: Verb, wanted: DeadLetterFilter, yes: bool) -> None:
    if not (yes or _somebody_there()):
        raise WrongUse("--all: nobody is there to be asked; give --yes")
    total = _with_letters(lambda letters, _: letters.list(wanted, 0)).total
    if not total:
        complain("no open dead letter fits")
        raise typer.Exit(NOT_SO)
    if not yes:
        typer.confirm(f"{verb} {total:,} dead letters?", abort=True, err=True)

    async def run(letters: Letters, clients: Clients) -> DeadLetterCounts:
        counts = DeadLetterCounts()
        handling = letters.redrive_all(wanted) if verb == "redrive" else letters.drop_all(wanted)
        async with noted(clients, ACTIONS[verb], wanted.site, wanted.said()), aclosing(handling) as progress:
            with Bars() as bars:
                async for counts in progress:
                    bars.step(verb, counts.handled + counts.refused, total)
        return counts

    counts = _with_letters(run)
    out.print(f"{counts.handled:,} handled" + (f", {counts.refused:,} can only be dropped" if counts.refused else ""))
    if counts.refused:
        raise typer.Exit(NOT_SO)


def _somebody_there() -> bool:
    return sys.stdin.isatty()


def _editor() -> list[str]:
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ("vi" if _somebody_there() else "")
    if not command:
        raise WrongUse("no $EDITOR and no terminal: give the corrected message by --file")
    return shlex.split(command)


def _edited(id: str, editor: Sequence[str]) -> DeadLetterSummary:
    """Edit until it is a message, or the operator gives up."""
    given = _editable(_with_letters(lambda letters, _: letters.show(id, full=True)))
    with TemporaryDirectory(prefix="pagewire-dlq-") as folder:  # readable by its owner alone
        path = Path(folder, "message.json")
        path.write_text(given, encoding="utf-8")
        while True:
            try:
                ended = subprocess.run([*editor, path], check=False)  # noqa: S603 - the operator's own editor
            except OSError as error:
                raise WrongUse(f"editor {editor[0]!r}: {error}") from None
            value = path.read_bytes()
            if ended.returncode or value == given.encode():
                complain("not edited: the letter stays as it is")
                raise typer.Exit(NOT_SO)
            try:
                return _replaced(id, value)
            except BadValue as error:
                complain(error)
                typer.confirm("edit again?", default=True, abort=True, err=True)


def _editable(found: DeadLetterDetail) -> str:
    value = found.value
    if value is None:
        try:
            value = json_format.loads(found.text or "")
        except ValueError:
            return found.text or ""  # what it was, to be put right by hand
    return json_format.dumps(value, ensure_ascii=False, indent=2) + "\n"
