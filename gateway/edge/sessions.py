"""Sessions of the console: a signed cookie, verified without any store.

    <Unix seconds of its end>.<mark of the key>.<random>.<signature>

The mark is a keyed hash of the key's digest: a reader of the cookie learns nothing about the key, and a key that is
revoked, expires or is taken out of the settings ends its sessions with it.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable
from hashlib import sha256

from pydantic import SecretStr

from gateway.edge.auth import Caller, Keys
from schemas.access_key import digest_of

LIFE = 8 * 3600  # seconds: a working day
NONCE_BYTES = 12  # two sessions of one key have forms of their own


class Sessions:
    """Begins and verifies. `clock` gives Unix seconds."""

    def __init__(self, secret: SecretStr, keys: Keys, clock: Callable[[], float] = time.time) -> None:
        # A key of its own, so that nothing signed here can pass as a visitor token, nor the other way round.
        self._key = hmac.digest(secret.get_secret_value().encode(), b"console", sha256)
        self._keys = keys
        self._clock = clock

    def begin(self, key: str) -> str | None:
        """A cookie for the holder of a key that may look (`view`, `edit`, `admin`); None for anybody else."""
        caller = self._keys.caller(key)
        if caller is None or not caller.may("view"):
            return None
        said = f"{int(self._clock()) + LIFE}.{self._mark(digest_of(key))}.{secrets.token_hex(NONCE_BYTES)}"
        return f"{said}.{self._sign('session', said)}"

    def caller(self, cookie: str) -> Caller | None:
        """Whose session it is; None when it is not ours, altered or over, or when its key is not good any more."""
        said, _, signature = cookie.rpartition(".")
        # The signature comes first: nothing unsigned is ever parsed.
        if not _same(self._sign("session", said), signature):
            return None
        end, mark, _ = said.split(".")
        if int(end) <= self._clock():
            return None
        caller = self._keys.marked(mark, self._mark)
        return caller if caller is not None and caller.may("view") else None

    def form_token(self, cookie: str) -> str:
        """What a form of this session carries, so that no other website can send one."""
        return self._sign("form", cookie)

    def sent_by_us(self, cookie: str, token: str) -> bool:
        """Whether a form with this token was made for this session."""
        return _same(self.form_token(cookie), token)

    def user_form_token(self, user: str) -> str:
        """The same for somebody who has no session here, since a proxy has signed them in: `<Unix seconds of its
        end>.<signature>`, for this user alone.
        """
        end = int(self._clock()) + LIFE
        return f"{end}.{self._sign('user form', f'{end}.{user}')}"

    def sent_by_user(self, user: str, token: str) -> bool:
        """Whether a form with this token was made for this user, and not longer ago than a session lasts."""
        end, _, signature = token.partition(".")
        return _same(self._sign("user form", f"{end}.{user}"), signature) and int(end) > self._clock()

    def _mark(self, digest: str) -> str:
        return self._sign("key", digest)

    def _sign(self, purpose: str, said: str) -> str:
        return hmac.new(self._key, f"{purpose}\n{said}".encode("utf-8", "replace"), sha256).hexdigest()


def _same(ours: str, theirs: str) -> bool:
    return hmac.compare_digest(ours.encode(), theirs.encode("utf-8", "replace"))
