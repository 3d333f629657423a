"""Signatures in both directions by Standard Webhooks (https://www.standardwebhooks.com).

    signature = v1,BASE64(HMAC-SHA256(key, "{webhook-id}.{webhook-timestamp}." + content))

The content is the body, or `GET NAME?QUERY` for a GET, so that a signature is valid for one request only.
"""

from __future__ import annotations

import base64
import hmac
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from uuid import uuid4

ID = "webhook-id"
TIMESTAMP = "webhook-timestamp"
SIGNATURE = "webhook-signature"
WINDOW = 300  # seconds either way
MOST_SIGNATURES = 8
LONGEST = 1_000  # characters of a header


class BadSignature(Exception):
    """The signature is missing, wrong or too old; says which, and nothing else."""


def sign(key: bytes, id: str, timestamp: str, signed: bytes) -> str:
    """One signature."""
    digest = hmac.new(key, f"{id}.{timestamp}.".encode() + signed, sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def headers(keys: Sequence[bytes], signed: bytes) -> dict[str, str]:
    """The three headers of a new delivery."""
    id, timestamp = f"msg_{uuid4().hex}", str(int(time.time()))
    return {ID: id, TIMESTAMP: timestamp, SIGNATURE: " ".join(sign(key, id, timestamp, signed) for key in keys)}


def verify(given: Mapping[str, str], keys: Sequence[bytes], signed: bytes) -> None:
    """Raises: BadSignature: not by one of our keys, or out of the time window."""
    id, timestamp, signatures = (given.get(name, "") for name in (ID, TIMESTAMP, SIGNATURE))
    if not (id and timestamp and signatures):
        raise BadSignature("the signature is missing")
    if max(map(len, (id, timestamp, signatures))) > LONGEST or not (timestamp.isascii() and timestamp.isdecimal()):
        raise BadSignature("the signature is wrong")
    if abs(time.time() - int(timestamp[:12])) > WINDOW:
        raise BadSignature("the signature is too old, or the clocks differ")
    expected = [sign(key, id, timestamp, signed).encode() for key in keys]
    matches = [
        hmac.compare_digest(one.encode("utf-8", "replace"), right)
        for one in signatures.split(" ")[:MOST_SIGNATURES]
        for right in expected
    ]
    if True not in matches:
        raise BadSignature("the signature is wrong")
