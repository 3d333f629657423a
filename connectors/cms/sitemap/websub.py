"""Subscriptions to feeds by WebSub (https://www.w3.org/TR/websub/). Pure.

    follower ─▶ POST to the feed's hub: callback, topic, key
    hub ─▶ GET callback: does the gateway want this? ─▶ POST callback, signed, at each new entry

Token and key of a subscription follow from the gateway's secret. So no process has to store it: the follower
subscribes, and any gateway with the same secret answers the hub.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from hashlib import sha256
from urllib.parse import urlencode

from pydantic import SecretStr

ALGORITHMS = ("sha1", "sha256", "sha384", "sha512")  # by 7.1 of the standard
LEASE = 10 * 24 * 3600  # seconds that a subscription should last
RENEWAL = 6 * 3600.0  # seconds between two requests; hubs may grant less than they are asked for
LONGEST_TOPIC = 2_000  # characters


@dataclass(frozen=True)
class Subscription:
    """One connector's subscription to one topic."""

    site: str
    connector: str
    topic: str
    secret: SecretStr = field(repr=False)

    @property
    def token(self) -> str:
        """An unguessable part of the callback's address."""
        return self._derived("token")

    @property
    def key(self) -> str:
        """The hub signs with it."""
        return self._derived("key")

    def callback(self, gateway: str) -> str:
        """The address that the hub calls. Args: gateway: its public address."""
        query = urlencode({"topic": self.topic, "token": self.token})
        return f"{gateway.rstrip('/')}/v1/sites/{self.site}/connectors/{self.connector}/websub?{query}"

    def request(self, gateway: str) -> bytes:
        """The form that subscribes or renews (5.1)."""
        return urlencode(
            {
                "hub.mode": "subscribe",
                "hub.topic": self.topic,
                "hub.callback": self.callback(gateway),
                "hub.lease_seconds": LEASE,
                "hub.secret": self.key,
            }
        ).encode()

    def is_token(self, token: str) -> bool:
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())

    def is_signed(self, signature: str, body: bytes) -> bool:
        """Whether `X-Hub-Signature` is the hub's, of this body."""
        algorithm, _, given = signature.strip().partition("=")
        if algorithm not in ALGORITHMS:
            return False
        right = hmac.digest(self.key.encode(), body, algorithm).hex()
        return hmac.compare_digest(given.lower().encode("utf-8", "replace"), right.encode())

    def _derived(self, purpose: str) -> str:
        said = "\n".join(("websub", purpose, self.site, self.connector, self.topic))
        digest = hmac.digest(self.secret.get_secret_value().encode(), said.encode("utf-8", "replace"), sha256)
        return urlsafe_b64encode(digest).decode().rstrip("=")
