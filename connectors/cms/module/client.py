"""Asks our module inside a CMS for its pages, with signed requests. The protocol: docs/reference/cms-module.md"""

from __future__ import annotations

import time
from collections.abc import Sequence
from urllib.parse import quote, urlencode
from uuid import uuid4

from connectors.cms.fetching import FetchRefused, SafeFetch
from connectors.cms.frame import Listed
from connectors.cms.module.mapping import Answer, NotOurModule, read
from connectors.cms.push import signed_headers
from connectors.cms.settings import ModuleConnector
from pipelines.runtime.errors import Permanent

MOUNTED = "pagewire"  # the path below which the module answers
LIMIT = 64 * 1024 * 1024  # bytes of an answer: the module stops after the page that exceeds 4 Mi characters

# Kind -> status of a refusal -> what to do.
TODO: dict[str, dict[int | None, str]] = {
    "wagtail": {
        401: "its PAGEWIRE['secret'] is not the connector's, or its clock is off",
        404: f"is its path('{MOUNTED}/', include('pagewire_wagtail.urls')) there, before Wagtail's own, and PAGEWIRE "
        "set?",
    },
    "drupal": {
        401: "the secret under Configuration > Web services > Pagewire is not the connector's, or its clock is off",
        404: "is the module pagewire installed, and are its settings saved?",
    },
}


class Refusal(Permanent):
    """The site refuses our requests. The message says what to do."""

    code = "cms-module-refused"


class ModuleClient:
    """One site."""

    def __init__(self, connector: ModuleConnector, fetch: SafeFetch) -> None:
        self._connector = connector
        self._fetch = fetch

    async def inventory(self, after: str) -> Answer:
        """Public pages after the key `after`. Raises: ServerUnavailable, Refusal, FetchRefused, NotOurModule."""
        return await self._ask("inventory", urlencode({"after": after}))

    async def pages(self, wanted: Sequence[Listed]) -> Answer:
        """Pages by their ids. Raises: ServerUnavailable, Refusal, FetchRefused, NotOurModule."""
        return await self._ask("pages", "&".join(f"page={quote(f'{one.lang}:{one.page_id}')}" for one in wanted))

    async def _ask(self, name: str, query: str) -> Answer:
        # A GET's signature is of its name and query, and does not depend on where the module is mounted.
        signed = f"GET {name}?{query}".encode()
        headers = signed_headers(self._connector.secret, f"msg_{uuid4().hex}", int(time.time()), signed)
        url = f"{self._connector.url.rstrip('/')}/{MOUNTED}/{name}"
        try:
            answer = await self._fetch.get(f"{url}?{query}", limit=LIMIT, headers=headers)
        except FetchRefused as err:
            if todo := TODO[self._connector.kind].get(err.status):
                raise Refusal(f"{err}: {todo}") from err
            raise
        try:
            return read(answer.body)
        except NotOurModule as err:
            raise NotOurModule(f"{url}: {err}") from None
