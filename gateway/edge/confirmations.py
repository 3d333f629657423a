"""Confirmations: an act that a program asks for is done only when it is asked for again, with what we answered first.

    first call ─▶ plan, in words ─▶ token ─▶ second call ─▶ the same plan? ─▶ done

A token stands for the caller and for the plan's words. What has changed meanwhile changes the plan, and is asked again.
Nothing is stored, so that any gateway knows the token.
"""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Callable
from hashlib import sha256

from pydantic import SecretStr

GOOD_FOR = 300  # seconds: for a person who reads what would happen
LONGEST = 100  # characters of a token


class Confirmations:
    """Signs and verifies tokens; the same for all gateways with one secret. `clock`: Unix seconds."""

    def __init__(self, secret: SecretStr, clock: Callable[[], float] = time.time) -> None:
        # A key of its own, so that nothing signed here can pass as a visitor token, nor the other way round.
        self._key = hmac.digest(secret.get_secret_value().encode(), b"confirmation", sha256)
        self._clock = clock

    def token(self, who: str, plan: str) -> str:
        """Good for GOOD_FOR seconds."""
        return self._signed(who, plan, str(int(self._clock()) + GOOD_FOR))

    def confirms(self, token: str, who: str, plan: str) -> bool:
        """Whether `who` got the token for this very plan, not too long ago."""
        until = token.partition(".")[0]
        expected = self._signed(who, plan, until).encode("utf-8", "replace")
        genuine = hmac.compare_digest(expected, token.encode("utf-8", "replace"))
        return genuine and int(until) > self._clock()

    def _signed(self, who: str, plan: str, until: str) -> str:
        signed = json.dumps([who, until, plan]).encode()
        return f"{until}.{hmac.digest(self._key, signed, sha256).hex()[:32]}"
