"""Which backups are deleted when newer ones are there."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from pipelines.operate.backup import folder as older
from pipelines.operate.backup.folder import MANIFEST, delete_older
from pipelines.operate.backup.manifest import BackupFile, Manifest
from tests.making import NOON


def backup(folder: Path, name: str, day: int, *sites: str) -> Path:
    path = folder / name
    path.mkdir()
    at = NOON + timedelta(days=day)
    held = dict.fromkeys(sites or ("town",), 1)
    part = BackupFile(name="changes", file="changes.ndjson.gz", records=1, bytes=1, sha256="0" * 64, sites=held)
    manifest = Manifest(pagewire="1.2.3", began_at=at, ended_at=at, parts=(part,))
    (path / MANIFEST).write_text(manifest.model_dump_json())
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_newest_stay_whatever_they_are_called(tmp_path: Path) -> None:
    made = [backup(tmp_path, name, day) for name, day in (("z", 1), ("a", 3), ("m", 2), ("b", 0))]
    assert delete_older(made[1], 5) == []
    assert delete_older(made[1], 2) == [made[3], made[0]]
    assert names(tmp_path) == ["a", "m"]
    assert delete_older(made[1], 2) == []
    assert delete_older(made[1], 9) == []
    assert names(tmp_path) == ["a", "m"]


def test_what_holds_a_site_that_the_new_one_does_not_stays(tmp_path: Path) -> None:
    backup(tmp_path, "all", 0, "town", "lake")
    backup(tmp_path, "lake", 1, "lake")
    town = backup(tmp_path, "town", 2, "town")
    assert delete_older(town, 1) == []
    every = backup(tmp_path, "all-again", 3, "town", "lake")
    assert [path.name for path in delete_older(every, 1)] == ["all", "lake", "town"]


def test_what_is_no_whole_backup_stays(tmp_path: Path) -> None:
    for day in range(3):
        backup(tmp_path, f"day-{day}", day)
    (tmp_path / "monday.unfinished-3f2a").mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos.deleted-by-me").mkdir()
    delete_older(tmp_path / "day-2", 1)
    assert names(tmp_path) == ["day-2", "monday.unfinished-3f2a", "notes.txt", "photos", "photos.deleted-by-me"]


def test_one_that_was_half_deleted_is_no_backup_and_goes_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in range(2):
        backup(tmp_path, f"day-{day}", day)

    def cut(path: Path) -> None:
        raise OSError("the disk is gone")

    with monkeypatch.context() as broken:
        broken.setattr(older.shutil, "rmtree", cut)
        with pytest.raises(OSError, match="disk"):
            delete_older(tmp_path / "day-1", 1)
    assert [name.split(".")[0] for name in names(tmp_path)] == ["day-0", "day-1"]
    assert delete_older(tmp_path / "day-1", 1) == []
    assert names(tmp_path) == ["day-1"]
