"""Which addresses are a stranger's server, and which are behind our own walls (SSRF).

Rules of OWASP's SSRF prevention cheat sheet: everything that is not public is refused, in whatever spelling.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# What `ipaddress` calls global and yet is not a stranger's server.
_OURS = tuple(
    map(
        ip_network,
        (
            "168.63.129.16/32",  # Azure's host, seen from its guests
            "192.0.0.0/24",  # protocol assignments (RFC 6890); Oracle keeps its metadata there
            "192.88.99.0/24",  # the way into 6to4 (RFC 7526)
        ),
    )
)
_GLOBAL_UNICAST = IPv6Network("2000::/3")  # all that is assigned of IPv6 (RFC 4291)
_TEREDO = IPv6Network("2001::/32")
_NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052


class Walls:
    """Which addresses may be connected to."""

    def __init__(self, allow: Iterable[str] = ()) -> None:
        """
        Args:
            allow: host names, addresses or networks (`cms.internal`, `10.0.0.0/8`) that may be private.
        """
        self._hosts: set[str] = set()
        self._networks: list[Network] = []
        for entry in allow:
            try:
                self._networks.append(ip_network(entry.strip("[]"), strict=False))
            except ValueError:
                self._hosts.add(_plain(entry))

    def permit(self, host: str, address: str) -> bool:
        """Whether `host`, which is at `address`, may be asked."""
        found = unwrapped(ip_address(address.partition("%")[0]))
        if _plain(host) in self._hosts or any(found in network for network in self._networks):
            return True
        return is_public(found)


def is_public(address: Address) -> bool:
    """Whether anybody on the internet could connect to it: not private, shared, local, reserved or for many."""
    address = unwrapped(address)
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    if any(address in network for network in _OURS):
        return False
    return isinstance(address, IPv4Address) or (address in _GLOBAL_UNICAST and address not in _TEREDO)


def unwrapped(address: Address) -> Address:
    """The IPv4 address that an IPv6 one is another spelling of, or leads to; else itself."""
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and (address in _NAT64 or (int(address) >> 32 == 0 and int(address) > 1)):
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        return inner or address
    return address


def _plain(host: str) -> str:
    return host.strip("[]").rstrip(".").lower()
