"""Page keys: `site:lang:page`, each part percent-encoded, so that a key splits in exactly one way.

Addresses of pages: whether two of them, as people copy them, are of the same page.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

# Elasticsearch refuses ids over 512 bytes; the rest is left for `#field#ord`.
MAX_ID_PREFIX = 440  # bytes
CUT = "!"  # always percent-encoded in a page key: no page's own id looks like the shortened one of another


class PageAddress(NamedTuple):
    """The parts of a page key."""

    site: str
    lang: str
    page_id: str


def page_key(site: str, lang: str, page_id: str) -> str:
    """The Kafka key of all messages about a page, for example `town:de:news%2F12`."""
    return ":".join(quote(part, safe="") for part in (site, lang, page_id))


def parse_page_key(key: str) -> PageAddress:
    """Undo `page_key`. Raises: ValueError: not three parts."""
    parts = key.split(":")
    if len(parts) != 3:
        raise ValueError(f"not a page key (site:lang:page): {key!r}")
    return PageAddress(*(unquote(part) for part in parts))


def part_key(page: str, part: int) -> str:
    """Key of one part of a page's embeddings, so that compaction keeps every part."""
    return f"{page}#{part}"


def ahead_key(page: str) -> str:
    """Key of the message ahead of a page's embeddings; a key of its own, so that neither replaces the other."""
    return f"{page}#ahead"


def page_of_part(key: str) -> str:
    """The page key inside a part key; `#` never occurs in a page key because it is percent-encoded."""
    return key.partition("#")[0]


def head_id(page: str) -> str:
    """Elasticsearch id of the page's head record."""
    encoded = page.encode()
    if len(encoded) <= MAX_ID_PREFIX:
        return page
    return encoded[: MAX_ID_PREFIX - 33].decode() + CUT + blake2b(encoded, digest_size=16).hexdigest()


def chunk_id(page: str, field: str, ord: int) -> str:
    """Elasticsearch id of one chunk: the same chunk of a later revision overwrites it in place."""
    return f"{head_id(page)}#{field}#{ord}"


def is_address(text: str) -> bool:
    """Whether this is a web address, and no page id."""
    return "://" in text


def same_address(a: str, b: str) -> bool:
    """Ignores scheme, fragment, escapes and the last slash; an address without a host matches any host."""
    (host, *rest), (other, *others) = _parts(a), _parts(b)
    return rest == others and (not host or not other or host == other)


def path_of(address: str) -> str:
    """The same for two addresses of the same page, on whichever host."""
    _, path, query = _parts(address)
    return f"{path}?{query}"


def _parts(address: str) -> tuple[str, str, str]:
    try:
        parts = urlsplit(address.strip())
    except ValueError:  # `http://[::1` and the like
        return "", address, ""
    return parts.netloc.casefold(), unquote(parts.path).rstrip("/"), unquote(parts.query)
