"""The API key for OpenAI's client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pydantic import SecretStr

NO_KEY = "none"  # local servers need no key, but the client requires one


def key_of(secret: SecretStr | None) -> Callable[[], Awaitable[str]]:
    """A function that the client calls before each request, since a key file may change."""

    async def key() -> str:
        return secret.get_secret_value() if secret else NO_KEY

    return key
