"""Settings of who calls: a proxy for signing in to the console with the roles of users, and the origins of websites."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, IPvAnyNetwork, StringConstraints, field_validator, model_validator

from pipelines.runtime.settings import SettingsGroup
from schemas.base import SiteId
from schemas.page import Group

# Names of headers as in RFC 9110, 5.1, without unusual characters.
HeaderName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]+$", max_length=100)]
# Headers with another meaning, which a browser may send.
TAKEN = frozenset({"authorization", "cookie", "forwarded", "host", "origin", "x-forwarded-for"})


class ProxyRole(SettingsGroup):
    """The rights of a group, or of one user, of the proxy."""

    group: str | None = Field(
        default=None, min_length=1, description="Its name as the proxy says it, letter by letter."
    )
    user: str | None = Field(
        default=None, min_length=1, description="In place of a group: one user, as the proxy says the name."
    )
    scope: Literal["view", "edit", "admin"] = Field(description="As of a key: `edit` has `view` with it, `admin` both.")
    sites: tuple[SiteId, ...] | None = Field(
        default=None, min_length=1, description="The sites it is for; default: all, and what concerns all."
    )
    reads: tuple[Group, ...] = Field(
        default=(), description="Access groups whose pages may be read there, as `groups` of a key."
    )

    @model_validator(mode="after")
    def _of_somebody(self) -> Self:
        if (self.group is None) == (self.user is None):
            raise ValueError("a role is for a `group` or for a `user`: give one of them")
        return self


class ProxySignInSettings(SettingsGroup):
    """Signing in to the console through a proxy that authenticates users."""

    proxies: tuple[IPvAnyNetwork, ...] = Field(
        min_length=1,
        description="Addresses and networks whose word is taken, such as `10.0.3.7` and `fd00:3::/64`: of the other "
        "end of the connection itself, whatever `X-Forwarded-For` says. Nothing but the proxy may connect from there.",
    )
    user_header: HeaderName = Field(default="X-Forwarded-Email", description="Header with the user's name.")
    groups_header: HeaderName | None = Field(
        default="X-Forwarded-Groups", description="Header with the user's groups; null: none is read."
    )
    groups_separator: str = Field(
        default=",", min_length=1, max_length=1, description="What stands between two groups: one character."
    )
    sign_out: str | None = Field(
        default=None,
        pattern=r"^(/[^/\\\s]\S*|https?://\S+)$",
        description="Where *Sign out* leads, such as `/oauth2/sign_out`. Default: there is no such link.",
    )
    roles: tuple[ProxyRole, ...] = Field(
        min_length=1, description="Who may what, see below. Several that fit add up; who has none is refused."
    )

    @field_validator("proxies")
    @classmethod
    def _somebody_in_particular(cls, value: tuple[IPvAnyNetwork, ...]) -> tuple[IPvAnyNetwork, ...]:
        if any(network.prefixlen == 0 for network in value):
            raise ValueError("this would believe everybody; name the proxy's address")
        return value

    @model_validator(mode="after")
    def _headers_of_their_own(self) -> Self:
        names = [name.lower() for name in (self.user_header, self.groups_header) if name is not None]
        if len(set(names)) < len(names):
            raise ValueError("user_header and groups_header are the same")
        if taken := TAKEN.intersection(names):
            raise ValueError(f"{', '.join(sorted(taken))}: this header says something else; choose another")
        return self


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
