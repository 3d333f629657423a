"""Visitor tokens: short-lived, good for asking on one site, verified without any store.

`pwv1.<payload>.<signature>`, both base64url; the signature is HMAC-SHA256 over `pwv1.<payload>`.

A token that is over is good for one thing: a new token of the same visitor, who keeps their conversations. Access
groups are not kept, nor renewed with a token that is still good: a right that its holder could renew would never end.
"""

from __future__ import annotations

import base64
import hmac
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import AwareDatetime, BaseModel, SecretStr

PREFIX = "pwv1"
# Days in which a token that is over can still be exchanged for a new one of the same visitor. Whose conversations are
# deleted sooner need not be known for longer.
VISITOR_DAYS = 30
VISITOR_BYTES = 12  # 96 bits: visitors never meet


class VisitorToken(BaseModel):
    """What a chat page gets before its first question."""

    token: str
    expires_at: AwareDatetime


@dataclass(frozen=True)
class Visitor:
    """The visitor that a token stands for."""

    site: str
    visitor: str
    groups: tuple[str, ...] = ()


class VisitorTokens:
    """Signs and verifies. `clock` gives Unix seconds."""

    def __init__(
        self, secret: SecretStr, ttl: int, renewable: float = 0, clock: Callable[[], float] = time.time
    ) -> None:
        """`ttl` and `renewable` are seconds: how long a token is good, and how much longer for a new one."""
        self._secret = secret.get_secret_value().encode()
        self._ttl = ttl
        self._renewable = renewable
        self._clock = clock

    def issue(self, site: str, before: str = "", groups: tuple[str, ...] = ()) -> VisitorToken:
        """A token for the visitor of the token `before`; without one of this site, for one never seen before.

        Args:
            groups: access groups that the visitor has for as long as this very token lives.
        """
        known = self._visitor(before, self._renewable)
        visitor = known.visitor if known and known.site == site else secrets.token_urlsafe(VISITOR_BYTES)
        expires = int(self._clock()) + self._ttl
        payload = json.dumps({"s": site, "v": visitor, "e": expires} | ({"g": groups} if groups else {}))
        signed = f"{PREFIX}.{_b64(payload.encode())}"
        return VisitorToken(token=f"{signed}.{self._sign(signed)}", expires_at=datetime.fromtimestamp(expires, UTC))

    def verify(self, token: str) -> Visitor | None:
        """The visitor; None when the token is not ours, altered or over."""
        return self._visitor(token, 0)

    def _visitor(self, token: str, grace: float) -> Visitor | None:
        signed, _, signature = token.rpartition(".")
        # The signature comes first: nothing unsigned is ever parsed.
        if not hmac.compare_digest(self._sign(signed).encode(), signature.encode("utf-8", "replace")):
            return None
        payload = json.loads(_unb64(signed.removeprefix(PREFIX + ".")))
        if payload["e"] + grace <= self._clock():
            return None
        return Visitor(site=payload["s"], visitor=payload["v"], groups=tuple(payload.get("g", ())))

    def _sign(self, signed: str) -> str:
        return _b64(hmac.digest(self._secret, signed.encode("utf-8", "replace"), "sha256"))


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
