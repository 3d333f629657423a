"""The key of a server that speaks OpenAI's API, as its client wants it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pydantic import SecretStr

NO_KEY = "none"  # servers on one's own machine want no key, but the client insists on one


def key_of(secret: SecretStr | None) -> Callable[[], Awaitable[str]]:
    """What the client asks before each request: the key in a file may be another one by then."""

    async def key() -> str:
        return secret.get_secret_value() if secret else NO_KEY

    return key
