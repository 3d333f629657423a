"""Users that a trusted proxy has signed in (OpenID Connect through oauth2-proxy or the like), and what they may.

peer's address ── not one of ours ─▶ its headers mean nothing
      │ ours
user's header ── none ─▶ no user; a key may sign in
      │ one                            twice, or no name: refused
groups' header ─▶ roles ─▶ ProxyUser ─▶ at a site: a Caller
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import structlog

from gateway.edge.auth import Caller
from gateway.edge.peers import address_in
from gateway.edge.problems import Problem
from schemas.access_key import Scope
from wiring.proxy_sign_in import ProxyRole, ProxySignInSettings
from wiring.settings import USER_PREFIX

log = structlog.get_logger(__name__)

MAX_USER = 200  # characters
Headers = Sequence[tuple[bytes, bytes]]  # as ASGI has them: names in lower case


@dataclass(frozen=True)
class ProxyUser:
    """Somebody the proxy knows. `roles`: those of the settings that fit."""

    user: str
    roles: tuple[ProxyRole, ...]

    @property
    def name(self) -> str:
        """For the audit log: no key can be called so."""
        return USER_PREFIX + self.user

    def sites(self, all_sites: Iterable[str]) -> tuple[str, ...]:
        """Those that may be looked at."""
        return tuple(site for site in all_sites if self.at(site).may("view"))

    def at(self, site: str | None) -> Caller:
        """What the user may do at a site; None: where all sites are concerned. Without a role there: nothing."""
        everywhere = [role for role in self.roles if role.sites is None]
        here = [role for role in self.roles if role.sites is not None and site in role.sites]
        scopes: frozenset[Scope] = frozenset(role.scope for role in (*everywhere, *here))
        groups = tuple(dict.fromkeys(group for role in (*everywhere, *here) for group in role.reads))
        of_all = Caller(self.name, frozenset(role.scope for role in everywhere), None, groups=groups)
        # What a role of this very site adds is good at this site alone.
        adds = any(not of_all.may(scope) for scope in scopes)
        return Caller(self.name, scopes, site, groups=groups) if adds else of_all


class ProxyUsers:
    """Reads what the proxy says. `settings` None: no proxy is believed."""

    def __init__(self, settings: ProxySignInSettings | None) -> None:
        self._settings = settings

    @property
    def sign_out(self) -> str | None:
        """Where users sign out."""
        return self._settings.sign_out if self._settings else None

    def user(self, peer: str | None, headers: Headers) -> ProxyUser | None:
        """Who asks, by the word of the proxy; None: it says nothing, or who says it is not believed.

        Args:
            peer: address of the other end of the connection; None: unknown.

        Raises:
            Problem: 403: the proxy's word can be understood in two ways, or not at all.
        """
        settings = self._settings
        if settings is None:
            return None
        if not self._believes(peer):
            if _values(headers, settings.user_header):
                # Of a proxy the address has to be known, of a person it is kept nowhere.
                address = address_in(peer or "")
                known = peer if address is not None and address.is_private else "a public address"
                log.warning("a user's header came from an address that proxy_sign_in.proxies does not name", peer=known)
            return None
        said = _one(headers, settings.user_header)
        if said is None:
            return None
        # Two headers of one name may have been made one on their way, with a comma (RFC 9110, 5.3).
        if len(said) > MAX_USER or "," in said or not said.isprintable():
            raise _unclear(f"what {settings.user_header} says is no user's name")
        named = _one(headers, settings.groups_header) if settings.groups_header else None
        groups = {group.strip() for group in (named or "").split(settings.groups_separator)}
        return ProxyUser(said, tuple(role for role in settings.roles if role.user == said or role.group in groups))

    def _believes(self, peer: str | None) -> bool:
        assert self._settings is not None
        address = address_in(peer or "")
        return address is not None and any(address in network for network in self._settings.proxies)


def _values(headers: Headers, name: str) -> list[bytes]:
    wanted = name.lower().encode()
    return [value for each, value in headers if each.lower() == wanted]


def _one(headers: Headers, name: str) -> str | None:
    """The header's value; None where there is none, or an empty one. Raises: Problem: there are two, or no text."""
    values = _values(headers, name)
    if len(values) > 1:
        # One may be the browser's own, which the proxy should have taken out.
        raise _unclear(f"the header {name} came more than once")
    try:
        return values[0].decode().strip() or None if values else None
    except UnicodeDecodeError:
        raise _unclear(f"the header {name} is not UTF-8") from None


def _unclear(detail: str) -> Problem:
    log.warning("a proxy's word about its user is refused", reason=detail)
    return Problem(403, "unclear-user", f"{detail}; see proxy_sign_in")
