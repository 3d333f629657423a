"""What must survive a restart of the servers themselves: an engine of its own, stopped and started."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.acceptance.system import Instance
from tests.acceptance.test_story import found, put

pytestmark = pytest.mark.engine


def test_a_deleted_page_stays_deleted_after_the_engine_was_stopped_and_started(tmp_path: Path) -> None:
    instance = Instance(tmp_path, None)
    with instance.started("up") as up, instance.client(up.url) as site:
        assert put(site, "market", "<p>The weekly market is on Friday.</p>", 5).status_code == 200
        assert put(site, "stays", "<p>The museum shows boats.</p>", 5).status_code == 200
        deleted = site.delete("/pages/market", params={"revision": 9, "wait": "searchable", "timeout": 60})
        assert deleted.json()["state"] == "deleted"
        assert up.stop() == 0
    assert instance.run("engine", "status").returncode == 1  # `up` took its engine with it
    try:
        assert instance.run("engine", "start", "--detach").returncode == 0
        with instance.started("up") as up, instance.client(up.url) as site:
            late = put(site, "market", "<p>The weekly market is on Friday.</p>", 7)
            assert late.headers["Pagewire-Superseded"] == "true"
            assert found(site, "weekly market Friday", "keyword") == []
            assert found(site, "museum boats", "keyword") == ["stays"]
            assert receipt(site, "market") == ("deleted", 9)
    finally:
        instance.run("engine", "stop")


def receipt(site: httpx.Client, page_id: str) -> tuple[str, int]:
    body = site.get(f"/pages/{page_id}/receipt").json()
    return body["state"], body["accepted_revision"]
