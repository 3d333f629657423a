"""Sites: is the chat on, what is kept of visitors (changed by privacy.py), what feeds the site; and the switch. What
else is set in pagewire.yaml is shown, and changed there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from gateway.console.view import Administrator, ConsoleRoute, View, confirmed
from gateway.operators.ops import thrown
from pipelines.operate.last_uses import of_connector
from pipelines.query.live.site_privacy import SitePrivacy, filed_rules
from schemas.chat_switch import ChatState
from schemas.connector_run import ConnectorRun
from schemas.privacy import PrivacyRules
from wiring.settings import SiteSettings

Done = Literal["", "chat-on", "chat-off"]

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)


@dataclass(frozen=True)
class ShownConnector:
    """Where pages come from. `run`: its last; `pushed`: when a webhook came last, to the hour."""

    name: str
    kind: str
    run: ConnectorRun | None
    pushed: datetime | None


@dataclass(frozen=True)
class ShownSite:
    """A site as the page shows it."""

    name: str
    view: View  # which knows its clocks
    settings: SiteSettings
    chat: ChatState
    privacy: PrivacyRules
    connectors: tuple[ShownConnector, ...]


@router.get("/sites")
async def list_sites(
    view: Administrator, done: Annotated[Done, Query(description="What the form before did.")] = ""
) -> Response:
    """Those that whoever looks may do everything on."""
    ports = view.edge.ports
    runs, uses, live = await asyncio.gather(ports.runs.last(), ports.uses.known(), ports.texts.live())
    privacy = SitePrivacy(view.edge.settings.sites)
    privacy.take(live)
    shown = [_shown(view.on(name), runs, uses, privacy) for name in view.sites if _may(view, name)]
    return view.page("sites_screen.html", sites=shown, done=done)


@router.post("/sites/chat/{to}")
async def switch_chat(view: Administrator, to: Literal["on", "off"]) -> Response:
    """If the form says that it is meant."""
    await confirmed(view, f"to switch the chat {to}")
    await thrown(view.edge, view.caller, view.site, on=to == "on", via="console")
    return view.to("sites", done=f"chat-{to}")


def _may(view: View, site: str) -> bool:
    return view.on(site).caller.may("admin")


def _shown(
    view: View, runs: Mapping[tuple[str, str], ConnectorRun], uses: Mapping[str, datetime], privacy: SitePrivacy
) -> ShownSite:
    settings = view.edge.settings.site(view.site)
    connectors = tuple(
        ShownConnector(name, one.kind, runs.get((view.site, name)), uses.get(of_connector(view.site, name)))
        for name, one in settings.connectors.items()
    )
    kept = privacy.of(view.site) or filed_rules(settings)
    return ShownSite(view.site, view, settings, view.edge.ports.chat.state(view.site), kept, connectors)
