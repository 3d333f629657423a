"""`pagewire dlq`: dead letters, for those who run it."""

from __future__ import annotations

import asyncio
import json as json_format
import os
import shlex
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from cli.bars import Bars
from cli.letter_print import print_detail, print_list, printable
from cli.output import NOT_SO, Json, complain, explained, out, print_json
from cli.wired import connected, logged, noted, point
from pipelines.operate.dead_letters.edit import BadValue
from pipelines.operate.dead_letters.letters import DEFAULT_LIMIT, Letters
from pipelines.runtime.errors import PagewireError, Retryable, WrongUse
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
    with explained():
        wanted = _filter(stage, topic, site, page, code, since)
        found = _with_letters(lambda letters: letters.list(wanted, limit, handled=all))
    if json:
        print_json(found)
        return
    print_list(found)


@app.command("show")
def show(id: Id, json: Json = False) -> None:
    """Show a dead letter: headers, value, and what its change would do to the page. Exit code 1: unknown.

    Example: pagewire dlq show cms.changes/0/17
    """
    with explained():
        found = _with_letters(lambda letters: letters.show(id))
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
    with explained():
        if file is not None:
            value = file.read_bytes()
            done = _with_letters(lambda letters: letters.redrive(id, value))
        else:
            done = _edited(id, _editor())
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
    with explained():
        wanted = _filter(stage, topic, site, page, code, since)
        _check_use(ids, all, wanted)
        if ids:
            _each(ids, lambda letters, id: letters.redrive(id), after=_failed_again)
        else:
            _all("redrive", wanted, yes, lambda letters: letters.redrive_all(wanted))


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
    with explained():
        wanted = _filter(stage, topic, site, page, code, since)
        _check_use(ids, all, wanted)
        if ids:
            _each(ids, lambda letters, id: letters.drop(id))
        else:
            _all("drop", wanted, yes, lambda letters: letters.drop_all(wanted))


class NotedLetters:
    """Letters, of which every change is noted in the audit log."""

    def __init__(self, letters: Letters, clients: Clients) -> None:
        self._clients = clients
        self._letters = letters
        self.list = letters.list
        self.show = letters.show

    async def redrive(self, id: str, value: bytes | None = None) -> DeadLetterSummary:
        async with noted(self._clients, "letters.redrive" if value is None else "letters.edit", target=id):
            return await self._letters.redrive(id, value)

    async def drop(self, id: str) -> DeadLetterSummary:
        async with noted(self._clients, "letters.drop", target=id):
            return await self._letters.drop(id)

    async def redrive_all(self, wanted: DeadLetterFilter) -> AsyncGenerator[DeadLetterCounts, None]:
        async with (
            noted(self._clients, "letters.redrive", wanted.site, wanted.said()),
            aclosing(self._letters.redrive_all(wanted)) as progress,
        ):
            async for counts in progress:
                yield counts

    async def drop_all(self, wanted: DeadLetterFilter) -> AsyncGenerator[DeadLetterCounts, None]:
        async with (
            noted(self._clients, "letters.drop", wanted.site, wanted.said()),
            aclosing(self._letters.drop_all(wanted)) as progress,
        ):
            async for counts in progress:
                yield counts


def _with_letters(ask: Callable[[NotedLetters], Awaitable[Result]]) -> Result:
    async def run() -> Result:
        settings = logged()
        async with connected(settings) as clients:
            return await ask(NotedLetters(await clients.letters(), clients))

    return asyncio.run(run())


def _filter(
    stage: str | None, topic: str | None, site: str | None, page: str | None, code: str | None, since: str | None
) -> DeadLetterFilter:
    return DeadLetterFilter(stage=stage, topic=topic, site=site, page=page, code=code, since=point("--since", since))


def _check_use(ids: Sequence[str] | None, all: bool, wanted: DeadLetterFilter) -> None:
    if all == bool(ids):
        raise WrongUse("name the letters by their ids, or give --all")
    if ids and wanted != DeadLetterFilter():
        raise WrongUse("options choose among --all; with ids there is nothing to choose")


async def _failed_again(letters: NotedLetters, redriven: Sequence[DeadLetterSummary], since: datetime) -> int:
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


async def _nothing_more(letters: NotedLetters, done: Sequence[DeadLetterSummary], since: datetime) -> int:
    return 0


def _each(
    ids: Sequence[str],
    handle: Callable[[NotedLetters, str], Awaitable[DeadLetterSummary]],
    after: Callable[[NotedLetters, Sequence[DeadLetterSummary], datetime], Awaitable[int]] = _nothing_more,
) -> None:
    """One after the other; a failure is printed and does not stop the others.

    Args:
        after: looks at what was done since a time; how many of them failed all the same.
    """

    async def run(letters: NotedLetters) -> int:
        failed, handled, since = 0, list[DeadLetterSummary](), datetime.now(UTC)
        for id in ids:
            try:
                done = await handle(letters, id)
            except Retryable:
                raise
            except PagewireError as error:
                complain(error)
                failed += 1
            else:
                out.print(f"{done.id} {done.state}")
                handled.append(done)
        return failed + await after(letters, handled, since)

    if _with_letters(run):
        raise typer.Exit(NOT_SO)


def _all(
    verb: str,
    wanted: DeadLetterFilter,
    yes: bool,
    handle: Callable[[NotedLetters], AsyncGenerator[DeadLetterCounts, None]],
) -> None:
    if not (yes or _somebody_there()):
        raise WrongUse("--all: nobody is there to be asked; give --yes")
    total = _with_letters(lambda letters: letters.list(wanted, 0)).total
    if not total:
        complain("no open dead letter fits")
        raise typer.Exit(NOT_SO)
    if not yes:
        typer.confirm(f"{verb} {total:,} dead letters?", abort=True, err=True)

    async def run(letters: NotedLetters) -> DeadLetterCounts:
        counts = DeadLetterCounts()
        with Bars() as bars:
            async with aclosing(handle(letters)) as progress:
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
    given = _editable(_with_letters(lambda letters: letters.show(id, full=True)))
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
                return _with_letters(lambda letters: letters.redrive(id, value))  # noqa: B023 - called here
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
