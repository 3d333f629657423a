"""Pseudonyms: what the question log calls a conversation and an asker. Neither tells an id."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from hashlib import sha256

from pydantic import SecretStr

LENGTH = 32  # hex digits: 128 bits


class Pseudonyms:
    """The same for all gateways that share the secret of visitor tokens. With another secret, others."""

    def __init__(self, secret: SecretStr) -> None:
        self._secret = secret

    def of(self, site: str, conversation_id: str) -> str:
        said = f"outcomes\0{site}\0{conversation_id}".encode()
        return self._hashed(said)

    def asker(self, site: str, visitor: str, wording: Iterable[str]) -> str:
        """Says whether a visitor has asked the same twice. Of two different questions it does not tell who asked."""
        return self._hashed("\0".join(("asker", site, visitor, *wording)).encode("utf-8", "replace"))

    def _hashed(self, said: bytes) -> str:
        return hmac.new(self._secret.get_secret_value().encode(), said, sha256).hexdigest()[:LENGTH]
