"""Sites: the chat's switch, privacy (changed by privacy.py), connectors, and read-only settings of pagewire.yaml."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from gateway.console.view import Administrator, ConsoleRoute, View, confirmed
from gateway.operators.ops import set_chat
from pipelines.operate.states import of_connector
from pipelines.query.live.site_privacy import SitePrivacy, filed_rules
from schemas.chat_switch import ChatState
from schemas.connector_run import ConnectorRun
from schemas.privacy import PrivacyRules
from wiring.settings import SiteSettings

Done = Literal["", "chat-on", "chat-off"]

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)


@dataclass(frozen=True)
class ShownConnector:
    """A connector. `run`: its last run; `pushed`: the hour of its last webhook."""

    name: str
    kind: str
    run: ConnectorRun | None
    pushed: datetime | None


@dataclass(frozen=True)
class ShownSite:
    name: str
    view: View  # of this site: for its time zone
    settings: SiteSettings
    chat: ChatState
    privacy: PrivacyRules
    connectors: tuple[ShownConnector, ...]


@router.get("/sites")
async def list_sites(
    view: Administrator, done: Annotated[Done, Query(description="What the form before did.")] = ""
) -> Response:
    """The sites of which the caller is an administrator."""
    ports = view.edge.ports
    runs, uses, live = await asyncio.gather(ports.runs.last(), ports.uses.known(), ports.texts.live())
    privacy = SitePrivacy(view.edge.settings.sites)
    privacy.take(live)
    shown = [_shown(view.on(name), runs, uses, privacy) for name in view.sites if _may(view, name)]
    return view.page("sites_screen.html", sites=shown, done=done)


@router.post("/sites/chat/{to}")
async def switch_chat(view: Administrator, to: Literal["on", "off"]) -> Response:
    await confirmed(view, f"to switch the chat {to}")
    await set_chat(view.edge, view.caller, view.site, on=to == "on", via="console")
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
