"""The tools that sites add, from settings."""

from __future__ import annotations

from connectors.cms.fetching import SafeFetch
from connectors.tools.site_tools import TIMEOUT, ConnectedTools
from wiring.settings import Settings


def tools_fetch(settings: Settings) -> SafeFetch:
    """Waits for no busy service: a visitor does."""
    return SafeFetch(settings.fetch_allow, timeout=TIMEOUT, patience=0)


def site_tools(settings: Settings, fetch: SafeFetch) -> ConnectedTools:
    """Raises: SettingsError: names the setting."""
    return ConnectedTools({name: site.tools for name, site in settings.sites.items() if site.tools}, fetch)
