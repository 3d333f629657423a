"""The jars of Kafka and Elasticsearch: pinned in `jars.json`, downloaded once, shared by all engines of a user.

Resolving 95 coordinates through their POMs takes most of a cold start, and its result may change. So
`python -m infra.engine.jars` resolves once, when we change a version, and writes their checksums. Review the diff:
every user's machine will run these jars. An engine only downloads the jars of `jars.json`, and checks their sha256.
jgo knows the registries (and a mirror that the user has set); this module only has Maven coordinates.

    jars.json ─▶ fetch() ─▶ CACHE/incoming-*/ ─ sha256 ─▶ CACHE/kafka-4.1.0/*.jar
                                                         CACHE/elasticsearch-9.2.0/{lib,modules/...}/*.jar
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import jgo

from infra.engine.errors import CorruptDownload, DiskFull, EngineError, EngineProgress, RegistryUnreachable

KAFKA_VERSION = "4.1.0"
ELASTICSEARCH_VERSION = "9.2.0"
MANIFEST = Path(__file__).with_name("jars.json")

DOWNLOADS_AT_ONCE = 8
TRIES = 3  # per jar, since a registry may fail temporarily
RETRY_PAUSE = 0.5  # seconds, doubled per try; not pipelines.runtime.retry: the engine works without the pipelines
HTTP_TIMEOUT = 30  # seconds without a byte
STALE_INCOMING = 3600.0  # seconds after which a download folder counts as left by a killed process
SPARE_BYTES = 64 * 2**20  # free space to leave after the download

Count = Callable[[int], None]  # called with numbers of received bytes
Download = Callable[[str, Path, Count], Path]  # coordinate, an empty folder for it, counter -> the file

# The folder of each set of jars below the cache, in the layout of Elasticsearch's home.
KAFKA_JARS = f"kafka-{KAFKA_VERSION}"
ELASTICSEARCH_HOME = f"elasticsearch-{ELASTICSEARCH_VERSION}"
FOLDERS = {
    "kafka": KAFKA_JARS,
    "elasticsearch": f"{ELASTICSEARCH_HOME}/lib",
    "transport-netty4": f"{ELASTICSEARCH_HOME}/modules/transport-netty4",
}


@dataclass(frozen=True)
class Jar:
    """One pinned jar: Maven coordinate `group:artifact:version`, hex sha256, size in bytes, its folder."""

    coordinate: str
    sha256: str
    size: int
    folder: str

    @property
    def file_name(self) -> str:
        """`artifact-version.jar`, as in a Maven repository."""
        _, artifact, version = self.coordinate.split(":")
        return f"{artifact}-{version}.jar"

    def path(self, cache: Path) -> Path:
        """The jar's path below `cache`."""
        return cache / self.folder / self.file_name


def pinned_jars() -> tuple[Jar, ...]:
    """All jars of `jars.json`."""
    manifest = json.loads(MANIFEST.read_text(encoding="utf-8"))
    return tuple(
        Jar(entry["coordinate"], entry["sha256"], entry["size"], FOLDERS[name])
        for name, entries in manifest.items()
        for entry in entries
    )


def missing_jars(cache: Path, jars: tuple[Jar, ...]) -> list[Jar]:
    """The jars missing in `cache`, by their sizes: hashing 86 MB would cost every start half a second."""
    return [jar for jar in jars if not _has_size(jar.path(cache), jar.size)]


def drop_corrupt_jars(cache: Path, jars: tuple[Jar, ...]) -> list[Jar]:
    """Delete jars with a wrong sha256, so that the next start downloads them again. Returns them."""
    corrupt = [jar for jar in jars if jar.path(cache).exists() and sha256_of(jar.path(cache)) != jar.sha256]
    for jar in corrupt:
        jar.path(cache).unlink()
    return corrupt


async def fetch(
    cache: Path, progress: EngineProgress, *, jars: tuple[Jar, ...] | None = None, download: Download | None = None
) -> None:
    """Download missing `jars` (default: all pinned ones) to `cache`.

    Raises: RegistryUnreachable, CorruptDownload, DiskFull.
    """
    missing = missing_jars(cache, pinned_jars() if jars is None else jars)
    if not missing:
        return
    total = sum(jar.size for jar in missing)
    require_space(cache, total + SPARE_BYTES)
    cancelled = threading.Event()
    label = f"fetching Kafka {KAFKA_VERSION} and Elasticsearch {ELASTICSEARCH_VERSION}"
    try:
        with progress.task(label, total) as advance:
            await asyncio.to_thread(_fetch_all, cache, missing, download or from_registry, advance, cancelled)
    except OSError as err:
        if err.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(cache, total + SPARE_BYTES) from err
        raise
    finally:
        cancelled.set()  # the threads check it at their next piece, so Ctrl-C does not wait for the downloads


