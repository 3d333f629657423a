"""Checks a page at its public address. The REST API also shows posts that visitors cannot see, because of a redirect, a
filter of the content in the theme, or a query without results.

    document of the REST API ─▶ its own address, without our login ─▶ the same address? the same words? ─▶ document
                                                                └─ no ─▶ Barred
"""

from __future__ import annotations

import asyncio
import html
import re
from secrets import token_hex

import httpx

from connectors.cms.fetching import Fetched, FetchRefused, SafeFetch, ServerUnavailable
from connectors.cms.frame import Barred, Listed, UnreadablePage
from connectors.cms.wordpress.client import NotWordPress
from schemas.page import PageDocument
from text.encodings import UnknownEncoding, decoded
from text.html import without_tags

RUN = 3  # words in a row that are compared together
SHOWN = 0.8  # least share of the runs on the page; a theme may insert lines between paragraphs
CLOSED = frozenset({401, 403})
_WORD = re.compile(r"\w+")
_NEXT_PAGE = "<!--nextpage-->"  # visitors read the rest at another address


class AnonymousReader:
    """Reads pages of one site without a login."""

    def __init__(self, url: str, fetch: SafeFetch) -> None:
        self._url = url
        self._fetch = fetch

    async def sees(self, listed: Listed, page: PageDocument) -> PageDocument | UnreadablePage | Barred:
        """The page, if visitors can see it.

        Raises:
            NotWordPress: the whole site is closed to visitors.
            ServerUnavailable: it is down.
        """
        for url in (page.url, _uncached(page.url)):  # a cache may still have an older version of the page
            try:
                answer = await self._fetch.get(url)
            except FetchRefused as err:
                if err.status is None or err.status < 400:
                    return UnreadablePage(listed, str(err))
                await self._is_open()
                return Barred(listed, page.url, f"visitors do not get it ({err.status})")
            except ServerUnavailable as err:
                await self._is_open()
                return UnreadablePage(listed, str(err))
            if _place(answer.url) not in (_place(url), _place(page.url)):
                return Barred(listed, page.url, "visitors are led elsewhere")
            if await asyncio.to_thread(shows, _text(answer), page.content):
                return page
        return Barred(listed, page.url, "visitors do not see its content")

    async def _is_open(self) -> None:
        """Return if the site is open to us, so that the page itself is barred. A firewall may block us everywhere."""
        try:
            await self._fetch.get(self._url)
        except FetchRefused as err:
            if err.status in CLOSED:
                raise NotWordPress(
                    f"{self._url}: the whole site is closed to visitors ({err.status}), and only what visitors see is "
                    "read. `as_visitor: false` reads what the REST API says"
                ) from err


def shows(page: str, content: str) -> bool:
    """Whether a page's HTML contains the words of the content, in their order."""
    wanted = _words(content.partition(_NEXT_PAGE)[0])
    run = min(RUN, len(wanted))
    if not run:
        return True
    runs = _runs(wanted, run)
    return len(runs & _runs(_words(page), run)) >= SHOWN * len(runs)


def _uncached(url: str) -> str:
    """The page's address with a random query, which no cache knows. The plugin ignores its value."""
    return f"{url}{'&' if '?' in url else '?'}pagewire-visit={token_hex(8)}"


def _words(content: str) -> list[int]:
    """A number for each word, to save memory: a page of 4 MiB has many words, and only their equality matters."""
    text = html.unescape(without_tags(content, " ")).casefold()
    return [hash(word[0]) for word in _WORD.finditer(text)]


def _runs(words: list[int], length: int) -> set[int]:
    return {hash(run) for run in zip(*(words[start:] for start in range(length)), strict=False)}


def _text(answer: Fetched) -> str:
    try:
        return decoded(answer.body, answer.charset, page=True)
    except UnknownEncoding:
        return answer.body.decode("utf-8", "replace")  # only its words are compared


def _place(url: str) -> tuple[str, bytes]:
    """Path and query, without scheme and host, since `www.` and https may differ."""
    parsed = httpx.URL(url)
    return parsed.path.rstrip("/"), parsed.query
