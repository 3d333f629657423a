"""A CMS with a module of ours as a source for `pagewire import` and `pagewire reconcile`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from connectors.cms.fetching import SafeFetch
from connectors.cms.frame import Listed, UnreadablePage
from connectors.cms.module.client import ModuleClient
from connectors.cms.module.mapping import NotOurModule
from connectors.cms.settings import ModuleConnector
from schemas.page import PageDocument

REQUESTED = 20  # pages a request; the module allows 50, and renders each


class ModuleSource:
    """Every public page, in every language.

    A page whose content differs from the last sent version has a new revision, even without a save, since the module
    compares rendered pages.
    """

    def __init__(self, connector: ModuleConnector, fetch: SafeFetch) -> None:
        self._client = ModuleClient(connector, fetch)

    async def inventory(self) -> AsyncGenerator[Listed, None]:
        after, seen = "", {""}
        while True:
            answer = await self._client.inventory(after)
            for listed in answer.listed:
                yield listed
            if answer.end:
                return
            if not answer.next or answer.next in seen:
                raise NotOurModule("the inventory broke off: neither its end nor where it goes on")
            after = answer.next
            seen.add(after)

    async def fetch(self, wanted: Sequence[Listed]) -> AsyncGenerator[PageDocument | UnreadablePage, None]:
        open_pages = list(wanted)
        while open_pages:
            asked, open_pages = open_pages[:REQUESTED], open_pages[REQUESTED:]
            answer = await self._client.pages(asked)
            for page in answer.pages:
                yield page
            later = {(name.id, name.lang) for name in answer.later}
            if len(later) >= len(asked):
                raise NotOurModule("it puts off every page that it is asked for")
            open_pages += [one for one in asked if (one.page_id, one.lang) in later]

    async def now(self) -> int:
        return (await self._client.pages([])).now
