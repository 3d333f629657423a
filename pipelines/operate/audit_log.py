"""The audit log: records every act of an operator, an editor or a command after its end, with its outcome.

    act ─▶ a log line, in any case
        └▶ store (append-only), if it is there

The act does not depend on the log: without the store, only the log line of the process remains.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import structlog

from pipelines.runtime.record import trace_id
from schemas.audit_log import Action, ActOutcome, AuditEntry, AuditFilter, AuditLogPage, Via

log = structlog.get_logger(__name__)

KEEP_TIMEOUT = 3.0  # seconds that an act waits for the store


class AuditStore(Protocol):
    """Stores entries (adapters.elastic.system_index). All methods raise Retryable."""

    async def put(self, entry: AuditEntry) -> None: ...

    async def find(self, wanted: AuditFilter, limit: int, after: str | None = None) -> AuditLogPage:
        """The newest first."""


@dataclass
class Act:
    """An act in progress. Set `target` when it is known."""

    target: str = ""


class AuditLog:
    """Records and reads acts. One per process; `now`: the gateways' common time."""

    def __init__(self, store: AuditStore, now: Callable[[], datetime]) -> None:
        self._store = store
        self._now = now
        self.find = store.find

    @asynccontextmanager
    async def act(
        self, who: str, via: Via, action: Action, site: str | None = None, target: str = "", client: str = ""
    ) -> AsyncIterator[Act]:
        """Record the act that runs inside the block. Its errors are raised unchanged."""
        act = Act(target)
        code = ""
        try:
            yield act
        except asyncio.CancelledError:
            code = "stopped"
            raise
        except Exception as err:
            code = str(getattr(err, "code", "internal"))
            raise
        finally:
            await self._note(who, via, action, site, act.target, client, code)

    async def _note(
        self, who: str, via: Via, action: Action, site: str | None, target: str, client: str, code: str
    ) -> None:
        at = self._now()
        outcome: ActOutcome = "failed" if code else "done"
        said = {"who": who, "via": via, "action": action, "site": site, "target": target, "outcome": outcome}
        if client:
            said["client"] = client
        log.info("audit", **said, code=code)
        entry = AuditEntry.model_validate(
            said
            | {"id": f"{at.timestamp() * 1000:013.0f}-{secrets.token_hex(8)}", "at": at}
            | {"code": code, "trace_id": trace_id.get()}
        )
        try:
            async with asyncio.timeout(KEEP_TIMEOUT):
                await self._store.put(entry)
        except Exception as err:  # noqa: BLE001 - the act is done, and must not fail because of its record
            log.warning("the audit log cannot be written; the line before this one is all there is", error=repr(err))
