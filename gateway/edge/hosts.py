"""Names by which the gateway may be called: what else calls itself our own page is somebody else's.

Whoever has a name in the internet's DNS can have it lead to this machine, or into an intranet, while their page is
open (DNS rebinding). That page then has our origin, as far as the browser knows, and `Host` says its name.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

import structlog

from gateway.edge.peers import address_in

LONGEST = 253  # characters of a name in the DNS

log = structlog.get_logger(__name__)


class Hosts:
    """
    Args:
        named: the setting `hosts`.
        origins: of all sites; a site's own host may lead to us as well.
    """

    def __init__(self, named: Iterable[str], origins: Iterable[str]) -> None:
        self._known = {name.lower() for name in named} | {_name(origin.partition("://")[2]) for origin in origins}

    def knows(self, host: str) -> bool:
        """Whether a header `Host` names us: addresses, and names without a dot, are in nobody's power to point here."""
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
