"""The audit log in a real Elasticsearch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from adapters.elastic.bundle import Elastic
from adapters.elastic.indexes import AUDIT_LOG
from adapters.elastic.system_index import ElasticAuditLog
from pipelines.operate.audit_log import AuditLog
from schemas.audit_log import AuditFilter
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
