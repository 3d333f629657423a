"""Addresses of pages: whether two of them, as people copy them, are of the same page."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit


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
