"""The folder of a backup: written under a draft name and renamed when it is complete; checked before it is read.

    monday.unfinished-3f2a/ ── changes.ndjson.gz, ..., manifest.json last ──▶ monday/

All functions block: call them off the event loop.
"""

from __future__ import annotations

import gzip
import os
import re
import secrets
import shutil
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import IO, Self

import orjson
from pydantic import ValidationError

from pipelines.operate.backup.manifest import FORMAT, BackupFile, Manifest, PartName
from pipelines.runtime.errors import Permanent, WrongUse
from pipelines.runtime.secret import sync_folder
from schemas.base import problems

MANIFEST = "manifest.json"
LEVEL = 6  # of gzip
BLOCK = 1024 * 1024  # bytes read at once


class NoBackup(WrongUse):
    """There is no backup at this path."""

    code = "no-backup"


class BackupThere(WrongUse):
    """The path of the new backup exists already."""

    code = "backup-there"


class BackupStopped(Permanent):
    """The folder, or the temporary database beside it, cannot be written: a full disk, a missing right."""

    code = "backup-stopped"

    def __init__(self, err: Exception) -> None:
        super().__init__(f"the backup cannot be written: {err}")


class BackupDamaged(Permanent):
    """A file of the backup is damaged: no part of the backup is restored."""

    code = "backup-damaged"


class _Sum:
    """A file with the checksum of the bytes that were to be written: a disk that keeps others is found out."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._sum = sha256()
        self.bytes = 0

    def write(self, data: bytes) -> int:
        self._sum.update(data)
        self.bytes += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()

    @property
    def sha256(self) -> str:
        return self._sum.hexdigest()


def _new_file(path: Path) -> int:
    """Open a new file for writing that its owner alone may read: it holds visitors' words."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


class PartWriter:
    """One file that is being written."""

    def __init__(self, folder: Path, name: PartName) -> None:
        self._name = name
        self._path = folder / f"{name}.ndjson.gz"
        self._file = os.fdopen(_new_file(self._path), "wb")
        self._sum = _Sum(self._file)
        # No name and no time in the gzip header, so the same records give the same file.
        self._gzip = gzip.GzipFile("", "wb", LEVEL, self._sum, mtime=0)
        self._sites: Counter[str] = Counter()

    def write(self, lines: list[tuple[str, bytes]]) -> None:
        """Write records, each with its site."""
        for site, line in lines:
            self._gzip.write(line)
            self._sites[site] += 1

    def close(self) -> None:
        self._gzip.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def release(self) -> None:
        """Close the file, complete or not."""
        self._file.close()

    def part(self) -> BackupFile:
        """Its entry in the manifest, after `close`."""
        return BackupFile(
            name=self._name,
            file=self._path.name,
            records=self._sites.total(),
            bytes=self._sum.bytes,
            sha256=self._sum.sha256,
            sites=dict(sorted(self._sites.items())),
        )


class NewFolder:
    """`with NewFolder(path) as folder: ...; folder.finish(manifest)`. Without `finish` it is deleted."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.draft = path.with_name(f"{path.name}.unfinished-{secrets.token_hex(2)}")

    def __enter__(self) -> Self:
        """Raises: BackupThere. NoBackup: no folder can be made there."""
        if self._path.exists():
            raise BackupThere(f"{self._path} is there already: name a new folder for each backup")
        try:
            self.draft.mkdir(mode=0o700, parents=True)  # visitors' words are private
        except OSError as err:
            raise NoBackup(f"no folder can be made beside {self._path}: {err.strerror}") from err
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.draft, ignore_errors=True)

    def part(self, name: PartName) -> PartWriter:
        return PartWriter(self.draft, name)

    def finish(self, manifest: Manifest) -> None:
        """Write the manifest and give the folder its name. Raises: BackupThere."""
        with os.fdopen(_new_file(self.draft / MANIFEST), "w", encoding="utf-8") as file:
            file.write(manifest.model_dump_json(indent=2) + "\n")
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self.draft)
        if self._path.exists():  # POSIX would replace an empty folder
            raise BackupThere(f"{self._path} has come into being meanwhile")
        self.draft.rename(self._path)
        sync_folder(self._path.parent)


class BackupFolder:
    """An existing backup."""

    def __init__(self, path: Path) -> None:
        """Raises: NoBackup."""
        self._path = path
        self.manifest = _manifest(path)

    def check(self, report: Callable[[int, int], None] = lambda done, total: None) -> None:
        """Read every file and compare it with the manifest.

        Args:
            report: receives bytes read, and their total.

        Raises: BackupDamaged: names the file.
        """
        done, total = 0, sum(part.bytes for part in self.manifest.parts)
        for part in self.manifest.parts:
            read = sha256()
            size = 0
            try:
                with (self._path / part.file).open("rb") as file:
                    while block := file.read(BLOCK):
                        read.update(block)
                        size += len(block)
                        report(done + size, total)
            except OSError as err:
                raise BackupDamaged(f"{self._path / part.file}: {err.strerror}") from err
            if (size, read.hexdigest()) != (part.bytes, part.sha256):
                raise BackupDamaged(
                    f"{self._path / part.file}: {size:,} bytes with sha256 {read.hexdigest()[:12]}..., "
                    f"the manifest says {part.bytes:,} with {part.sha256[:12]}...: take another copy of this backup"
                )
            done += size

    def lines(self, part: BackupFile) -> Iterator[bytes]:
        """Raises: BackupDamaged."""
        count = 0
        try:
            with gzip.open(self._path / part.file) as file:
                for line in file:
                    count += 1
                    yield line
        except (OSError, EOFError, zlib.error) as err:
            raise BackupDamaged(f"{self._path / part.file}: {err}") from err
        if count != part.records:
            raise BackupDamaged(f"{self._path / part.file}: {count:,} records, the manifest says {part.records:,}")


def _manifest(path: Path) -> Manifest:
    file = path / MANIFEST
    try:
        read = orjson.loads(file.read_bytes())
    except OSError as err:
        hint = "; the folder of a backup that was cut has none" if path.is_dir() else ""
        raise NoBackup(f"no backup in {path}: {MANIFEST} cannot be read: {err.strerror}{hint}") from err
    except orjson.JSONDecodeError as err:
        raise NoBackup(f"{file} is no JSON: {err}") from err
    if isinstance(read, dict) and isinstance(read.get("format"), int) and read["format"] > FORMAT:
        raise NoBackup(
            f"{path} was written by Pagewire {read.get('pagewire')} in format {read['format']}, "
            f"this version reads {FORMAT}: update this installation"
        )
    try:
        return Manifest.stored(read)
    except ValidationError as err:
        raise NoBackup(f"{file} is no manifest of a backup: {problems(err)}") from err


_GOING = re.compile(r"\.deleted-[0-9a-f]{4}$")


def delete_older(made: Path, keep: int) -> list[Path]:
    """Keep the `keep` newest backups in the folder of the new one, and delete the others.

    Incomplete backups stay, and those with a site that the new one does not have. It blocks: call it off the loop.

    Returns: The deleted ones, oldest first.
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
