"""Keys that are created and revoked while the system runs; every gateway knows them within seconds.

    create, revoke ─▶ store ◀── look, every REFRESH seconds ── known ◀── every request, without waiting

While the store is away, the last known keys stay valid, so that an outage locks no program out. A key carries its
expiry date, so it expires in an outage, too.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

import structlog

from pipelines.runtime.errors import PagewireError, Permanent
from pipelines.runtime.periodic_task import PeriodicTask
from schemas.access_key import CreatedKey, KeptKey, ListedKey, NewKey, Scope, digest_of, key_id

log = structlog.get_logger(__name__)

REFRESH = 5.0  # seconds between two looks: a key works, or stops working, everywhere within twice as many
LOOK_TIMEOUT = 5.0  # seconds for one look
MAX_KEYS = 1_000
KEY_BYTES = 32  # 256 bits
PREFIX = "pwk_"  # by which scanners for leaked secrets recognise it
# The admin key's own name, and what callers without a key are called.
RESERVED = frozenset({"admin", "visitor"})


class KeyTaken(Permanent):
    """Another key has this name."""

    code = "key-taken"


class TooManyKeys(Permanent):
    """The store is full; revoke unused keys."""

    code = "too-many-keys"


class KeyInFile(Permanent):
    """The key is in pagewire.yaml: remove it there to revoke it."""

    code = "key-in-file"


class UnknownKey(Permanent):
    """No key has this name or id."""

    code = "unknown-key"


class KeyStore(Protocol):
    """Stores keys (adapters.elastic.system_index). All methods raise Retryable."""

    async def all(self) -> Sequence[KeptKey]:
        """The oldest first."""

    async def add(self, key: KeptKey) -> bool:
        """False: the name is taken."""

    async def remove(self, name: str) -> bool:
        """False: there is none."""


@dataclass(frozen=True)
class FiledKey:
    """A key of pagewire.yaml."""

    name: str
    sha256: str
    scopes: tuple[Scope, ...]
    site: str | None
    groups: tuple[str, ...]


class AccessKeys:
    """One per process. `filed`: the keys of pagewire.yaml; `now`: the gateways' common time."""

    def __init__(self, store: KeyStore, filed: Iterable[FiledKey], now: Callable[[], datetime]) -> None:
        self._store = store
        self._filed = tuple(filed)
        self._names = RESERVED | {key.name for key in self._filed}
        self._now = now
        self._known: tuple[KeptKey, ...] = ()
        keeping = PeriodicTask("access keys", REFRESH, self.look)
        self.start, self.aclose = keeping.start, keeping.aclose  # looks now, and again from time to time

    def known(self) -> Sequence[KeptKey]:
        """The valid created keys, as far as this process knows them."""
        now = self._now()
        return [key for key in self._known if key.name not in self._names and not key.over(now)]

    async def create(self, new: NewKey, by: str) -> CreatedKey:
        """Create a key; it works in this process at once. Raises: KeyTaken, TooManyKeys, Retryable."""
        if new.name in self._names:
            where = "is a name of ours" if new.name in RESERVED else "stands in pagewire.yaml"
            raise KeyTaken(f"{new.name!r} {where}; choose another name")
        if len(await self._store.all()) >= MAX_KEYS:
            raise TooManyKeys(f"there are {MAX_KEYS:,} keys already; revoke unused ones")
        secret = PREFIX + secrets.token_urlsafe(KEY_BYTES)
        kept = KeptKey(**dict(new), sha256=digest_of(secret), created_at=self._now(), created_by=by)
        if not await self._store.add(kept):
            raise KeyTaken(f"there is a key {new.name!r} already; revoke it, or choose another name")
        await self.look()
        return CreatedKey(**dict(self._listed(kept)), key=secret)

    async def revoke(self, name_or_id: str) -> ListedKey:
        """Revoke a key; in this process it stops working at once. Raises: UnknownKey, KeyInFile, Retryable."""
        kept = await self._store.all()
        found = [key for key in kept if key.name == name_or_id] or [key for key in kept if key.id == name_or_id]
        if found and await self._store.remove(found[0].name):
            await self.look()
            return self._listed(found[0])
        if any(name_or_id in (key.name, key_id(key.sha256)) for key in self._filed):
            raise KeyInFile("this key stands in pagewire.yaml: take it out there and start the gateways anew")
        raise UnknownKey("no key has this name or id")

    async def list(self) -> list[ListedKey]:
        """All keys, with those of pagewire.yaml. Raises: Retryable."""
        filed = [
            ListedKey(
                id=key_id(key.sha256),
                name=key.name,
                scopes=key.scopes,
                site=key.site,
                groups=key.groups,
                kept_in="file",
                state="good",
            )
            for key in self._filed
        ]
        return [*filed, *(self._listed(key) for key in await self._store.all())]

    async def look(self) -> bool:
        """Read the keys once; returns whether the store answered. Without an answer the known keys stay."""
        try:
            async with asyncio.timeout(LOOK_TIMEOUT):
                self._known = tuple(await self._store.all())
        except (PagewireError, TimeoutError) as err:
            log.warning("the keys cannot be read; those known last stay good", known=len(self._known), error=repr(err))
            return False
        return True

    def _listed(self, key: KeptKey) -> ListedKey:
        state: Literal["good", "expired", "shadowed"] = "expired" if key.over(self._now()) else "good"
        if key.name in self._names:
            state = "shadowed"
        told = dict(key)
        del told["sha256"]
        return ListedKey(**told, id=key.id, kept_in="store", state=state)
