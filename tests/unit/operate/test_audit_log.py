"""The audit log: noted whatever comes of an act, and never in its way."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from pipelines.operate import audit_log
from pipelines.operate.audit_log import AuditLog
from pipelines.runtime.errors import Permanent, Retryable
from pipelines.runtime.record import trace_id
from schemas.audit_log import AuditEntry, AuditFilter
from tests.fakes.stores import FakeAuditLog

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


async def test_an_act_is_noted_with_who_what_and_when() -> None:
    store = FakeAuditLog()
    token = trace_id.set("0af7651916cd43dd8448eb211c80319c")
    with capture_logs() as lines:
        async with AuditLog(store, lambda: NOON).act("webmaster", "http", "examples.put", "town") as act:
            act.target = "0123456789abcdef"
    trace_id.reset(token)
    [entry] = store.kept
    assert entry.model_dump(exclude={"id"}) == {
        "at": NOON,
        "who": "webmaster",
        "via": "http",
        "action": "examples.put",
        "site": "town",
        "target": "0123456789abcdef",
        "outcome": "done",
        "code": "",
        "trace_id": "0af7651916cd43dd8448eb211c80319c",
    }
    [line] = lines
    assert (line["event"], line["who"], line["action"], line["outcome"]) == (
        "audit",
        "webmaster",
        "examples.put",
        "done",
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [(Permanent("no"), "refused"), (Retryable("away"), "unavailable"), (KeyError("?"), "internal")],
)
async def test_what_failed_is_noted_and_goes_on_failing(error: Exception, code: str) -> None:
    store = FakeAuditLog()
    with pytest.raises(type(error)):
        async with AuditLog(store, lambda: NOON).act("admin", "http", "keys.create"):
            raise error
    [entry] = store.kept
    assert (entry.outcome, entry.code) == ("failed", code)


async def test_what_was_stopped_is_noted() -> None:
    store = FakeAuditLog()
    begun = asyncio.Event()

    async def work() -> None:
        async with AuditLog(store, lambda: NOON).act("alice", "command", "rebuild.start", "town"):
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [entry.code for entry in store.kept] == ["stopped"]


class Stuck(FakeAuditLog):
    async def put(self, entry: AuditEntry) -> None:
        await asyncio.Event().wait()


class Away(FakeAuditLog):
    async def put(self, entry: AuditEntry) -> None:
        raise Retryable("Elasticsearch does not answer")


class Broken(FakeAuditLog):
    async def put(self, entry: AuditEntry) -> None:
        raise RuntimeError("unforeseen")


@pytest.mark.parametrize("store", [Stuck(), Away(), Broken()], ids=["stuck", "away", "broken"])
async def test_without_the_store_the_act_is_done_and_the_line_is_there(
    store: FakeAuditLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "KEEP_TIMEOUT", 0.01)
    with capture_logs() as lines:
        async with AuditLog(store, lambda: NOON).act("admin", "http", "keys.revoke", target="webmaster"):
            pass
    assert (lines[0]["event"], lines[0]["log_level"]) == ("audit", "info")
    assert lines[0]["target"] == "webmaster"
    assert lines[1]["log_level"] == "warning"


async def test_it_is_read_by_pages_the_newest_first() -> None:
    store = FakeAuditLog()
    for n in range(5):
        log = AuditLog(store, lambda at=NOON + timedelta(minutes=n): at)  # type: ignore[misc]
        async with log.act(f"key-{n % 2}", "http", "keys.create", "town" if n else None, str(n)):
            pass
    log = AuditLog(store, lambda: NOON)
    first = await log.find(AuditFilter(), 3)
    assert [entry.target for entry in first.entries] == ["4", "3", "2"]
    rest = await log.find(AuditFilter(), 3, first.next)
    assert ([entry.target for entry in rest.entries], rest.next) == (["1", "0"], None)
    wanted = AuditFilter(who="key-0", site="town", since=NOON + timedelta(minutes=1), until=NOON + timedelta(minutes=4))
    assert [entry.target for entry in (await log.find(wanted, 3)).entries] == ["2"]
