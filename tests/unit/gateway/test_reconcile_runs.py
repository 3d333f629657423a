"""Reconciles in the background of a gateway: of a real folder, over an in-memory change log."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from connectors.cms import sync as syncing
from connectors.cms.sources import NoSource
from connectors.cms.sync import AlreadyRunning
from gateway.reconcile_runs import ReconcileRuns
from pipelines.operate.states import ConnectorRuns
from pipelines.runtime.errors import UnknownSite
from schemas.connector_run import ConnectorRun
from tests.connecting import SITE, Log
from tests.edge import edge_settings
from tests.fakes.ports import EPOCH
from tests.fakes.stores import FakeStates
from tests.signing import SECRET


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syncing, "PAUSES", ())


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
async def runs(tmp_path: Path, log: Log) -> Any:
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("a", "b"):
        (docs / f"{name}.md").write_text(f"# Page {name}\n\nText.\n")
    connectors = {
        "docs": {"kind": "folder", "path": str(docs)},
        "gone": {"kind": "folder", "path": str(tmp_path / "nowhere")},
        "shop": {"kind": "push", "secret": SECRET},
    }
    settings = edge_settings(tmp_path, sites={SITE: {"languages": ["en"], "connectors": connectors}})
    noted = ConnectorRuns(FakeStates(), lambda: EPOCH)
    made = ReconcileRuns(settings, lambda _: log.opened(), log.intake(), noted)
    made.noted = noted  # type: ignore[attr-defined]
    yield made
    await made.aclose()


async def ended(runs: Any, name: str) -> ConnectorRun:
    async with asyncio.timeout(10):
        while True:
            run: ConnectorRun | None = (await runs.noted.last()).get((SITE, name))
            if run is not None and run.ended_at is not None:
                return run
            await asyncio.sleep(0.01)


async def test_pages_are_sent_and_the_run_is_noted_under_the_keys_name(runs: Any, log: Log) -> None:
    await runs.start(SITE, "docs", "ops")
    with pytest.raises(AlreadyRunning):
        await runs.start(SITE, "docs", "ops")
    run = await ended(runs, "docs")
    assert (run.what, run.by, run.sent, run.code) == ("reconcile", "ops", 2, "")
    assert sorted(log.titles().values()) == ["Page a", "Page b"]
    await runs.start(SITE, "docs", "ops")  # the first one is over


async def test_what_fails_is_noted(runs: Any, log: Log) -> None:
    await runs.start(SITE, "gone", "ops")
    assert (await ended(runs, "gone")).code
    assert log.changes == []


async def test_what_cannot_be_asked_is_refused_at_once(runs: Any) -> None:
    for name in ("shop", "none"):
        with pytest.raises(NoSource):
            runs.check(SITE, name)
        with pytest.raises(NoSource):
            await runs.start(SITE, name, "ops")
    with pytest.raises(UnknownSite):
        runs.check("nowhere", "docs")
