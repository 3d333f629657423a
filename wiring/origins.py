"""Normalises origins to the form of browsers (https://html.spec.whatwg.org/#ascii-serialisation-of-an-origin):
`https://www.Example.org:443/` becomes `https://www.example.org`.
"""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

PORTS = {"http": 80, "https": 443}  # default ports, which browsers omit
SCHEME = re.compile(r"(?!file)[a-z][a-z0-9+.-]*://", re.IGNORECASE)  # also of apps; a file's origin is `null`
HOST = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?|(?=[^:]*:)[0-9a-f:.]*")  # a name or IPv4; IPv6


def origin(written: str) -> str:
    """The normalised origin.

    Raises:
        ValueError: it is no origin, or more than one; the message says what is allowed.
    """
    text = written.strip()
    if "*" in text:
        raise ValueError("origins are named one by one: there is no `*`")
    if not SCHEME.match(text):
        raise ValueError("must begin with https:// or http://")
    try:
        parts = urlsplit(text)
        host, port = _ascii(parts.hostname or ""), parts.port
    except ValueError:
        raise ValueError("is no address of a website") from None
    if not HOST.fullmatch(host) or parts.username is not None:
        raise ValueError("must be the scheme, the host, and the port where it is not the usual one")
    shown = f"[{host}]" if ":" in host else host
    found = f"{parts.scheme}://{shown}" + (f":{port}" if port not in (None, PORTS.get(parts.scheme)) else "")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError(f"has no path, for browsers send none: {found}")
    return found


def _ascii(host: str) -> str:
    """`münchen.de` is `xn--mnchen-3ya.de`. Raises: ValueError."""
    if host.isascii():
        return host
    import httpx  # here, because it loads slowly and is rarely needed

    try:
        return httpx.URL(f"https://{host}").raw_host.decode()
    except httpx.InvalidURL as err:
        raise ValueError("no name of a host") from err


Origin = Annotated[str, AfterValidator(origin)]
