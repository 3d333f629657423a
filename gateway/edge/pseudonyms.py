"""Pseudonyms: what the question log calls a conversation, which its id cannot be told from."""

from __future__ import annotations

import hmac
from hashlib import sha256

from pydantic import SecretStr

LENGTH = 32  # hex digits: 128 bits


class Pseudonyms:
    """The same for all gateways that share the secret of visitor tokens. With another secret, others."""

    def __init__(self, secret: SecretStr) -> None:
        self._secret = secret

    def of(self, site: str, conversation_id: str) -> str:
        said = f"outcomes\0{site}\0{conversation_id}".encode()
        return hmac.new(self._secret.get_secret_value().encode(), said, sha256).hexdigest()[:LENGTH]
