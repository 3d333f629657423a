"""The sender of a request: the other end of its connection, and the client behind the proxies there.

    connection ─▶ Peers: keeps its address, puts the one that a trusted proxy names in its place ─▶ app

Rates and logs go by the address that is named. Where a header is believed because of who sends it, that is the wrong
one, since it comes out of a header itself: there `peer_of` counts.

Each proxy appends its own caller to `X-Forwarded-For`. So the list is read from its end, and only as far as
those who wrote it are trusted; what stands before that is a stranger's word. uvicorn's own middleware does the same
except for `*`, where it takes the first address, which visitors choose.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from wiring.settings import EVERYBODY, TrustedProxy

PEER = "pagewire.peer"  # in the scope; a header cannot put anything there
SCHEMES = frozenset({"http", "https"})
LONGEST = 253  # characters of a name in the DNS
log = structlog.get_logger(__name__)


class Peers:
    """Must be outermost.

    Args:
        trusted: the setting `forwarded_allow_ips`. `*` trusts every peer, and no address that a peer names.
    """

    def __init__(self, app: ASGIApp, trusted: Iterable[TrustedProxy]) -> None:
        self._app = app
        self._everybody = EVERYBODY in trusted
        self._networks = [each for each in trusted if not isinstance(each, str)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope.get("client")
        if client:
            scope[PEER] = client[0]
            if self._everybody or self._trusts(address_in(client[0])):
                scope["client"] = (self._behind(client[0], _values(scope, b"x-forwarded-for")), 0)
                scheme = _values(scope, b"x-forwarded-proto")[-1:]
                scope["scheme"] = scheme[0] if SCHEMES.issuperset(scheme) and scheme else scope["scheme"]
        await self._app(scope, receive, send)

    def _behind(self, peer: str, named: list[str]) -> str:
        """The last of `named` who is no trusted proxy; what is no address ends the list."""
        nearest = peer
        for each in reversed(named):
            address = address_in(each)
            if address is None:
                break
            nearest = str(address)
            if not self._trusts(address):
                break
        return nearest

    def _trusts(self, address: IPv4Address | IPv6Address | None) -> bool:
        return address is not None and any(address in network for network in self._networks)


def peer_of(scope: Scope) -> str | None:
    """The address of the connection; None where Peers has not kept it, and for a Unix socket, which has none."""
    return scope.get(PEER)


def address_in(said: str) -> IPv4Address | IPv6Address | None:
    """The address in `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1` or `[2001:db8::1]:80`; None: there is none.

    An IPv4 address that a socket for both kinds has written as IPv6 is one of IPv4 (RFC 4291, 2.5.5.2).
    """
    host = said.strip()
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address


def _values(scope: Scope, name: bytes) -> list[str]:
    """What a header that may come more than once lists."""
    headers = [value.decode("latin-1") for each, value in scope.get("headers", ()) if each == name]
    return [value.strip() for value in ",".join(headers).split(",") if value.strip()]


class Hosts:
    """Names by which the gateway may be called; another name that leads here is an attack by DNS rebinding
    (docs/threat-model.md).

    Args:
        named: the setting `hosts`.
        origins: of all sites; a site's own host may lead to us as well.
    """

    def __init__(self, named: Iterable[str], origins: Iterable[str]) -> None:
        self._known = {name.lower() for name in named} | {_name(origin.partition("://")[2]) for origin in origins}

    def knows(self, host: str) -> bool:
        """Whether a header `Host` names us: no stranger can point addresses, or names without a dot, here."""
        name = _name(host)
        if not name:
            return False
        known = name in self._known or "." not in name or name.endswith(".localhost") or address_in(name) is not None
        if not known:
            log.warning("called by a name that the setting hosts (PAGEWIRE_HOSTS) has not", host=name[:LONGEST])
        return known

    def is_own_page(self, origin: str, host: str) -> bool:
        """Whether a page of our own asks. The scheme is not compared: a proxy before us may speak TLS."""
        return origin.partition("://")[2] == host and self.knows(host)


def _name(host: str) -> str:
    """Without a port, in lower case; "" where it is no name at all."""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""
