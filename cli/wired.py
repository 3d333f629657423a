"""What commands share: the settings and connections of `wiring`, the user, the names of sites, points in time.

Of `wiring` each is loaded when it is called: a command that prints its help loads neither Kafka's client nor
Elasticsearch's.
"""

from __future__ import annotations

import asyncio
import getpass
import os
import re
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from pipelines.runtime.errors import WrongUse, some_of

if TYPE_CHECKING:
    from pipelines.operate.audit_log import Act
    from schemas.audit_log import Action
    from wiring.clients import Clients
    from wiring.settings import Settings


def load() -> Settings:
    """The settings. Raises: SettingsError."""
    from wiring.settings_file import load

    return load()


def logged() -> Settings:
    """The settings; what this process logs from now on goes where they say. Raises: SettingsError."""
    settings = load()
    configure_logs(settings)
    return settings


def configure_logs(settings: Settings) -> None:
    """Log as these settings say."""
    from pipelines.runtime import logs

    logs.configure(settings)


def connected(settings: Settings) -> Clients:
    """All that commands ask of the running system: a context. Raises: ServiceMissing."""
    from wiring.clients import Clients

    return Clients(settings)


def at_stop(do: Callable[[], object]) -> None:
    """Call this at Ctrl-C and at SIGTERM, in place of what they do else."""
    for signum in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signum, do)


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


class NoSuchSites(WrongUse):
    """No site of pagewire.yaml has such a name."""

    code = "no-such-sites"


def sites_called(glob: str, settings: Settings) -> list[str]:
    """In the order of pagewire.yaml.

    Args:
        glob: for example `shop-*`; capitals count.

    Raises: NoSuchSites.
    """
    found = [site for site in settings.sites if fnmatchcase(site, glob)]
    if not found:
        raise NoSuchSites(f"no site is called like {glob!r}; there are: {some_of(settings.sites)}")
    return found


UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def point(option: str, text: str | None) -> datetime | None:
    """`30m`, `2h` or `3d` ago, or an ISO 8601 time; None where nothing is said. Raises: WrongUse: names the option."""
    if text is None:
        return None
    if (span := _span(text)) is not None:
        return datetime.now(UTC) - span
    return _moment(option, text)


def point_ahead(option: str, text: str | None) -> datetime | None:
    """`30m`, `2h` or `90d` from now, or an ISO 8601 time to come; None where nothing is said.

    Raises: WrongUse: names the option.
    """
    if text is None:
        return None
    span, now = _span(text), datetime.now(UTC)
    ahead = now + span if span is not None else _moment(option, text)
    if ahead <= now:
        raise WrongUse(f"{option} {text!r} lies in the past")
    return ahead


def _span(text: str) -> timedelta | None:
    match = re.fullmatch(r"(\d{1,5})([mhd])", text)
    return timedelta(**{UNITS[match[2]]: int(match[1])}) if match else None


def _moment(option: str, text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone()  # without an offset: this machine's time
    except (ValueError, OverflowError):
        raise WrongUse(f"{option} {text!r}: 30m, 2h, 3d or an ISO 8601 time") from None
