"""`pagewire backup` and `pagewire restore`: what cannot be made again, out of a running system and back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.output import Bars, Json, err, out, print_json, table
from cli.wired import connected, logged
from pipelines.operate.backup.folder import BackupFolder, BackupStopped, delete_older
from pipelines.operate.backup.manifest import CHANGES, BackupProgress, Manifest, PartName
from pipelines.operate.off_loop import off_loop

if TYPE_CHECKING:
    from pipelines.operate.backup.restore import Restored
    from wiring.settings import Settings

LEFT_OUT = "not in it: `admin.key` and `token.secret` of PAGEWIRE_HOME, pagewire.yaml, the environment: keep them, too"


def backup(
    folder: Annotated[Path, typer.Argument(help="New folder for it; nothing may be there.")],
    site: Annotated[list[str] | None, typer.Option(help="Only this site; may be repeated. Default: all.")] = None,
    keep: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Then delete all but the N newest backups in the same place, of the same sites or fewer.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Write what cannot be made again into a folder, while saves and questions go on: the newest state of every page,
    conversations, the question log, examples, changed texts. The folder has its name when the backup is whole, not
    before.

    Example: pagewire backup backups/monday

    Example: pagewire backup backups/town-monday --site town

    Example: pagewire backup "backups/$(date +%F)" --keep 14
    """
    settings = logged()
    for name in site or ():
        settings.site(name)
    made = asyncio.run(_backup(settings, folder, site or None))
    older = [] if keep is None else delete_older(folder.resolve(), keep)
    if json:
        print_json(made)
    else:
        _print_manifest(folder, made)
        for one in older:
            out.print(f"deleted: {one.name}", markup=False, soft_wrap=True)
        out.print(LEFT_OUT, markup=False, soft_wrap=True)


def restore(
    folder: Annotated[Path, typer.Argument(help="The folder that `pagewire backup` has made.")],
    check: Annotated[
        bool, typer.Option("--check", help="Only compare the files with their checksums; needs no services.")
    ] = False,
    site: Annotated[list[str] | None, typer.Option(help="Only this site; may be repeated. Default: all.")] = None,
    json: Json = False,
) -> None:
    """Put a backup back. Nothing that is newer is overwritten, so it may be repeated, and may go into a system that is
    at work. Pages become searchable as the workers get to them. Exit code 1 when a file of the backup is damaged; then
    nothing was written.

    Example: pagewire restore backups/monday --check

    Example: pagewire restore backups/monday
    """
    kept = BackupFolder(folder)
    if check:
        asyncio.run(_check(kept))
        print_json(kept.manifest) if json else _print_manifest(folder, kept.manifest)
        return
    settings = logged()
    from pipelines.operate.backup.restore import wanted

    sites = wanted(kept, settings.sites, site or ())
    done, notes = asyncio.run(_restore(settings, kept, sites))
    if json:
        print_json({"parts": {name: one.model_dump() for name, one in done.items()}, "notes": notes})
    else:
        _print_restored(done, notes)


async def _backup(settings: Settings, folder: Path, sites: list[str] | None) -> Manifest:
    from wiring import backup as backups

    async with connected(settings) as clients:
        with Bars() as bars:
            return await backups.backup(clients, folder, sites, _report(bars))


async def _check(kept: BackupFolder) -> None:
    from pipelines.operate.backup.restore import check

    async with off_loop(BackupStopped) as aside:
        with Bars() as bars:
            await check(kept, aside, _report(bars))


async def _restore(
    settings: Settings, kept: BackupFolder, sites: frozenset[str]
) -> tuple[dict[PartName, Restored], list[str]]:
    from wiring import backup as backups

    async with connected(settings) as clients:
        with Bars() as bars:
            done = await backups.restore(clients, kept, sites, _report(bars))
        return done, await backups.differences(clients, kept.manifest, sites)


def _report(bars: Bars) -> Callable[[BackupProgress], None]:
    return lambda progress: bars.step(progress.step, progress.done, progress.total)


def _print_manifest(folder: Path, made: Manifest) -> None:
    lines = [(part.file, f"{part.records:,}", f"{part.bytes:,}", len(part.sites)) for part in made.parts]
    out.print(table(("file", "records#", "bytes#", "sites#"), lines))
    said = f"{folder}: as of {made.began_at:%Y-%m-%d %H:%M:%S} UTC, by Pagewire {made.pagewire}"
    out.print(said, markup=False, soft_wrap=True)
    for note in made.notes:
        err.print(note, markup=False, soft_wrap=True)


def _print_restored(done: dict[PartName, Restored], notes: list[str]) -> None:
    lines = [(name, f"{one.restored:,}", f"{one.there:,}", f"{one.forgotten:,}") for name, one in done.items()]
    out.print(table(("part", "restored#", "there, as new or newer#", "deleted by visitors#"), lines))
    for note in notes:
        err.print(note, markup=False, soft_wrap=True)
    if CHANGES in done and done[CHANGES].restored:
        out.print(
            "the pages become searchable as `pagewire worker ingest` gets to them: `pagewire status` shows how far it "
            "is, `pagewire index audit SITE` that all are there",
            markup=False,
            soft_wrap=True,
        )
