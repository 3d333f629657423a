"""WordPress as a source for `import` and `reconcile`: client.py reads posts and converts them.

types ─▶ inventory: id, language, modified time of every public post
      └▶ fetch:     the posts themselves, many at once; one that breaks WordPress is found by single requests
                    └▶ each at its own address, without our login: the same address? the same words? Else it is left out

The REST API also shows posts that visitors cannot see, because of a redirect, a filter of the content in the theme, or
a query without results.
"""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import groupby
from secrets import token_hex
from typing import Any

import httpx
from more_itertools import chunked
from pydantic import ValidationError

from connectors.cms.fetching import Fetched, FetchRefused, SafeFetch, ServerUnavailable
from connectors.cms.frame import Barred, Listed, UnreadablePage, together
from connectors.cms.settings import WordPressConnector
from connectors.cms.wordpress.client import (
    FETCHED_AT_ONCE,
    FIELDS,
    LISTED_FIELDS,
    NotWordPress,
    WordPressClient,
    document,
    listed,
    page_id,
    type_and_number,
)
from schemas.base import problems
from schemas.page import PageDocument
from text.encodings import UnknownEncoding, decoded
from text.html import without_tags

RUN = 3  # words in a row that are compared together
LEAST_SHOWN = 0.8  # least share of the runs on the page; a theme may insert lines between paragraphs
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
    return len(runs & _runs(_words(page), run)) >= LEAST_SHOWN * len(runs)


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


SHOWN = (
    "pages of this kind are read as the theme shows them, which only the plugin does: save the page, or press "
    "`Send everything` under Settings > Pagewire"
)
VISITED_AT_ONCE = 4  # pages requested at their own addresses


@dataclass(frozen=True)
class _Site:
    """The default language and the routes of a site."""

    lang: str
    routes: Mapping[str, str]  # kind of post -> route
    shown: frozenset[str]  # kinds that only the plugin can read, as the theme shows them


class WordPressSource:
    """A `Source` (connectors/cms/frame.py)."""

    def __init__(self, connector: WordPressConnector, fetch: SafeFetch, languages: Sequence[str]) -> None:
        """
        Args:
            languages: of the site; the first is the default for pages without a language if the plugin is not active.
        """
        self._client = WordPressClient(connector, fetch)
        self._visitor = AnonymousReader(connector.url, fetch) if connector.as_visitor else None
        self._default_lang = languages[0]
        self._site: _Site | None = None

    async def inventory(self) -> AsyncGenerator[Listed, None]:
        site = await self._about()
        for route in site.routes.values():
            async with aclosing(self._client.posts(route, LISTED_FIELDS)) as posts:
                async for post in posts:
                    try:
                        found = listed(post, site.lang)
                    except (KeyError, TypeError, ValueError) as err:
                        raise NotWordPress(f"{route}: post {post['id']} is not as the API says: {err!r}") from err
                    if found:
                        yield found

    async def fetch(self, wanted: Sequence[Listed]) -> AsyncGenerator[PageDocument | UnreadablePage | Barred, None]:
        site = await self._about()
        by_route = sorted(((self._route(site, one), one) for one in wanted), key=lambda pair: pair[0] or "")
        for route, pairs in groupby(by_route, key=lambda pair: pair[0]):
            ones = [one for _, one in pairs]
            if route is None:  # its kind is not public any more, so the page is gone
                continue
            if type_and_number(ones[0].page_id)[0] in site.shown:
                for one in ones:
                    yield UnreadablePage(one, SHOWN)
                continue
            for some in chunked(ones, FETCHED_AT_ONCE):
                async with aclosing(self._some(site, route, some)) as pages:
                    async for page in pages:
                        yield page

    async def now(self) -> int:
        return await self._client.now()

    async def _some(
        self, site: _Site, route: str, ones: Sequence[Listed]
    ) -> AsyncGenerator[PageDocument | UnreadablePage | Barred, None]:
        try:
            posts = await self._client.some(route, [type_and_number(one.page_id)[1] for one in ones], FIELDS)
        except (ServerUnavailable, FetchRefused, NotWordPress) as err:
            # A post may break WordPress (a failing shortcode) or be too large: find it by single requests.
            if len(ones) > 1:
                await self._client.now()  # raises if the site is down, and no post is at fault
                for half in (ones[: len(ones) // 2], ones[len(ones) // 2 :]):
                    async with aclosing(self._some(site, route, half)) as pages:
                        async for page in pages:
                            yield page
                return
            if isinstance(err, ServerUnavailable):
                await self._client.now()
            yield UnreadablePage(ones[0], str(err))
            return
        read = list(_documents(posts, site.lang, ones))
        for some in chunked(read, VISITED_AT_ONCE):
            for page in await together(map(self._as_visitor, some)):
                yield page

    async def _as_visitor(
        self, read: tuple[Listed, PageDocument | UnreadablePage]
    ) -> PageDocument | UnreadablePage | Barred:
        listed, page = read
        if self._visitor is None or isinstance(page, UnreadablePage):
            return page
        return await self._visitor.sees(listed, page)

    async def _about(self) -> _Site:
        if self._site is None:
            plugin = await self._client.plugin()
            routes = await self._client.routes()
            chosen = plugin["types"] if plugin else routes
            hidden = [name for name in chosen if name not in routes]
            if hidden:
                raise NotWordPress(
                    f"the plugin sends {', '.join(hidden)}, which the REST API does not show: register these post "
                    "types with show_in_rest, or untick them under Settings > Pagewire"
                )
            lang = plugin["lang"] if plugin else self._default_lang
            shown = plugin.get("shown", ()) if plugin else ()  # plugins before 0.4 do not say it
            self._site = _Site(lang, {name: routes[name] for name in chosen}, frozenset(map(str, shown)))
        return self._site

    @staticmethod
    def _route(site: _Site, one: Listed) -> str | None:
        return site.routes.get(type_and_number(one.page_id)[0])


def _documents(
    posts: Iterable[Mapping[str, Any]], lang: str, ones: Sequence[Listed]
) -> Iterable[tuple[Listed, PageDocument | UnreadablePage]]:
    by_id = {one.page_id: one for one in ones}
    for post in posts:
        try:
            if one := listed(post, lang):
                yield one, document(post, lang)
        except (KeyError, TypeError, ValueError) as err:
            reason = problems(err) if isinstance(err, ValidationError) else f"not as the API says posts are: {err!r}"
            asked = by_id.get(page_id(str(post.get("type")), post["id"]))
            if asked:
                yield asked, UnreadablePage(asked, reason)
