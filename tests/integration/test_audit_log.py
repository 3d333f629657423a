"""The audit log in a real Elasticsearch, and the command that reads it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from adapters.elastic.audit_log import ElasticAuditLog
from adapters.elastic.bundle import Elastic
from adapters.elastic.indexes import AUDIT_LOG
from pipelines.operate.audit_log import AuditLog
from schemas.audit_log import AuditFilter
from tests.acceptance.system import Instance
from tests.engine_fixture import Servers
from wiring.settings import Settings

pytestmark = pytest.mark.engine
LONG_AGO = datetime(2001, 5, 4, 12, tzinfo=UTC)


async def test_acts_are_kept_found_and_expire(engine: Servers) -> None:
    who = f"k{uuid4().hex[:10]}"
    async with Elastic(engine.elasticsearch, Settings()) as elastic:
        store = ElasticAuditLog(elastic.es, elastic.indexes)
        for n in range(3):
            log = AuditLog(store, lambda at=LONG_AGO + timedelta(minutes=n): at)  # type: ignore[misc]
            async with log.act(who, "http", "keys.create", "town" if n else None, str(n)):
                pass
        await elastic.es.indices.refresh(index=AUDIT_LOG)
        first = await store.find(AuditFilter(who=who), 2)
        assert [entry.target for entry in first.entries] == ["2", "1"]
        rest = await store.find(AuditFilter(who=who), 2, first.next)
        assert ([entry.target for entry in rest.entries], rest.next) == (["0"], None)
        wanted = AuditFilter(who=who, action="keys.create", site="town", until=LONG_AGO + timedelta(minutes=2))
        assert [entry.target for entry in (await store.find(wanted, 9)).entries] == ["1"]
        assert await store.expire(LONG_AGO + timedelta(minutes=2)) >= 2
        assert [entry.target for entry in (await store.find(AuditFilter(who=who), 9)).entries] == ["2"]
        await store.expire(LONG_AGO + timedelta(days=1))


def test_the_command_tells_what_commands_did(engine: Servers, tmp_path: Path) -> None:
    instance = Instance(tmp_path, engine)
    assert instance.run("examples", "remove", instance.site, "0123456789abcdef").returncode == 1
    for _ in range(20):  # listed within two seconds
        found = json.loads(instance.run("audit-log", "--site", instance.site, "--json").stdout)["entries"]
        if found:
            break
    [entry] = found
    assert (entry["via"], entry["action"], entry["target"], entry["code"]) == (
        "command",
        "examples.remove",
        "0123456789abcdef",
        "unknown-example",
    )
    assert "examples.remove" in instance.run("audit-log", "--site", instance.site).stdout
