"""`pagewire index audit` as an operator and a script use it, on a running system."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.acceptance.conftest import System
from tests.acceptance.test_story import found, put
from tests.engine_fixture import Servers

pytestmark = pytest.mark.engine

ROUTE = "/v1/admin/sites/{site}/audit"


class Town:
    """A site that no other test writes to: what those leave in the log on purpose is drift."""

    def __init__(self, system: System, site: str, pages: httpx.Client) -> None:
        self.site = site
        self.pages = pages
        self.route = system.url + ROUTE.format(site=site)
        self._system = system

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        return self._system.instance.run("audit", self.site, *options)

    def audit(self, *options: str) -> tuple[int, dict[str, Any]]:
        """Exit code and report."""
        done = self.run("--json", *options)
        assert done.returncode in (0, 1), done.stderr
        return done.returncode, json.loads(done.stdout)

    def lose_chunk(self, engine: Servers, page: str, revision: int) -> None:
        """A chunk goes behind the system's back."""
        id = quote(f"{self.site}:en:{page}#content#0", safe="")
        answer = httpx.delete(
            f"{engine.elasticsearch}/pagewire-{self.site}/_doc/{id}",
            params={"version": revision, "version_type": "external_gte", "refresh": "true"},
        )
        assert answer.status_code == 200, answer.text


@pytest.fixture(scope="module")
def town(system: System) -> Iterator[Town]:
    site = system.instance.sites[1]
    with system.instance.client(system.url, site) as pages:
        yield Town(system, site, pages)


def kinds(report: dict[str, Any], page: str) -> list[str]:
    return [finding["kind"] for finding in report["findings"] if finding["page_key"].endswith(f":{page}")]


def test_drift_is_found_told_and_repaired(town: Town, engine: Servers) -> None:
    put(town.pages, "harbour", "<p>The harbour light burns all night.</p>", 5)
    put(town.pages, "pier", "<p>The pier is closed in winter.</p>", 5)
    town.pages.delete("/pages/pier", params={"revision": 6, "wait": "searchable", "timeout": 60})
    code, report = town.audit()
    assert (code, report["clean"], report["counts"]) == (0, True, {}), report

    town.lose_chunk(engine, "harbour", 5)
    assert "harbour" not in found(town.pages, "harbour light night", "keyword")
    code, report = town.audit("--settle", "0")
    assert (code, report["clean"], kinds(report, "harbour"), kinds(report, "pier")) == (1, False, ["missing"], [])
    told = town.run("--settle", "0")
    assert told.returncode == 1
    assert "1 of its chunks are not in the index (field content)" in told.stdout
    assert "change log" in told.stderr

    repaired = town.run("--repair", "--settle", "0")
    assert repaired.returncode == 0, repaired.stdout + repaired.stderr
    assert "1 changes sent again, 0 documents deleted" in repaired.stdout
    assert "harbour" in found(town.pages, "harbour light night", "keyword")
    assert town.audit()[0] == 0


def test_audit_and_repair_over_http(town: Town, engine: Servers) -> None:
    put(town.pages, "mill", "<p>The mill grinds on Mondays.</p>", 3)
    town.lose_chunk(engine, "mill", 3)
    headers = {"Authorization": "Bearer key-of-the-acceptance-ring"}
    report = httpx.get(town.route, params={"settle": 0}, headers=headers, timeout=60).json()
    assert (report["clean"], kinds(report, "mill")) == (False, ["missing"])
    done = httpx.post(town.route, json={"repair": True}, headers=headers, timeout=120).json()
    assert (kinds(done["before"], "mill"), done["after"]["clean"]) == (["missing"], True)
    assert "mill" in found(town.pages, "mill grinds Mondays", "keyword")


def test_what_cannot_be_audited_is_said(town: Town, system: System) -> None:
    put(town.pages, "weir", "<p>The weir is being repaired.</p>", 1)
    none = town.run("--index", f"pagewire-{town.site}-000009")
    assert (none.returncode, none.stdout) == (2, "")
    assert f"it has: pagewire-{town.site}-000001" in none.stderr
    assert town.run("--index", f"pagewire-{town.site}-000001").returncode == 0
    assert system.instance.run("audit", "village").returncode == 2
