"""A CMS in memory, a sibling of the sources for tests."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field

from connectors.cms.frame import Barred, Listed, UnreadablePage
from pipelines.runtime.errors import PagewireError
from schemas.page import PageDocument


@dataclass
class FakeSource:
    """Public pages by id and language. Saves get the time of its clock, which a test sets."""

    clock: int = 1_000_000
    pages: dict[tuple[str, str], PageDocument] = field(default_factory=dict)
    unreadable: set[str] = field(default_factory=set)
    barred: set[str] = field(default_factory=set)
    inventories: int = 0
    fetched: list[str] = field(default_factory=list)
    breaks_after: int | None = None  # pages of an inventory, or of a fetch, until `error` is raised
    error: PagewireError | None = None
    before_fetch: Callable[[], None] = lambda: None
    skips: dict[int, str] = field(default_factory=dict)  # number of an inventory -> the page that it leaves out

    def save(self, page_id: str, lang: str = "en", **more: object) -> None:
        self.clock += 1_000
        values = {"id": page_id, "lang": lang, "revision": self.clock, "title": page_id} | more
        self.pages[page_id, lang] = PageDocument.model_validate(values)

    def remove(self, page_id: str, lang: str = "en") -> None:
        self.clock += 1_000
        del self.pages[page_id, lang]

    async def inventory(self) -> AsyncGenerator[Listed, None]:
        self.inventories += 1
        for count, ((page_id, lang), page) in enumerate(list(self.pages.items())):
            self._maybe_break(count)
            if self.skips.get(self.inventories) != page_id:
                yield Listed(page_id, lang, page.revision or 0)
        self._maybe_break(len(self.pages))

    async def fetch(self, wanted: Sequence[Listed]) -> AsyncGenerator[PageDocument | UnreadablePage | Barred, None]:
        self.before_fetch()
        for listed in wanted:
            page = self.pages.get((listed.page_id, listed.lang))
            if listed.page_id in self.unreadable:
                yield UnreadablePage(listed, "its template is broken")
            elif listed.page_id in self.barred:
                yield Barred(listed, f"https://town.example/{listed.page_id}", "for members")
            elif page is not None:
                self.fetched.append(listed.page_id)
                yield page

    async def now(self) -> int:
        return self.clock

    def _maybe_break(self, count: int) -> None:
        if self.error is not None and count == self.breaks_after:
            raise self.error
