"""`pagewire audit` as an operator and a script use it, on a running system."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.acceptance.conftest import System
from tests.acceptance.test_story import found, put
from tests.engine_fixture import Servers

pytestmark = pytest.mark.engine

ROUTE = "/v1/admin/sites/{site}/audit"


def audit(system: System, *options: str) -> tuple[int, dict[str, Any]]:
    """Exit code and report."""
    done = system.instance.run("audit", system.instance.site, "--json", *options)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)


def lose_chunk(engine: Servers, system: System, page: str, revision: int) -> None:
    """A chunk goes behind the system's back."""
    site = system.instance.site
    id = quote(f"{site}:en:{page}#content#0", safe="")
    answer = httpx.delete(
        f"{engine.elasticsearch}/pagewire-{site}/_doc/{id}",
        params={"version": revision, "version_type": "external_gte", "refresh": "true"},
    )
    assert answer.status_code == 200, answer.text


def kinds(report: dict[str, Any], page: str) -> list[str]:
    return [finding["kind"] for finding in report["findings"] if finding["page_key"].endswith(f":{page}")]


def test_drift_is_found_told_and_repaired(system: System, engine: Servers) -> None:
    put(system.site, "harbour", "<p>The harbour light burns all night.</p>", 5)
    put(system.site, "pier", "<p>The pier is closed in winter.</p>", 5)
    system.site.delete("/pages/pier", params={"revision": 6, "wait": "searchable", "timeout": 60})
    code, report = audit(system)
    assert (code, report["clean"], report["counts"]) == (0, True, {}), report

    lose_chunk(engine, system, "harbour", 5)
    assert "harbour" not in found(system.site, "harbour light night", "keyword")
    code, report = audit(system, "--settle", "0")
    assert (code, report["clean"], kinds(report, "harbour"), kinds(report, "pier")) == (1, False, ["missing"], [])
    told = system.instance.run("audit", system.instance.site, "--settle", "0")
    assert told.returncode == 1
    assert "1 of its chunks are not in the index (field content)" in told.stdout
    assert "change log" in told.stderr

    repaired = system.instance.run("audit", system.instance.site, "--repair", "--settle", "0")
    assert repaired.returncode == 0, repaired.stdout + repaired.stderr
    assert "1 changes sent again, 0 documents deleted" in repaired.stdout
    assert "harbour" in found(system.site, "harbour light night", "keyword")
    assert audit(system)[0] == 0


def test_audit_and_repair_over_http(system: System, engine: Servers) -> None:
    put(system.site, "mill", "<p>The mill grinds on Mondays.</p>", 3)
    lose_chunk(engine, system, "mill", 3)
    route = system.url + ROUTE.format(site=system.instance.site)
    headers = {"Authorization": "Bearer acceptance-key"}
    report = httpx.get(route, params={"settle": 0}, headers=headers, timeout=60).json()
    assert (report["clean"], kinds(report, "mill")) == (False, ["missing"])
    done = httpx.post(route, json={"repair": True}, headers=headers, timeout=120).json()
    assert (kinds(done["before"], "mill"), done["after"]["clean"]) == (["missing"], True)
    assert "mill" in found(system.site, "mill grinds Mondays", "keyword")


def test_what_cannot_be_audited_is_said(system: System) -> None:
    site = system.instance.site
    none = system.instance.run("audit", site, "--index", f"pagewire-{site}-000009")
    assert (none.returncode, none.stdout) == (2, "")
    assert f"it has: pagewire-{site}-000001" in none.stderr
    assert system.instance.run("audit", site, "--index", f"pagewire-{site}-000001").returncode == 0
    assert system.instance.run("audit", "village").returncode == 2
