"""Who is calling: bearer keys with scopes for programs, visitor tokens for chat pages, session cookies for the console.

    <Unix seconds of its end>.<mark of the key>.<random>.<signature>

The mark in a cookie is a keyed hash of the key's digest: a reader of the cookie learns nothing about the key, and a key
that is revoked, expires or is taken out of the settings ends its sessions with it.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pydantic import SecretStr

from gateway.edge.tokens import VisitorTokens
from pipelines.runtime.secret import SHORTEST_KEY, SHORTEST_SIGNING, kept
from schemas.access_key import INCLUDED, KeptKey, Scope, digest_of
from wiring.settings import KeySettings, Settings

EVERY_SCOPE: frozenset[Scope] = frozenset({"ingest", "chat", "admin"})
VISITOR_SCOPES: frozenset[Scope] = frozenset({"chat"})
ADMIN_KEY = "admin.key"


@dataclass(frozen=True)
class Caller:
    """A caller. `site` None: every site. `visitor` is set for visitor tokens, and empty for an agent without a token.

    `groups`: the access groups whose pages it may read, besides those that everybody may.
    """

    name: str
    scopes: frozenset[Scope]
    site: str | None
    visitor: str | None = None
    groups: tuple[str, ...] = ()

    def may(self, scope: Scope) -> bool:
        """Whether it has the scope, or one that includes it."""
        return any(scope == own or scope in INCLUDED.get(own, ()) for own in self.scopes)

    @property
    def operates(self) -> bool:
        """Whether it may do what concerns all sites."""
        return self.site is None and self.may("admin")


class Keys:
    """Everything a bearer value may be.

    Args:
        admin, keys: as settings have them; good as long as this process runs.
        made: those that were made while the system runs, and are good at this moment.
    """

    def __init__(
        self,
        admin: SecretStr,
        keys: Iterable[KeySettings],
        tokens: VisitorTokens,
        made: Callable[[], Sequence[KeptKey]],
    ) -> None:
        bootstrap = Caller(name="admin", scopes=EVERY_SCOPE, site=None)
        self._set = [(digest_of(admin.get_secret_value()), bootstrap)] + [
            (key.sha256, Caller(key.name, frozenset(key.scopes), key.site, groups=key.groups)) for key in keys
        ]
        self._made = made
        self._tokens = tokens

    def caller(self, bearer: str) -> Caller | None:
        """The caller that `bearer` stands for; None: it is not known. Every key is compared, in constant time."""
        if not bearer:
            return None
        digest = digest_of(bearer)
        matches = [caller for known, caller in self._known() if hmac.compare_digest(known, digest)]
        if matches:
            return matches[0]
        visitor = self._tokens.verify(bearer)
        if visitor is None:
            return None
        return Caller("visitor", VISITOR_SCOPES, visitor.site, visitor.visitor, visitor.groups)

    def marked(self, mark: str, mark_of: Callable[[str], str]) -> Caller | None:
        """The program for whose key `mark_of` makes this mark out of the digest; None when there is none (any more)."""
        matches = [caller for known, caller in self._known() if hmac.compare_digest(mark_of(known), mark)]
        return matches[0] if matches else None

    def _known(self) -> list[tuple[str, Caller]]:
        """All keys that are good at this moment, each by its digest."""
        made = [
            (key.sha256, Caller(key.name, frozenset(key.scopes), key.site, groups=key.groups)) for key in self._made()
        ]
        return self._set + made


def admin_key(settings: Settings) -> tuple[SecretStr, Path | None]:
    """The bootstrap admin key, and the file it lies in unless it was configured.

    Raises:
        SettingsError: the file cannot be read or written, or its secret is not good enough.
    """
    if settings.admin_key is not None:
        return settings.admin_key, None
    path = settings.home / ADMIN_KEY
    return kept(path, "admin_key (PAGEWIRE_ADMIN_KEY)", SHORTEST_KEY), path


def known_admin_key(settings: Settings) -> SecretStr | None:
    """The same for a program that must not make one: None where there is none yet. Raises: SettingsError."""
    there = settings.admin_key is not None or (settings.home / ADMIN_KEY).exists()
    return admin_key(settings)[0] if there else None


def token_secret(settings: Settings) -> SecretStr:
    """What visitor tokens are signed with: the same for all gateways of one home.

    Raises:
        SettingsError: the file cannot be read or written, or its secret is not good enough.
    """
    if settings.token_secret is not None:
        return settings.token_secret
    return kept(settings.home / "token.secret", "token_secret (PAGEWIRE_TOKEN_SECRET)", SHORTEST_SIGNING)


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
