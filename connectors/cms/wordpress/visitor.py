"""A page as a visitor gets it. The REST API shows posts without what keeps visitors from them: a redirect, a filter of
the content where a theme shows it, a query that finds nothing.

    document of the REST API ─▶ its own address, without our login ─▶ the same address? the same words? ─▶ document
                                                                └─ no ─▶ Barred
"""

from __future__ import annotations

import asyncio
import html
import re
from secrets import token_hex

import httpx

from connectors.cms.fetching import Away, Fetched, Refused, SafeFetch
from connectors.cms.frame import Barred, Listed, Unreadable
from connectors.cms.wordpress.client import NotWordPress
from schemas.page import PageDocument
from text.encodings import UnknownEncoding, decoded
from text.html import without_tags

RUN = 3  # words in a row that are looked for together
SHOWN = 0.8  # share of the runs that a page shows; a theme may put a line between two paragraphs
CLOSED = frozenset({401, 403})
_WORD = re.compile(r"\w+")
_NEXT_PAGE = "<!--nextpage-->"  # visitors read the rest at another address


class Visitor:
    """Asks one site for its pages as somebody who is not logged in."""

    def __init__(self, url: str, fetch: SafeFetch) -> None:
        self._url = url
        self._fetch = fetch

    async def sees(self, listed: Listed, page: PageDocument) -> PageDocument | Unreadable | Barred:
        """The page, if a visitor gets it.

        Raises:
            NotWordPress: the whole site is closed to visitors.
            Away: it is away.
        """
        for url in (page.url, _uncached(page.url)):  # a cache may still have what the page said before
            try:
                answer = await self._fetch.get(url)
            except Refused as err:
                if err.status is None or err.status < 400:
                    return Unreadable(listed, str(err))
                await self._is_open()
                return Barred(listed, page.url, f"visitors do not get it ({err.status})")
            except Away as err:
                await self._is_open()
                return Unreadable(listed, str(err))
            if _place(answer.url) not in (_place(url), _place(page.url)):
                return Barred(listed, page.url, "visitors are led elsewhere")
            if await asyncio.to_thread(shows, _text(answer), page.content):
                return page
        return Barred(listed, page.url, "visitors do not see its content")

    async def _is_open(self) -> None:
        """Whether it is the page that is barred, and not we: a firewall may stop us at any page."""
        try:
            await self._fetch.get(self._url)
        except Refused as err:
            if err.status in CLOSED:
                raise NotWordPress(
                    f"{self._url}: the whole site is closed to visitors ({err.status}), and only what visitors see is "
                    "read. `as_visitor: false` reads what the REST API says"
                ) from err


def shows(page: str, content: str) -> bool:
    """Whether the HTML of a page has the words of a content in it, in their order."""
    wanted = _words(content.partition(_NEXT_PAGE)[0])
    run = min(RUN, len(wanted))
    if not run:
        return True
    runs = _runs(wanted, run)
    return len(runs & _runs(_words(page), run)) >= SHOWN * len(runs)


def _uncached(url: str) -> str:
    """The same page, at an address that nobody asked for before. The plugin's own query, with no mark that it takes."""
    return f"{url}{'&' if '?' in url else '?'}pagewire-visit={token_hex(8)}"


def _words(content: str) -> list[int]:
    """A number for each word: a page of 4 MiB has many, and only their equality counts."""
    text = html.unescape(without_tags(content, " ")).casefold()
    return [hash(word[0]) for word in _WORD.finditer(text)]


def _runs(words: list[int], length: int) -> set[int]:
    return {hash(run) for run in zip(*(words[start:] for start in range(length)), strict=False)}


def _text(answer: Fetched) -> str:
    try:
        return decoded(answer.body, answer.charset, page=True)
    except UnknownEncoding:
        return answer.body.decode("utf-8", "replace")  # only the words in it are looked for


def _place(url: str) -> tuple[str, bytes]:
    """Path and query: `www.` and https come and go."""
    parsed = httpx.URL(url)
    return parsed.path.rstrip("/"), parsed.query
