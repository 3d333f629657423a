"""The public posts of WordPress's REST API: https://developer.wordpress.org/rest-api/

Its lists are paged by `offset`, not by id. If a post is deleted meanwhile, offsets shift, and a skipped post would be
deleted from the index. So each request begins with the last post of the previous one, and goes further back if that
post is missing.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from connectors.cms.fetching import Fetched, FetchRefused, SafeFetch, ServerUnavailable, shown
from connectors.cms.settings import WordPressConnector
from pipelines.runtime.errors import Permanent

LISTED_AT_ONCE = 100  # WordPress's own limit for `per_page`
FETCHED_AT_ONCE = 25  # with content, which may be slow to render
LIMIT = 64 * 1024 * 1024  # bytes of an answer; `content` alone may have 4 MiB a page
# Kinds of posts that are no pages.
PARTS = frozenset({"attachment", "nav_menu_item", "revision", "custom_css"})


class NotWordPress(Permanent):
    """The address has no WordPress REST API, or denies access to it."""

    code = "not-wordpress"


class WordPressClient:
    """Reads one site. Its methods raise Away (a retry may help) or Permanent (it would not)."""

    def __init__(self, connector: WordPressConnector, fetch: SafeFetch) -> None:
        self._url = connector.url.rstrip("/")
        self._fetch = fetch
        self._headers: dict[str, str] = {}
        if connector.user and connector.password:
            login = f"{connector.user}:{connector.password.get_secret_value()}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(login).decode()}"
        self._root: str | None = None

    async def now(self) -> int:
        """The site's clock in milliseconds, to the second."""
        date = (await self._ask("", {"_fields": "namespaces"})).date or datetime.now(UTC)
        return int(date.timestamp()) * 1000

    async def plugin(self) -> Mapping[str, Any] | None:
        """The plugin's data about the site: `lang` and `types`; None: the plugin is not active."""
        try:
            said = await self._json("pagewire/v1/site", {})
        except FetchRefused as err:
            if err.status in (401, 403, 404):
                return None
            raise
        if not (isinstance(said, dict) and isinstance(said.get("lang"), str) and isinstance(said.get("types"), list)):
            raise NotWordPress(f"{self._url}: pagewire/v1/site answers with something else than the plugin's words")
        return said

    async def routes(self) -> dict[str, str]:
        """Kind of post -> the route of its list (`wp/v2/posts`)."""
        said = await self._json("wp/v2/types", {})
        try:
            return {
                name: f"{about.get('rest_namespace') or 'wp/v2'}/{about['rest_base']}"
                for name, about in said.items()
                if name not in PARTS and not name.startswith("wp_")
            }
        except (AttributeError, KeyError) as err:
            raise NotWordPress(f"{self._url}: wp/v2/types is not a list of post types: {err!r}") from err

    async def posts(self, route: str, fields: str) -> AsyncGenerator[dict[str, Any], None]:
        """All published posts of a route, by id, each once."""
        last, offset = 0, 0
        while True:
            query = {"orderby": "id", "order": "asc", "per_page": LISTED_AT_ONCE, "offset": offset, "_fields": fields}
            answer = await self._ask(route, query)
            batch = self._list(answer, route)
            total = answer.headers.get("x-wp-total", "")
            if not total.isdecimal():
                raise NotWordPress(f"{self._url}: {route} does not say how many there are (X-WP-Total)")
            if offset and (not batch or batch[0]["id"] > last):
                offset = max(0, offset - LISTED_AT_ONCE)  # earlier posts were deleted, and later ones have shifted
                continue
            for post in batch:
                if post["id"] > last:
                    yield post
                    last = post["id"]
            if offset + len(batch) >= int(total):
                return
            if len(batch) < LISTED_AT_ONCE:
                raise ServerUnavailable(f"{self._url}: {route} ended after {offset + len(batch)} of {total}")
            offset += len(batch) - 1

    async def some(self, route: str, ids: Sequence[int], fields: str) -> list[dict[str, Any]]:
        """The published ones of these posts."""
        query = {
            "include": ",".join(map(str, ids)),
            "per_page": len(ids),
            "orderby": "include",
            "_fields": fields,
            "_embed": "wp:term",
        }
        return self._list(await self._ask(route, query), route)

    def _list(self, answer: Fetched, route: str) -> list[dict[str, Any]]:
        said = self._parsed(answer)
        if not isinstance(said, list) or not all(isinstance(post, dict) and "id" in post for post in said):
            raise NotWordPress(f"{self._url}: {route} is not a list of posts")
        return said

    async def _json(self, route: str, query: Mapping[str, object]) -> Any:
        return self._parsed(await self._ask(route, query))

    def _parsed(self, answer: Fetched) -> Any:
        try:
            # Some plugins print a byte order mark first.
            return json.loads(answer.body.decode("utf-8-sig"))
        except ValueError as err:
            raise NotWordPress(f"{shown(answer.url)}: not JSON: {err}") from err

    async def _ask(self, route: str, query: Mapping[str, object]) -> Fetched:
        if self._root is None:
            self._root = await self._found()
        return await self._get(self._root, route, query)

    async def _found(self) -> str:
        """The API's root: `/wp-json/`, or `?rest_route=` for plain permalinks."""
        for root in (f"{self._url}/wp-json/", f"{self._url}/?rest_route=/"):
            try:
                said = self._parsed(await self._get(root, "", {"_fields": "namespaces"}))
            except NotWordPress:
                continue
            except FetchRefused as err:
                if err.status in (401, 403):
                    raise NotWordPress(
                        f"{self._url}: the REST API is closed to us ({err.status}); give the connector a user and an "
                        "application password (Users > Profile)"
                    ) from err
                if err.status is None:
                    raise
                continue
            if isinstance(said, dict) and "wp/v2" in said.get("namespaces", ()):
                return root
        raise NotWordPress(f"{self._url}: no WordPress REST API here; `url` is the address under Settings > General")

    async def _get(self, root: str, route: str, query: Mapping[str, object]) -> Fetched:
        sign = "&" if "?" in root else "?"
        return await self._fetch.get(f"{root}{route}{sign}{urlencode(query)}", limit=LIMIT, headers=self._headers)