def require_space(folder: Path, needed: int) -> None:
    """Raises: DiskFull: fewer than `needed` bytes are free on the disk of `folder`, which need not exist yet."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if shutil.disk_usage(existing).free < needed:
        raise DiskFull(folder, needed)


def sha256_of(path: Path) -> str:
    """Hex sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _has_size(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except OSError:
        return False


def _fetch_all(cache: Path, jars: list[Jar], download: Download, advance: Count, cancelled: threading.Event) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    _sweep_incoming(cache)
    with tempfile.TemporaryDirectory(prefix="incoming-", dir=cache, ignore_cleanup_errors=True) as incoming:
        pool = ThreadPoolExecutor(DOWNLOADS_AT_ONCE, thread_name_prefix="jars")
        try:
            # Largest first, so that the last one to finish is small.
            by_size = sorted(jars, key=lambda jar: jar.size, reverse=True)
            fetches = [
                pool.submit(_fetch_one, jar, cache, Path(incoming), download, _Counter(advance, cancelled))
                for jar in by_size
            ]
            for fetched in as_completed(fetches):
                fetched.result()
        finally:
            cancelled.set()
            pool.shutdown(cancel_futures=True)


def _sweep_incoming(cache: Path) -> None:
    for folder in cache.glob("incoming-*"):
        with suppress(FileNotFoundError):  # its owner has just deleted it
            if time.time() - folder.stat().st_mtime > STALE_INCOMING:
                shutil.rmtree(folder, ignore_errors=True)


def _fetch_one(jar: Jar, cache: Path, incoming: Path, download: Download, counter: _Counter) -> None:
    """Download, check, and move into place. Retries a failed or corrupt download."""
    failure: EngineError = RegistryUnreachable(jar.coordinate)
    for attempt in range(TRIES):
        if counter.cancelled.wait(RETRY_PAUSE * 2**attempt if attempt else 0.0):
            return
        try:
            path = download(jar.coordinate, incoming / jar.folder / str(attempt), counter.count)
        except _Cancelled:
            return
        except (RuntimeError, ConnectionError, TimeoutError) as err:
            failure = RegistryUnreachable(jar.coordinate)
            failure.__cause__ = err
        else:
            if sha256_of(path) == jar.sha256:
                jar.path(cache).parent.mkdir(parents=True, exist_ok=True)
                os.replace(path, jar.path(cache))
                return
            failure = CorruptDownload(jar.coordinate)
        counter.take_back()
    raise failure


def from_registry(coordinate: str, repository: Path, count: Count) -> Path:
    """Download one jar by jgo to `repository`, an empty folder. Raises: RuntimeError, ConnectionError."""
    # Imported here, since a warm start does not need it.
    import requests
    from jgo.config import GlobalSettings
    from jgo.constants import MAVEN_CENTRAL_URL
    from jgo.maven import MavenContext, PythonResolver

    @contextmanager
    def counted(_name: str, _size: int) -> Iterator[Count]:
        yield count

    context = MavenContext(
        resolver=PythonResolver(progress_callback=counted),
        repo_cache=repository,
        remote_repos={"central": MAVEN_CENTRAL_URL, **GlobalSettings.load().repositories},
        timeout=HTTP_TIMEOUT,
    )
    try:
        return Path(context.create_dependency(coordinate).artifact.resolve())
    except requests.RequestException as err:
        raise ConnectionError(str(err)) from err


class _Cancelled(Exception):
    """Ends a download in its thread after a cancelled start."""


class _Counter:
    """Adds one jar's bytes to the common bar, and subtracts them before a retry."""

    def __init__(self, advance: Count, cancelled: threading.Event) -> None:
        self.cancelled = cancelled
        self._advance = advance
        self._done = 0

    def count(self, size: int) -> None:
        """Add bytes."""
        if self.cancelled.is_set():
            raise _Cancelled
        self._done += size
        self._advance(size)

    def take_back(self) -> None:
        """Subtract the bytes of this try."""
        self._advance(-self._done)
        self._done = 0


ENDPOINTS = {
    "kafka": f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}+org.slf4j:slf4j-simple:1.7.36",
    "elasticsearch": f"org.elasticsearch:elasticsearch:{ELASTICSEARCH_VERSION}",
    "transport-netty4": f"org.elasticsearch.plugin:transport-netty4:{ELASTICSEARCH_VERSION}",
}


def main() -> None:
    """Resolve the jars, hash them, and write the manifest."""
    manifest: dict[str, list[dict[str, str | int]]] = {}
    for name, endpoint in ENDPOINTS.items():
        entries: dict[str, dict[str, str | int]] = {}
        for artifact in jgo.resolve(endpoint):
            path = artifact.resolve()
            coordinate = f"{artifact.groupId}:{artifact.artifactId}:{artifact.version}"
            entries[coordinate] = {
                "coordinate": coordinate,
                "sha256": sha256_of(path),
                "size": path.stat().st_size,
            }
        manifest[name] = [entries[coordinate] for coordinate in sorted(entries)]
    # A module's class loader includes the server's jars. A second copy of them would split their packages.
    server = {entry["coordinate"] for entry in manifest["elasticsearch"]}
    manifest["transport-netty4"] = [
        entry for entry in manifest["transport-netty4"] if entry["coordinate"] not in server
    ]
    rows = {name: ",\n".join(f"    {json.dumps(entry)}" for entry in entries) for name, entries in manifest.items()}
    body = ",\n".join(f'  "{name}": [\n{text}\n  ]' for name, text in rows.items())
    MANIFEST.write_text(f"{{\n{body}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
