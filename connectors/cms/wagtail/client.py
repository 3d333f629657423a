"""Reads a Wagtail site through its Pagewire app (app/pagewire_wagtail/views.py), with signed requests."""

from __future__ import annotations

import time
from collections.abc import Sequence
from urllib.parse import quote, urlencode
from uuid import uuid4

from connectors.cms.fetching import FetchRefused, SafeFetch
from connectors.cms.frame import Listed
from connectors.cms.push import signed_headers
from connectors.cms.settings import WagtailConnector
from connectors.cms.wagtail.mapping import Answer, NotOurApp, read
from pipelines.runtime.errors import Permanent

MOUNTED = "pagewire"  # the path of the app's URLs, by docs/howto/wagtail.md
LIMIT = 64 * 1024 * 1024  # bytes of an answer: the app stops after the page that exceeds 4 Mi characters

TODO = {
    401: "its PAGEWIRE['secret'] is not the connector's, or its clock is off",
    404: f"is its path('{MOUNTED}/', include('pagewire_wagtail.urls')) there, before Wagtail's own, and PAGEWIRE set?",
}


class Refusal(Permanent):
    """The site refuses our requests. The message says what to do."""

    code = "wagtail-refused"


class WagtailClient:
    """One site."""

    def __init__(self, connector: WagtailConnector, fetch: SafeFetch) -> None:
        self._connector = connector
        self._fetch = fetch

    async def inventory(self, after: str) -> Answer:
        """Public pages after the key `after`. Raises: ServerUnavailable, Refusal, FetchRefused, NotOurApp."""
        return await self._ask("inventory", urlencode({"after": after}))

    async def pages(self, wanted: Sequence[Listed]) -> Answer:
        """Pages by their ids. Raises: ServerUnavailable, Refusal, FetchRefused, NotOurApp."""
        return await self._ask("pages", "&".join(f"page={quote(f'{one.lang}:{one.page_id}')}" for one in wanted))

    async def _ask(self, name: str, query: str) -> Answer:
        # A GET's signature is of its name and query, and does not depend on where the app is mounted.
        signed = f"GET {name}?{query}".encode()
        headers = signed_headers(self._connector.secret, f"msg_{uuid4().hex}", int(time.time()), signed)
        url = f"{self._connector.url.rstrip('/')}/{MOUNTED}/{name}"
        try:
            answer = await self._fetch.get(f"{url}?{query}", limit=LIMIT, headers=headers)
        except FetchRefused as err:
            if err.status in TODO:
                raise Refusal(
                    f"{err}: {TODO[err.status]}",
                ) from err
            raise
        try:
            return read(answer.body)
        except NotOurApp as err:
            raise NotOurApp(f"{url}: {err}") from None
