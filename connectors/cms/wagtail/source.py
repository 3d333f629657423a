"""A Wagtail site as a source for `pagewire import` and `pagewire reconcile`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from connectors.cms.fetching import SafeFetch
from connectors.cms.frame import Listed, UnreadablePage
from connectors.cms.settings import WagtailConnector
from connectors.cms.wagtail.client import WagtailClient
from connectors.cms.wagtail.mapping import NotOurApp
from schemas.page import PageDocument

REQUESTED = 20  # pages a request; the app allows 50, and renders each


class WagtailSource:
    """Every public page of every site of the Wagtail, in every locale.

    A page whose content differs from the last sent version has a new revision, even without a change in Wagtail, since
    the app compares rendered pages.
    """

    def __init__(self, connector: WagtailConnector, fetch: SafeFetch) -> None:
        self._client = WagtailClient(connector, fetch)

    async def inventory(self) -> AsyncGenerator[Listed, None]:
        after = ""
        while True:
            answer = await self._client.inventory(after)
            for listed in answer.listed:
                yield listed
            if answer.end:
                return
            if not answer.next or answer.next == after:
                raise NotOurApp("the inventory broke off: neither its end nor where it goes on")
            after = answer.next

    async def fetch(self, wanted: Sequence[Listed]) -> AsyncGenerator[PageDocument | UnreadablePage, None]:
        open_pages = list(wanted)
        while open_pages:
            asked, open_pages = open_pages[:REQUESTED], open_pages[REQUESTED:]
            answer = await self._client.pages(asked)
            for page in answer.pages:
                yield page
            later = {(name.id, name.lang) for name in answer.later}
            if len(later) >= len(asked):
                raise NotOurApp("it puts off every page that it is asked for")
            open_pages += [one for one in asked if (one.page_id, one.lang) in later]

    async def now(self) -> int:
        return (await self._client.pages([])).now
