"""Deletes older backups beside a new one, and keeps the newest."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pipelines.operate.backup.folder import BackupFolder, NoBackup

_GOING = re.compile(r"\.deleted-[0-9a-f]{4}$")


def delete_older(made: Path, keep: int) -> list[Path]:
    """Keep the `keep` newest backups in the folder of the new one, and delete the others.

    Incomplete backups stay, and those with a site that the new one does not have. It blocks: call it off the loop.

    Returns:
        The deleted ones, oldest first.
    """
    sites = BackupFolder(made).manifest.sites
    ended = sorted(
        (backup.manifest.ended_at, path) for path, backup in _backups(made.parent) if backup.manifest.sites <= sites
    )
    older = [path for _, path in ended[: max(0, len(ended) - keep)]]
    for path in older:
        # Renamed first: after a crash, the rest must not look like a backup.
        going = path.with_name(f"{path.name}.deleted-{secrets.token_hex(2)}")
        path.rename(going)
        shutil.rmtree(going)
    return older


def _backups(folder: Path) -> Iterator[tuple[Path, BackupFolder]]:
    for path in folder.iterdir():
        if _GOING.search(path.name):
            shutil.rmtree(path)  # of an earlier crash
            continue
        with suppress(NoBackup):
            yield path, BackupFolder(path)
