"""Backup and restore, put together from an edge's clients."""

from __future__ import annotations

import hmac
from collections.abc import Collection
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from adapters.elastic.kept import kept_indexes
from pipelines.operate.backup import restore as restoring
from pipelines.operate.backup.backup import About, Report, Stock, back_up
from pipelines.operate.backup.folder import BackupFolder
from pipelines.operate.backup.manifest import BackupIndex, IndexFacts, Manifest, PartName
from pipelines.operate.backup.restore import Restored, Target
from pipelines.operate.chat_switches import KeptSwitches
from pipelines.runtime.errors import SettingsError
from pipelines.runtime.indexes import IndexUnfit
from pipelines.runtime.secret import read
from pipelines.runtime.stage import StageGroup
from wiring.clients import Clients
from wiring.settings import Settings

LOG = StageGroup("log")


async def backup(clients: Clients, path: Path, sites: Collection[str] | None, report: Report) -> Manifest:
    """Raises: as `pipelines.operate.backup.backup.back_up`."""
    await clients.topics()

    async def unlogged() -> int:
        async with clients.bus.view() as view:
            return (await view.lags([LOG]))[LOG].lag

    stock = Stock(clients.changes, _documents(clients), unlogged)
    indexes = {site: facts for site in clients.settings.sites if (facts := await _facts(clients, site)) is not None}
    about = About(version("pagewire"), indexes, token_mark(clients.settings))
    return await back_up(path, stock, about, await clients.clock(), sites=sites, report=report)


async def restore(
    clients: Clients, folder: BackupFolder, sites: Collection[str], report: Report
) -> dict[PartName, Restored]:
    """Raises: as `pipelines.operate.backup.restore.restore`."""
    target = Target(clients.changes, _documents(clients), await clients.sender())
    return await restoring.restore(folder, target, sites, report)


def _documents(clients: Clients) -> dict[PartName, BackupIndex]:
    """The indexes with data that only Elasticsearch has, by their part of a backup."""
    elastic = clients.elastic
    return {**kept_indexes(elastic.es, elastic.indexes), "switches": KeptSwitches(clients.states())}


async def differences(clients: Clients, manifest: Manifest, sites: Collection[str]) -> list[str]:
    """Differences between this installation and that of the backup, with their consequences."""
    settings = clients.settings
    said = []
    if manifest.token_mark is not None and manifest.token_mark != token_mark(settings):
        said.append(
            "the secret that visitor tokens are signed with is not the one of the backup: visitors come back as "
            "strangers and do not reach their conversations; put it back (PAGEWIRE_TOKEN_SECRET, or token.secret in "
            f"{settings.home}) and restart the gateways"
        )
    for site in sorted(sites):
        was, facts = manifest.indexes.get(site), await _facts(clients, site)
        now = facts or IndexFacts(embedder=settings.embedder, chunker=settings.chunker.fingerprint)
        if was is not None and was != now:
            said.append(
                f"the index of site {site} was made with embedder {was.embedder} and chunker {was.chunker}; the one "
                f"here is by {now.embedder}, {now.chunker}: `pagewire index rebuild {site}` makes another"
            )
    return said


def token_mark(settings: Settings) -> str | None:
    """A fingerprint of the secret; None: there is none. It does not create one, as the gateway does."""
    if settings.token_secret is not None:
        secret = settings.token_secret.get_secret_value()
    else:
        try:
            secret = read(settings.home / "token.secret", "token_secret")
        except SettingsError:
            return None
    return hmac.new(secret.encode(), b"backup", sha256).hexdigest()[:16]


async def _facts(clients: Clients, site: str) -> IndexFacts | None:
    try:
        live = await clients.elastic.indexes.now(site)
    except IndexUnfit:
        return None
    return IndexFacts(embedder=live.embedder, chunker=live.chunker) if live else None
