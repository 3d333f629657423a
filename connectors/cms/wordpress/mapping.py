"""Converts a post of the REST API to a page document. The plugin does the same in PHP (class-pages.php).

Both must be changed together: tests/wordpress compares them on a real site.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from connectors.cms.frame import Listed
from schemas.base import language_tag
from schemas.labels import Labels, fitting_labels
from schemas.page import PageDocument
from text.html import stripped

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
