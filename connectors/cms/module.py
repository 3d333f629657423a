"""A CMS with a module of ours as a source for `pagewire import` and `pagewire reconcile`: reading and mapping."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode
from uuid import uuid4

from pydantic import Field, ValidationError

from connectors.cms.fetching import FetchRefused, SafeFetch
from connectors.cms.frame import Listed, UnreadablePage
from connectors.cms.push import signed_headers
from connectors.cms.settings import ModuleConnector
from pipelines.runtime.errors import Permanent
from schemas.base import Lang, PageId, Revision, Wire, problems
from schemas.page import PageDocument

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


class NotOurModule(Permanent):
    """The answer is not one of our module's."""

    code = "not-pagewire-module"


class ListedName(Wire):
    """A page's key."""

    id: PageId
    lang: Lang


class RenderProblem(ListedName):
    """Why the page cannot be rendered."""

    reason: str


class AnswerLine(Wire):
    """One line: `now` first, then a listed page or a whole one, last `next` or `end`."""

    now: int | None = Field(default=None, description="Milliseconds since 1970 at the site.")
    id: PageId | None = None
    lang: Lang | None = None
    revision: Revision | None = None
    page: dict[str, Any] | None = Field(default=None, description="A PageDocument, if the site's own code made it one.")
    problem: RenderProblem | None = None
    later: ListedName | None = Field(default=None, description="It did not fit into this answer.")
    next: str | None = Field(default=None, description="The inventory goes on behind this key.")
    end: bool = Field(default=False, description="That was all of the inventory.")


@dataclass
class Answer:
    """All lines of one answer."""

    now: int
    listed: list[Listed] = field(default_factory=list)
    pages: list[PageDocument | UnreadablePage] = field(default_factory=list)
    later: list[ListedName] = field(default_factory=list)
    next: str | None = None
    end: bool = False


def read(body: bytes) -> Answer:
    """Raises: NotOurModule."""
    lines = body.splitlines()
    if not lines or (now := _line(1, lines[0]).now) is None:
        raise NotOurModule("this is not an answer of Pagewire's module")
    answer = Answer(now)
    for number, raw in enumerate(lines[1:], 2):
        line = _line(number, raw)
        if line.id and line.lang and line.revision is not None:
            answer.listed.append(Listed(line.id, line.lang, line.revision))
        elif line.page is not None:
            answer.pages.append(_page(line.page))
        elif line.problem:
            answer.pages.append(UnreadablePage(Listed(line.problem.id, line.problem.lang, 0), line.problem.reason))
        elif line.later:
            answer.later.append(line.later)
        else:
            answer.next, answer.end = line.next, line.end
    return answer


def _page(said: dict[str, Any]) -> PageDocument | UnreadablePage:
    try:
        return PageDocument.model_validate(said)
    except (
        ValidationError
    ) as err:  # the site's own `pagewire_document` may return anything; other pages are not affected
        return UnreadablePage(Listed(str(said.get("id")), str(said.get("lang")), 0), problems(err))


def _line(number: int, raw: bytes) -> AnswerLine:
    try:
        return AnswerLine.model_validate_json(raw)
    except ValidationError as err:
        raise NotOurModule(f"line {number}: {problems(err)}") from None


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
