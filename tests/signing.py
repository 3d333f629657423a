"""Webhooks as a CMS signs them, written from the standard and not with our own code (https://www.standardwebhooks.com)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwpagewire"
OLD_SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDpagewire"


def signature(secret: str, id: str, timestamp: str, body: bytes) -> str:
    key = base64.b64decode(secret.split("_")[1])
    digest = hmac.new(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def signed(body: bytes, secret: str = SECRET, *, id: str = "msg_1", age: float = 0.0) -> dict[str, str]:
    """The headers of a delivery that was signed `age` seconds ago."""
    timestamp = str(int(time.time() - age))
    return {
        "webhook-id": id,
        "webhook-timestamp": timestamp,
        "webhook-signature": signature(secret, id, timestamp, body),
    }
