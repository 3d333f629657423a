"""Signed webhooks, which prove a CMS's identity and an unchanged body (https://www.standardwebhooks.com).

    signature = v1,BASE64(HMAC-SHA256(key, "{webhook-id}.{webhook-timestamp}." + body))

A replayed delivery is valid for WINDOW seconds, but has no effect, since each of its changes has a revision.
"""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Self

from pydantic import SecretStr

from connectors.cms.settings import signing_key
from pipelines.runtime.errors import Permanent

ID = "webhook-id"
TIMESTAMP = "webhook-timestamp"
SIGNATURE = "webhook-signature"
VERSION = "v1"
WINDOW = 300  # seconds in both directions, for slow deliveries and wrong clocks
LONGEST = 1_000  # characters of a header; eight signatures fit
MOST_SIGNATURES = 8
_SIGNATURE = re.compile(rf"{VERSION},[A-Za-z0-9+/]{{43}}=")  # 32 bytes


class BadSignature(Permanent):
    """The signature is missing, too old, or wrong; says which, and nothing else."""

    code = "bad-signature"


@dataclass(frozen=True)
class Delivery:
    """The headers of a delivery within the time window. Its body must still be verified."""

    id: str
    timestamp: str
    signatures: tuple[bytes, ...]

    @classmethod
    def of(cls, headers: Mapping[str, str], now: float) -> Self:
        """Read the headers; `now` in seconds since 1970.

        Raises:
            BadSignature: one is missing or malformed, or the time is out of the window.
        """
        id, timestamp, signature = (headers.get(name, "") for name in (ID, TIMESTAMP, SIGNATURE))
        for name, value in ((ID, id), (TIMESTAMP, timestamp), (SIGNATURE, signature)):
            if not value:
                raise BadSignature(f"missing: no {name}")
            if len(value) > LONGEST:
                raise BadSignature(f"wrong: {name} is too long")
        if not (timestamp.isascii() and timestamp.isdecimal()) or len(timestamp) > 12:
            raise BadSignature(f"wrong: {TIMESTAMP} is not in whole seconds since 1970")
        if abs(now - int(timestamp)) > WINDOW:
            raise BadSignature(
                f"too old, or too far ahead: {TIMESTAMP} is more than {WINDOW} s from the time here; "
                "compare the two clocks"
            )
        given = [one for one in signature.split(" ")[:MOST_SIGNATURES] if _SIGNATURE.fullmatch(one)]
        if not given:
            raise BadSignature(f"wrong: none in {SIGNATURE} is `{VERSION},` and the base64 of 32 bytes")
        return cls(id, timestamp, tuple(one.encode() for one in given))

    def verification(self, secret: SecretStr) -> Verification:
        """A verification of the body, piece by piece."""
        return Verification(self.signatures, _signing(secret, self.id, self.timestamp))

    def verify(self, secret: SecretStr, body: bytes) -> None:
        """Raises: BadSignature: none of the signatures is that of `body`."""
        verification = self.verification(secret)
        verification.update(body)
        verification.finish()


class Verification:
    """Verifies the signature of a body, piece by piece."""

    def __init__(self, signatures: tuple[bytes, ...], signed: hmac.HMAC) -> None:
        self._signatures = signatures
        self._signed = signed

    def update(self, piece: bytes) -> None:
        """Add the next piece of the body."""
        self._signed.update(piece)

    def finish(self) -> None:
        """Raises: BadSignature: none of the signatures is that of the body."""
        expected = _encoded(self._signed).encode()
        # Compare all of them, in constant time.
        if True not in [hmac.compare_digest(given, expected) for given in self._signatures]:
            raise BadSignature("wrong: another secret, or another body than was signed")


def sign(secret: SecretStr, id: str, timestamp: str, body: bytes) -> str:
    """The signature of a delivery, for its header."""
    signed = _signing(secret, id, timestamp)
    signed.update(body)
    return _encoded(signed)


def _signing(secret: SecretStr, id: str, timestamp: str) -> hmac.HMAC:
    """The HMAC of a delivery, before its body."""
    return hmac.new(signing_key(secret), f"{id}.{timestamp}.".encode("utf-8", "replace"), sha256)


def _encoded(signed: hmac.HMAC) -> str:
    return f"{VERSION},{base64.b64encode(signed.digest()).decode()}"


def signed_headers(secret: SecretStr, id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The three headers of a delivery."""
    return {ID: id, TIMESTAMP: str(timestamp), SIGNATURE: sign(secret, id, str(timestamp), body)}
