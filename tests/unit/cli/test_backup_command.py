"""`pagewire backup` and `restore` as people and scripts see them; the servers are not there."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from pipelines.operate.backup.backup import About, Stock, back_up
from pipelines.operate.backup.folder import BackupFolder
from pipelines.operate.backup.manifest import BackupProgress, IndexFacts, Manifest, PartName
from pipelines.operate.backup.restore import Restored
from pipelines.runtime.indexes import IndexInfo
from tests.backups import Town
from tests.index_diffs import changed
from tests.making import NOON
from wiring import backup as backups
from wiring.clients import Clients
from wiring.settings import Settings

ABOUT = About("1.2.3", {"town": IndexFacts(embedder="lite", chunker="content-512-20")}, "another")


@pytest.fixture
def town(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Town:
    """The system that the commands find, with one page."""
    town = Town()
    town.save(changed("ferry", 3))

    async def backup(
        _: Clients, path: Path, sites: Collection[str] | None, report: Callable[[BackupProgress], None]
    ) -> Manifest:
        stock = Stock(town.open_log, town.indexes, town.unlogged)
        return await back_up(path, stock, ABOUT, lambda: NOON, sites=sites, report=report)

    async def restore(
        _: Clients, folder: BackupFolder, sites: Collection[str], report: Callable[[BackupProgress], None]
    ) -> dict[PartName, Restored]:
        return await town.restore(folder._path, sites, report=report)

    async def differences(*_: Any) -> list[str]:
        return ["the secret is another one"]

    config = tmp_path / "pagewire.yaml"
    config.write_text("sites: {town: {languages: [en]}}")
    for name, value in {"CONFIG": str(config), "KAFKA": "kafka:9092", "ELASTICSEARCH": "http://elastic:9200"}.items():
        monkeypatch.setenv(f"PAGEWIRE_{name}", value)
    for work in (backup, restore, differences):
        monkeypatch.setattr(backups, work.__name__, work)
    return town


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments], catch_exceptions=False)


def test_a_backup_says_what_is_in_it_and_what_must_be_kept_beside_it(town: Town, tmp_path: Path) -> None:
    said = run("backup", tmp_path / "b")
    assert said.exit_code == 0
    assert "changes.ndjson.gz" in said.stdout
    assert "as of 2026-05-04 12:00:00 UTC, by Pagewire 1.2.3" in said.stdout
    assert "token.secret" in said.stdout
    told = json.loads(run("backup", tmp_path / "c", "--json").stdout)
    assert (told["format"], told["parts"][0]["sites"]) == (2, {"town": 1})


def test_a_second_backup_in_the_same_place_and_an_unknown_site_are_wrong_use(town: Town, tmp_path: Path) -> None:
    run("backup", tmp_path / "b")
    again = run("backup", tmp_path / "b")
    assert (again.exit_code, "is there already" in again.stderr) == (2, True)
    assert run("backup", tmp_path / "c", "--site", "lake").exit_code == 2


def test_a_restore_counts_what_it_did_and_says_what_comes_next(town: Town, tmp_path: Path) -> None:
    run("backup", tmp_path / "b")
    again = run("restore", tmp_path / "b", "--json")
    assert json.loads(again.stdout)["parts"]["changes"] == {"restored": 0, "there": 1, "forgotten": 0}
    town.log.clear()
    said = run("restore", tmp_path / "b")
    assert (said.exit_code, len(town.log)) == (0, 1)
    assert "pagewire worker ingest" in said.stdout
    assert "the secret is another one" in said.stderr


def test_a_check_needs_no_servers_and_finds_damage(town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("backup", tmp_path / "b")
    monkeypatch.setenv("PAGEWIRE_CONFIG", str(tmp_path / "gone.yaml"))
    assert run("restore", tmp_path / "b", "--check").exit_code == 0
    assert json.loads(run("restore", tmp_path / "b", "--check", "--json").stdout)["pagewire"] == "1.2.3"
    (tmp_path / "b" / "questions.ndjson.gz").write_bytes(b"")
    damaged = run("restore", tmp_path / "b", "--check")
    assert (damaged.exit_code, "questions.ndjson.gz" in damaged.stderr) == (1, True)
    assert run("restore", tmp_path / "nowhere", "--check").exit_code == 2


@asynccontextmanager
async def clients(settings: Settings, live: IndexInfo | None) -> AsyncIterator[Clients]:
    async def now(site: str) -> IndexInfo | None:
        return live

    yield SimpleNamespace(settings=settings, elastic=SimpleNamespace(indexes=SimpleNamespace(now=now)))  # type: ignore[misc]


async def test_another_secret_and_another_embedder_are_told(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    assert backups.token_mark(settings) is None
    (tmp_path / "token.secret").write_text("secret-of-the-gateway-and-nobody-else\n")
    mark = backups.token_mark(settings)
    assert mark == backups.token_mark(Settings(token_secret="secret-of-the-gateway-and-nobody-else"))
    assert mark is not None
    assert "secret" not in mark
    made = {"pagewire": "1", "began_at": NOON, "ended_at": NOON, "parts": ()}
    same = IndexFacts(embedder=settings.embedder, chunker=settings.chunker.fingerprint)
    kept = Manifest.model_validate(made | {"token_mark": mark, "indexes": {"town": same}})
    async with clients(settings, None) as ours:
        assert await backups.differences(ours, kept, ["town"]) == []
    other = IndexInfo("pagewire-town-000001", "town", "onnx:m", "m", 4, same.chunker)
    (tmp_path / "token.secret").write_text("the-secret-of-quite-another-installation")
    async with clients(settings, other) as ours:
        secret, index = await backups.differences(ours, kept, ["town"])
    assert "come back as strangers" in secret
    assert f"with embedder {settings.embedder}" in index
    assert "onnx:m" in index


def test_of_older_backups_so_many_are_kept(town: Town, tmp_path: Path) -> None:
    for name in ("monday", "tuesday", "wednesday"):
        done = run("backup", str(tmp_path / "backups" / name), "--keep", "2")
        assert done.exit_code == 0, done.output
    assert "deleted: monday" in done.stdout
    assert sorted(path.name for path in (tmp_path / "backups").iterdir()) == ["tuesday", "wednesday"]
    assert run("backup", str(tmp_path / "backups" / "thursday"), "--keep", "0").exit_code == 2
