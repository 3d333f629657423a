"""Fetching the pinned jars: only what is missing, only what is right, and what is said when that fails."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from infra.engine import jars
from infra.engine.errors import Advance, CorruptDownload, DiskFull, EngineProgress, RegistryUnreachable
from infra.engine.jars import Count, Jar, drop_corrupt_jars, fetch, missing_jars, pinned_jars, require_space

CONTENT = b"a jar" * 1000


def jar(name: str = "one") -> Jar:
    return Jar(f"org.example:{name}:1.0", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), "kafka-4.1.0")


class Registry:
    """Serves CONTENT for every coordinate after the given failures; bytes or an exception each."""

    def __init__(self, *failures: bytes | Exception) -> None:
        self._failures = list(failures)
        self.asked: list[str] = []

    def download(self, coordinate: str, repository: Path, count: Count) -> Path:
        self.asked.append(coordinate)
        answer = self._failures.pop(0) if self._failures else CONTENT
        if isinstance(answer, Exception):
            count(7)  # part of it had come
            raise answer
        repository.mkdir(parents=True)
        path = repository / "file.jar"
        path.write_bytes(answer)
        count(len(answer))
        return path


class CountingProgress(EngineProgress):
    """Keeps what was counted."""

    def __init__(self) -> None:
        self.total: int | None = None
        self.done = 0

    @contextmanager
    def task(self, label: str, total: int | None = None) -> Iterator[Advance]:
        self.total = total
        yield self._add

    def _add(self, size: int) -> None:
        self.done += size


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "RETRY_PAUSE", 0.0)


async def test_fetch_brings_the_missing_jars_only(tmp_path: Path) -> None:
    registry, progress = Registry(), CountingProgress()
    await fetch(tmp_path, progress, jars=(jar("one"),), download=registry.download)
    await fetch(tmp_path, progress, jars=(jar("one"), jar("two")), download=registry.download)
    assert registry.asked == ["org.example:one:1.0", "org.example:two:1.0"]
    assert (tmp_path / "kafka-4.1.0" / "two-1.0.jar").read_bytes() == CONTENT
    assert missing_jars(tmp_path, (jar("one"), jar("two"))) == []
    assert os.listdir(tmp_path) == ["kafka-4.1.0"]  # no download folder is left


@pytest.mark.parametrize(
    "failure", [b"not the pinned jar", ConnectionError("reset"), RuntimeError("503"), TimeoutError()]
)
async def test_a_failed_download_is_repeated_and_counted_once(tmp_path: Path, failure: bytes | Exception) -> None:
    progress = CountingProgress()
    await fetch(tmp_path, progress, jars=(jar(),), download=Registry(failure).download)
    assert jar().path(tmp_path).read_bytes() == CONTENT
    assert progress.done == progress.total == len(CONTENT)


async def test_a_download_that_stays_corrupt_is_an_error_and_is_not_kept(tmp_path: Path) -> None:
    registry = Registry(*[b"evil"] * jars.TRIES)
    with pytest.raises(CorruptDownload, match=r"org\.example:one:1\.0"):
        await fetch(tmp_path, EngineProgress(), jars=(jar(),), download=registry.download)
    assert len(registry.asked) == jars.TRIES
    assert missing_jars(tmp_path, (jar(),)) == [jar()]


async def test_an_unreachable_registry_is_named_as_the_cause(tmp_path: Path) -> None:
    registry = Registry(*[ConnectionError("no route")] * jars.TRIES)
    with pytest.raises(RegistryUnreachable, match="PAGEWIRE_KAFKA") as failed:
        await fetch(tmp_path, EngineProgress(), jars=(jar(),), download=registry.download)
    assert isinstance(failed.value.__cause__, ConnectionError)


async def test_a_disk_that_fills_during_the_download_says_so(tmp_path: Path) -> None:
    registry = Registry(OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(DiskFull, match="free disk space"):
        await fetch(tmp_path, EngineProgress(), jars=(jar(),), download=registry.download)


def test_space_is_looked_for_before_the_folder_exists(tmp_path: Path) -> None:
    require_space(tmp_path / "not" / "there" / "yet", 1)
    with pytest.raises(DiskFull, match="PAGEWIRE_HOME"):
        require_space(tmp_path / "not" / "there" / "yet", 2**60)


def test_a_truncated_jar_is_missing_and_a_changed_one_is_dropped(tmp_path: Path) -> None:
    path = jar().path(tmp_path)
    path.parent.mkdir()
    path.write_bytes(CONTENT[:-1])
    assert missing_jars(tmp_path, (jar(),)) == [jar()]
    path.write_bytes(b"x" * len(CONTENT))
    assert missing_jars(tmp_path, (jar(),)) == []
    assert drop_corrupt_jars(tmp_path, (jar(),)) == [jar()]
    assert not path.exists()
    path.write_bytes(CONTENT)
    assert drop_corrupt_jars(tmp_path, (jar(),)) == []
    assert path.exists()


def test_the_manifest_pins_both_servers_by_checksum() -> None:
    pinned = pinned_jars()
    assert {f"org.apache.kafka:kafka_2.13:{jars.KAFKA_VERSION}"} <= {jar.coordinate for jar in pinned}
    assert {f"org.elasticsearch:elasticsearch:{jars.ELASTICSEARCH_VERSION}"} <= {j.coordinate for j in pinned}
    assert all(len(jar.sha256) == 64 and int(jar.sha256, 16) and jar.size > 0 for jar in pinned)
    places = [jar.path(Path("cache")) for jar in pinned]
    assert len(places) == len(set(places))
    # The server has them already; Elasticsearch refuses a module that brings them again.
    module = {jar.file_name for jar in pinned if jar.folder == jars.FOLDERS["transport-netty4"]}
    assert not module & {jar.file_name for jar in pinned if jar.folder == jars.FOLDERS["elasticsearch"]}
