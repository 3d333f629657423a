"""WordPress as a source for `import` and `reconcile`: client.py reads posts, mapping.py converts them.

types ─▶ inventory: id, language, modified time of every public post
      └▶ fetch:     the posts themselves, many at once; one that breaks WordPress is found by single requests
                    └▶ visitor.py: each at its own address; pages not shown to visitors are left out
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from more_itertools import chunked
from pydantic import ValidationError

from connectors.cms.fetching import FetchRefused, SafeFetch, ServerUnavailable
from connectors.cms.frame import Barred, Listed, UnreadablePage
from connectors.cms.own_thread import together
from connectors.cms.settings import WordPressConnector
from connectors.cms.wordpress.client import FETCHED_AT_ONCE, NotWordPress, WordPressClient
from connectors.cms.wordpress.mapping import FIELDS, LISTED_FIELDS, document, listed, page_id, type_and_number
from connectors.cms.wordpress.visitor import AnonymousReader
from schemas.base import problems
from schemas.page import PageDocument

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
