"""Backup and restore over a log and stores that are plain to see: what is kept, what wins, what a cut leaves."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ingest.accept import newer
from pipelines.operate.backup import backup as backup_module
from pipelines.operate.backup.backup import About, LogChanged, Stock, back_up
from pipelines.operate.backup.folder import (
    BackupDamaged,
    BackupFolder,
    BackupStopped,
    BackupThere,
    NoBackup,
    PartWriter,
)
from pipelines.operate.backup.manifest import CHANGES, BackupProgress, record_line, record_of
from pipelines.operate.backup.newest import Newest, change_of
from pipelines.operate.backup.restore import OtherSites, Restored, wanted
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import Headers, Record
from schemas.page import PageChange
from tests.backups import NAMES, Index, Scan, Town
from tests.index_diffs import changed
from tests.making import NOON


def lines(path: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.open(path / f"{name}.ndjson.gz")]


def names(path: Path) -> list[str]:
    return [found.name for found in path.iterdir()]


def document(id: str, site: str = "town", **more: Any) -> dict[str, Mapping[str, Any]]:
    return {id: {"site": site, **more}}


async def test_the_newest_change_of_each_page_is_kept_as_it_stands_and_the_others_are_not(tmp_path: Path) -> None:
    town = Town()
    headers: Headers = (("pagewire-trace", b"abc"), ("twice", None), ("twice", b"\xff\x00"))
    town.save(changed("ferry", 3), changed("pool", 5))
    town.save(changed("ferry", 4), headers=headers)
    town.save(changed("ferry", 2), changed("pool", 5, deleted=True), changed("pool", 5))  # late ones
    made = await town.back_up(tmp_path / "monday")
    kept = [record_of(json.dumps(line).encode(), "cms.changes") for line in lines(tmp_path / "monday", CHANGES)]
    assert [(one.key, one.value, one.headers, one.timestamp_ms) for one in kept] == [
        (town.log[at].key, town.log[at].value, town.log[at].headers, town.log[at].timestamp_ms) for at in (2, 4)
    ]
    part = made.part(CHANGES)
    assert part is not None
    assert (part.records, part.sites, part.until, made.token_mark) == (2, {"town": 2}, {0: 6, 1: 0}, "mark")


async def test_of_two_equal_revisions_the_later_one_is_kept(tmp_path: Path) -> None:
    town = Town()
    town.save(changed("ferry", 3), changed("ferry", 3).model_copy(update={"source": "later"}))
    await town.back_up(tmp_path / "b")
    [kept] = lines(tmp_path / "b", CHANGES)
    assert json.loads(kept["value"])["source"] == "later"


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.booleans(), st.integers(0, 1)), max_size=12))
def test_the_record_that_counts_is_the_one_that_the_stages_let_win(
    history: list[tuple[str, int, bool, int]],
) -> None:
    town = Town()
    winners: dict[str, PageChange] = {}
    for page, revision, deleted, partition in history:
        change = changed(page, revision, deleted=deleted).model_copy(update={"source": f"save {len(town.log)}"})
        town.save(change, partition=partition)
        if page not in winners or not newer(winners[page], change):
            winners[page] = change
    newest = Newest(["town"])
    newest.add(town.log)
    counting = [change_of(record) for record in newest.counting(town.log)]
    assert sorted(one.source for one in counting) == sorted(one.source for one in winners.values())
    assert all(one in winners.values() for one in counting)
    assert newest.unknown(list(winners.values())) == [False] * len(winners)
    newest.close()


async def test_all_is_back_in_an_empty_system_in_the_bulk_lane(tmp_path: Path) -> None:
    town, fresh = Town(), Town()
    town.save(changed("ferry", 3), changed("pool", 5, deleted=True), headers=(("pagewire-trace", b"t"),))
    town.save(changed("mill", 7), partition=1)
    for name in NAMES:
        town.indexes[name].documents |= document(f"{name}-1", text="Grüße\u2028") | document(f"{name}-2")
    await town.back_up(tmp_path / "b")
    done = await fresh.restore(tmp_path / "b")
    assert fresh.newest == town.newest
    assert {name: one.documents for name, one in fresh.indexes.items()} == {
        name: one.documents for name, one in town.indexes.items()
    }
    assert fresh.log[0].headers == (("pagewire-trace", b"t"), ("pagewire-lane", b"bulk"))
    # Until they can be found, their receipts say that they are on their way.
    assert {event.state for event in fresh.told} == {"queued"}
    assert {event.change.page_key: (event.change.revision, event.change.op) for event in fresh.told} == town.newest
    assert done == {CHANGES: Restored(restored=3), **dict.fromkeys(NAMES, Restored(restored=2))}
    # In this order: a chat that was switched off answers nothing from pages that come back.
    assert (next(iter(done)), next(reversed(done))) == ("switches", CHANGES)


async def test_a_restore_may_be_repeated_and_never_puts_the_old_over_the_new(tmp_path: Path) -> None:
    town = Town()
    town.save(changed("ferry", 3), changed("pool", 5), changed("mill", 7), changed("pier", 1, deleted=True))
    town.indexes["examples"].documents |= document("a", said="then")
    await town.back_up(tmp_path / "b")
    before = town.newest
    done = await town.restore(tmp_path / "b")
    assert (done[CHANGES], done["examples"], len(town.log)) == (Restored(there=4), Restored(there=1), 4)
    assert town.newest == before

    later = Town()
    later.save(changed("ferry", 4), changed("pool", 5, deleted=True), changed("mill", 6), changed("pier", 1))
    later.indexes["examples"].documents |= document("a", said="since")
    done = await later.restore(tmp_path / "b")
    assert done[CHANGES] == Restored(restored=2, there=2)  # mill, pier
    assert {key.rpartition(":")[2]: state for key, state in later.newest.items()} == {
        "ferry": (4, "upsert"),
        "pool": (5, "delete"),
        "mill": (7, "upsert"),
        "pier": (1, "delete"),
    }
    assert later.indexes["examples"].documents == document("a", said="since")


async def test_one_site_is_kept_or_restored_alone(tmp_path: Path) -> None:
    town = Town()
    town.save(changed("ferry", 3), changed("ferry", 4).model_copy(update={"site": "lake"}))
    town.indexes["questions"].documents |= document("a") | document("b", "lake")
    made = await town.back_up(tmp_path / "lake", sites=["lake"])
    assert [(part.name, part.sites) for part in made.parts] == [
        (CHANGES, {"lake": 1}),
        ("conversations", {}),
        ("questions", {"lake": 1}),
        ("examples", {}),
        ("texts", {}),
        ("switches", {}),
    ]
    await town.back_up(tmp_path / "all")
    fresh = Town()
    done = await fresh.restore(tmp_path / "all", sites=["lake"])
    assert list(fresh.newest) == ["lake:en:ferry"]
    assert list(fresh.indexes["questions"].documents) == ["b"]
    assert (done[CHANGES], done["questions"]) == (Restored(restored=1), Restored(restored=1))


async def test_sites_that_are_not_configured_are_refused_unless_others_are_named(tmp_path: Path) -> None:
    town = Town()
    town.save(changed("ferry", 3), changed("ferry", 4).model_copy(update={"site": "lake"}))
    await town.back_up(tmp_path / "b")
    kept = BackupFolder(tmp_path / "b")
    assert wanted(kept, ["town", "lake", "hill"], []) == {"town", "lake"}
    assert wanted(kept, ["town"], ["town"]) == {"town"}
    with pytest.raises(OtherSites, match=r"site lake, which pagewire\.yaml does not name"):
        wanted(kept, ["town"], [])
    with pytest.raises(OtherSites, match="nothing of site hill; it has lake, town"):
        wanted(kept, ["town", "hill"], ["hill"])


async def test_what_is_no_change_is_left_out_and_told(tmp_path: Path) -> None:
    town = Town()
    town.save(changed("ferry", 3))
    town.put(b"town:en:ferry", b"{", (), 0)
    town.put(b"town:en:pool", changed("mill", 9).encode(), (), 1)
    town.put(None, None, (), 1)
    made = await town.back_up(tmp_path / "b")
    assert [part.unreadable for part in made.parts] == [3, 0, 0, 0, 0, 0]
    assert made.notes == ("3 records of the change log are no changes (dead letters): left out",)
    assert [line["key"] for line in lines(tmp_path / "b", CHANGES)] == ["town:en:ferry"]


async def test_outcomes_on_their_way_are_waited_for_and_told_when_they_do_not_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup_module, "POLL", 0.001)
    town = Town(unlogged_=[3, 1])
    assert (await town.back_up(tmp_path / "a")).notes == ()
    monkeypatch.setattr(backup_module, "PATIENCE", 0.0)
    [note] = (await Town(unlogged_=[3, 3]).back_up(tmp_path / "b")).notes
    assert note.startswith("up to 3 outcomes of questions")


async def test_a_backup_that_is_cut_leaves_nothing_that_could_be_taken_for_one(tmp_path: Path) -> None:
    town = Town()
    town.save(changed("ferry", 3))
    town.indexes["questions"] = Index(document("a"), Retryable("Elasticsearch is away"))
    with pytest.raises(Retryable, match="is away"):
        await town.back_up(tmp_path / "b")
    assert names(tmp_path) == []


async def test_nothing_is_written_over_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    with pytest.raises(BackupThere, match="name a new folder"):
        await Town().back_up(tmp_path / "b")
    (tmp_path / "file").touch()
    with pytest.raises(NoBackup, match="no folder can be made"):
        await Town().back_up(tmp_path / "file" / "b")


async def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pipelines.operate.backup.folder.PartWriter.write", full)
    town = Town()
    town.save(changed("ferry", 3))
    with pytest.raises(BackupStopped, match="No space left on device"):
        await town.back_up(tmp_path / "b")
    assert names(tmp_path) == []


async def test_a_winner_that_was_compacted_away_meanwhile_makes_no_backup(tmp_path: Path) -> None:
    town = Town()
    town.save(changed("ferry", 3), changed("ferry", 2))

    @asynccontextmanager
    async def compacted() -> AsyncIterator[Scan]:
        scan = Scan(town.log)
        ends, seen = scan.ends, []

        async def read(**more: Any) -> AsyncGenerator[list[Record], None]:
            seen.append(1)
            yield town.log if len(seen) == 1 else town.log[1:]

        scan.read = read  # type: ignore[method-assign]
        scan.ends = ends  # type: ignore[method-assign]
        yield scan

    stock = Stock(compacted, town.indexes, town.unlogged)
    with pytest.raises(LogChanged, match="1 changes were compacted away"):
        await back_up(tmp_path / "b", stock, About("1"), lambda: NOON)


async def test_files_are_readable_by_their_owner_alone_and_checked_by_sha256(tmp_path: Path) -> None:
    town = Town()
    town.save(*(changed(f"page{n}", n) for n in range(20)))
    made = await town.back_up(tmp_path / "b")
    assert (tmp_path / "b").stat().st_mode & 0o077 == 0
    assert {file.stat().st_mode & 0o077 for file in (tmp_path / "b").iterdir()} == {0}
    seen: list[tuple[int, int]] = []
    BackupFolder(tmp_path / "b").check(lambda done, total: seen.append((done, total)))
    total = sum(part.bytes for part in made.parts)
    assert seen[-1] == (total, total)
    again = await town.back_up(tmp_path / "again")
    assert [part.sha256 for part in again.parts] == [part.sha256 for part in made.parts]


@pytest.mark.parametrize("harm", ["changed", "cut", "gone"])
async def test_of_a_damaged_backup_nothing_is_restored(tmp_path: Path, harm: str) -> None:
    town, fresh = Town(), Town()
    town.save(*(changed(f"page{n}", n) for n in range(20)))
    town.indexes["examples"].documents |= document("a")
    await town.back_up(tmp_path / "b")
    file = tmp_path / "b" / "changes.ndjson.gz"
    whole = file.read_bytes()
    if harm == "gone":
        file.unlink()
    else:
        file.write_bytes(whole[:-9] if harm == "cut" else whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
    with pytest.raises(BackupDamaged, match=r"changes\.ndjson\.gz"):
        await fresh.restore(tmp_path / "b")
    assert (fresh.log, fresh.indexes["examples"].documents) == ([], {})


def test_a_disk_that_keeps_other_bytes_than_were_written_is_found_out(tmp_path: Path) -> None:
    part = PartWriter(tmp_path, CHANGES)
    part.write([("town", b"{}\n")])
    part.close()
    path = tmp_path / part.part().file
    kept = path.read_bytes()
    path.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))
    assert part.part().sha256 == sha256(kept).hexdigest() != sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        (None, "a backup that was cut has none"),
        ("{", "is no JSON"),
        ('{"format": 9, "pagewire": "9.0"}', "written by Pagewire 9.0 in format 9"),
        ('{"format": 1}', "no manifest of a backup"),
    ],
)
def test_what_is_no_backup_is_said_to_be_none(tmp_path: Path, manifest: str | None, said: str) -> None:
    if manifest is not None:
        (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(NoBackup, match=said):
        BackupFolder(tmp_path)


async def test_a_manifest_of_a_later_version_with_more_fields_is_read(tmp_path: Path) -> None:
    await Town().back_up(tmp_path / "b")
    file = tmp_path / "b" / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"more": 1}))
    assert BackupFolder(tmp_path / "b").manifest.pagewire == "1.2.3"


async def test_progress_ends_where_it_is_whole(tmp_path: Path) -> None:
    town = Town()
    town.save(*(changed(f"page{n}", n) for n in range(5)))
    told: dict[str, BackupProgress] = {}
    await town.back_up(tmp_path / "b", report=lambda one: told.update({one.step: one}))
    assert list(told) == ["reading changes", CHANGES, *NAMES]
    assert (told[CHANGES].done, told[CHANGES].total) == (5, 5)
    told.clear()
    await Town().restore(tmp_path / "b", report=lambda one: told.update({one.step: one}))
    assert set(told) == {"checking", "switches", "texts", "examples", "questions", "conversations", CHANGES}
    assert all(one.done == one.total for one in told.values())


@given(
    st.none() | st.binary(),
    st.none() | st.binary() | st.text().map(str.encode),
    st.lists(st.tuples(st.text(alphabet=st.characters(exclude_categories=["Cs"])), st.none() | st.binary())),
    st.integers(0, 2**53),
)
def test_a_record_comes_back_byte_for_byte(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]], at: int
) -> None:
    record = Record("t", 1, 2, key, value, tuple(headers), at)
    line = record_line(record)
    assert line.count(b"\n") == 1
    back = record_of(line, "t")
    assert (back.key, back.value, back.headers, back.timestamp_ms) == (key, value, tuple(headers), at)
