"""Who runs a command, and what the audit log says of it."""

from __future__ import annotations

import getpass
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pipelines.operate.audit_log import Act
from schemas.audit_log import Action

if TYPE_CHECKING:
    from wiring.clients import Clients


def user() -> str:
    """The name of the machine's user; where it has none, as in some containers, its number."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid-{os.getuid()}"


@asynccontextmanager
async def noted(clients: Clients, action: Action, site: str | None = None, target: str = "") -> AsyncIterator[Act]:
    """What is done in the context is noted in the audit log, whatever comes of it."""
    async with (await clients.audit_log()).act(user(), "command", action, site, target) as act:
        yield act
