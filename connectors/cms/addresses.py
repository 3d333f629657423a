"""Distinguishes public addresses from internal ones (SSRF).

By OWASP's SSRF prevention cheat sheet, all addresses that are not public are refused, in any spelling.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Addresses that are global for `ipaddress`, but not public servers.
_INTERNAL = tuple(
    map(
        ip_network,
        (
            "168.63.129.16/32",  # Azure's host, as seen by its guests
            "192.0.0.0/24",  # protocol assignments (RFC 6890); Oracle's metadata service
            "192.88.99.0/24",  # 6to4 relays (RFC 7526)
        ),
    )
)
_GLOBAL_UNICAST = IPv6Network("2000::/3")  # the assigned part of IPv6 (RFC 4291)
_TEREDO = IPv6Network("2001::/32")
_NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052


class AddressFilter:
    """Decides which addresses may be connected to."""

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
        """Whether `host` with this `address` may be connected to."""
        found = unwrapped(ip_address(address.partition("%")[0]))
        if _plain(host) in self._hosts or any(found in network for network in self._networks):
            return True
        return is_public(found)


def same_site(one: str, other: str) -> bool:
    """Whether host and port are the same, with https and http."""
    a, b = urlsplit(one), urlsplit(other)
    return (a.hostname, a.port) == (b.hostname, b.port)


def is_public(address: Address) -> bool:
    """Whether the address is on the public internet: not private, shared, local, reserved or multicast."""
    address = unwrapped(address)
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    if any(address in network for network in _INTERNAL):
        return False
    return isinstance(address, IPv4Address) or (address in _GLOBAL_UNICAST and address not in _TEREDO)


def unwrapped(address: Address) -> Address:
    """The IPv4 address that an IPv6 one embeds or is translated to; else the address itself."""
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and (address in _NAT64 or (int(address) >> 32 == 0 and int(address) > 1)):
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        return inner or address
    return address


def _plain(host: str) -> str:
    return host.strip("[]").rstrip(".").lower()
