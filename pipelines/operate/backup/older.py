"""Older backups: of the whole ones beside a new one the newest are kept, the others deleted."""

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
    """Of the backups beside one that was made, and it, leave the `keep` newest.

    What is no whole backup stays, and so does one of a site that the new one does not hold. Blocks: who calls does so
    off the loop.

    Returns:
        Those that were deleted, the oldest first.
    """
    sites = BackupFolder(made).manifest.sites
    ended = sorted(
        (backup.manifest.ended_at, path) for path, backup in _backups(made.parent) if backup.manifest.sites <= sites
    )
    older = [path for _, path in ended[: max(0, len(ended) - keep)]]
    for path in older:
        # Cut in the middle, what is left must not be taken for a backup.
        going = path.with_name(f"{path.name}.deleted-{secrets.token_hex(2)}")
        path.rename(going)
        shutil.rmtree(going)
    return older


def _backups(folder: Path) -> Iterator[tuple[Path, BackupFolder]]:
    for path in folder.iterdir():
        if _GOING.search(path.name):
            shutil.rmtree(path)  # that was cut
            continue
        with suppress(NoBackup):
            yield path, BackupFolder(path)
