"""The public posts of WordPress's REST API: https://developer.wordpress.org/rest-api/

Its lists are paged by `offset`, not by id. If a post is deleted meanwhile, offsets shift, and a skipped post would be
deleted from the index. So each request begins with the last post of the previous one, and goes further back if that
post is missing.

A post becomes a page document here. The plugin does the same in PHP (class-pages.php). Both must be changed together:
tests/wordpress compares them on a real site.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote, urlencode

from connectors.cms.fetching import Fetched, FetchRefused, SafeFetch, ServerUnavailable, shown
from connectors.cms.frame import Listed
from connectors.cms.settings import WordPressConnector
from pipelines.runtime.errors import Permanent
from schemas.base import language_tag
from schemas.labels import Labels, fitting_labels
from schemas.page import PageDocument
from text.html import stripped

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


# The requested fields; `_links` and `_embedded` have the names of categories and tags.
LISTED_FIELDS = "id,type,status,modified_gmt,content.protected,pagewire,lang"
FIELDS = f"{LISTED_FIELDS},slug,link,title,excerpt,content,yoast_head,_links,_embedded"


def listed(post: Mapping[str, Any], default_lang: str) -> Listed | None:
    """A post of a list with `LISTED_FIELDS`; None: it is not public."""
    barred = "pagewire" in post and post["pagewire"] is None  # by the plugin
    if post.get("status", "publish") != "publish" or post["content"]["protected"] or barred:
        return None
    return Listed(page_id(post["type"], post["id"]), lang(post, default_lang), revision(post))


def document(post: Mapping[str, Any], default_lang: str) -> PageDocument:
    """The document of a public post, from `FIELDS` with `_embed=wp:term`.

    Raises:
        KeyError, TypeError, pydantic.ValidationError: the post has not the form of the REST API.
    """
    content = post["content"]["rendered"]
    return PageDocument.model_validate(
        {
            "id": page_id(post["type"], post["id"]),
            "lang": lang(post, default_lang),
            "url": post["link"],
            "name": unquote(post["slug"]).replace("-", " ").strip(),
            "title": stripped(post["title"]["rendered"]),
            "description": _description(post, content),
            "keywords": _keywords(post),
            "labels": _labels(post),
            "content": content + _structured_data(str(post.get("yoast_head", ""))),
            "revision": revision(post),
            "changed_at": _modified(post),
        }
    )


def _structured_data(head: str) -> str:
    """What Yoast SEO writes for machines into a page's head. The plugin reads that of all plugins from the page."""
    parts = (part.partition(">") for part in head.split("<script")[1:])
    data = [data.partition("</script")[0] for tag, _, data in parts if "application/ld+json" in tag]
    return "".join(f'<script type="application/ld+json">{each}</script>' for each in data)


def page_id(type: str, id: int) -> str:
    """`post-12`, which does not change with title, slug or parent."""
    return f"{type}-{id}"


def type_and_number(page_id: str) -> tuple[str, int]:
    """`("post", 12)`. Raises: ValueError: not an id of ours."""
    type, _, number = page_id.rpartition("-")
    return type, int(number)


def lang(post: Mapping[str, Any], default: str) -> str:
    """The post's language by the plugin or Polylang, else the site's."""
    return language_tag(str(_plugin_fields(post).get("lang") or post.get("lang") or default))


def revision(post: Mapping[str, Any]) -> int:
    """The end of the second of its last change, so that it is never older than the plugin's revision of that save."""
    modified = _modified(post)
    return (int(modified.timestamp()) if modified else 0) * 1000 + 999


def _modified(post: Mapping[str, Any]) -> datetime | None:
    """None for 0000-00-00 from some imports, which the REST API shows as -0001-11-30."""
    said = str(post["modified_gmt"])
    return None if said.startswith("-") else datetime.fromisoformat(f"{said}+00:00")


def _description(post: Mapping[str, Any], content: str) -> str:
    """The excerpt, if it is written by hand. WordPress's automatic one repeats the content's beginning."""
    if "description" in _plugin_fields(post):
        return str(_plugin_fields(post)["description"])
    said = stripped(post.get("excerpt", {}).get("rendered", ""))
    made = said.endswith("[…]") or _squeezed(content).startswith(_squeezed(said))
    return "" if made else said


def _squeezed(text: str) -> str:
    return "".join(stripped(text).split())


def _plugin_fields(post: Mapping[str, Any]) -> Mapping[str, Any]:
    """The plugin's additional fields; empty if it is not active."""
    return post.get("pagewire") or {}


def _keywords(post: Mapping[str, Any]) -> list[str]:
    """Names of its categories, tags and other terms, without the default category."""
    return sorted({name for _, name in _terms(post)})


def _labels(post: Mapping[str, Any]) -> Labels:
    """The same by their taxonomy: `{"category": ("Fees",)}`."""
    names: dict[str, list[str]] = {}
    for taxonomy, name in sorted(set(_terms(post))):
        names.setdefault(taxonomy, []).append(name)
    return fitting_labels(names)


def _terms(post: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Taxonomy and name."""
    for group in post.get("_embedded", {}).get("wp:term", ()):
        for term in group:
            if "name" in term and term.get("slug") != "uncategorized" and (name := stripped(term["name"])):
                yield str(term.get("taxonomy", "")), name
