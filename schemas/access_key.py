"""Bearer keys that are created, listed and revoked while the system runs. Only their hashes are stored."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from schemas.base import SiteId, Wire, form
from schemas.page import Group

Scope = Literal["ingest", "chat", "view", "edit", "admin"]
# Scopes that include others. Changing pages and asking questions are for programs, so no scope includes them.
INCLUDED: Mapping[Scope, frozenset[Scope]] = {"edit": frozenset({"view"}), "admin": frozenset({"edit", "view"})}
ID_LENGTH = 12  # hex digits of the hash: enough to name a key, and useless for access

KeyName = Annotated[
    str,
    form(
        r"^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$",
        "letters, digits, `.`, `_` and `-`, 64 at most; a letter or a digit at both ends",
    ),
]
KeyId = Annotated[str, form(rf"^[0-9a-f]{{{ID_LENGTH}}}$", f"{ID_LENGTH} digits of 0-9 and a-f")]
Digest = Annotated[str, form(r"^[0-9a-f]{64}$", "64 digits of 0-9 and a-f")]


class NewKey(Wire):
    """A key to create."""

    name: KeyName = Field(
        description="For logs, lists and conversations: says whose key it is. No other key may have it."
    )
    scopes: tuple[Scope, ...] = Field(min_length=1, max_length=10, description="What the key may do.")
    site: SiteId | None = Field(default=None, description="The one site it is good for; default: all.")
    groups: tuple[Group, ...] = Field(
        default=(), max_length=100, description="Access groups whose pages it may read, and may give to visitors."
    )
    expires_at: AwareDatetime | None = Field(default=None, description="When it stops being good; default: never.")


class KeptKey(NewKey):
    """A stored key."""

    sha256: Digest
    created_at: AwareDatetime
    created_by: str = Field(default="", description="Name of the key, or the machine's user, that made it.")

    @property
    def id(self) -> str:
        return key_id(self.sha256)

    def over(self, now: datetime) -> bool:
        """Whether it has expired."""
        return self.expires_at is not None and self.expires_at <= now


class ListedKey(NewKey):
    """A key in a list."""

    # pagewire.yaml has no pattern for these.
    name: str
    groups: tuple[str, ...] = ()
    id: KeyId = Field(description="The first twelve digits of its SHA-256.")
    kept_in: Literal["file", "store"] = Field(description="`file`: pagewire.yaml, which names it until it is edited.")
    state: Literal["good", "expired", "shadowed"] = Field(
        description="`shadowed`: pagewire.yaml has a key of the same name, so that this one is not good."
    )
    created_at: AwareDatetime | None = None
    created_by: str = ""
    last_used_at: AwareDatetime | None = Field(
        default=None, description="To the hour, a minute late; null: not since this is noted."
    )


class CreatedKey(ListedKey):
    """A new key, with the key itself, which is shown only once."""

    key: str = Field(description="Send it as `Authorization: Bearer KEY`. It is shown only here.")


class KeyList(Wire):
    keys: tuple[ListedKey, ...] = Field(description="Those of pagewire.yaml, then those that were made, oldest first.")


def key_id(digest: str) -> str:
    """The id of a key, from its SHA-256."""
    return digest[:ID_LENGTH]


def digest_of(key: str) -> str:
    """The SHA-256 of a key in hex, which is stored instead of it."""
    return sha256(key.encode("utf-8", "replace")).hexdigest()
