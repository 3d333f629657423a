"""Handovers: a visitor's message to a person is stored first, then delivered, and never forgotten silently.

    form ─▶ take: stored as waiting ─▶ the visitor has a reference
                     │ every worker of the stage `log`, every few seconds
                     ▼
          due ─▶ claimed ─▶ sent ─▶ delivered
                     ▲        └─ away: waiting, later and later ─ GIVE_UP ─▶ failed, with the reason
                     └─────────────── redeliver ◀───────────────────────────────┘

A worker that dies between sending and storing sends again, under the same reference. Sites are delivered to side by
side, so that a receiver that is down delays its own site only.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

import structlog

from pipelines.conversations.turns import ConversationOwner
from pipelines.runtime.errors import PagewireError, Permanent, Retryable
from pipelines.runtime.metrics import HANDOVERS
from pipelines.runtime.periodic_task import PeriodicTask
from schemas.conversation import ConversationDetail
from schemas.handover import Handover, HandoverOrder, HandoverState, HandoverTurn, StoredHandover

log = structlog.get_logger(__name__)

EVERY = 3.0  # seconds between two looks for messages that are due
LEASE = timedelta(minutes=3)  # in which no other worker delivers a message; longer than SEND_TIMEOUT
SEND_TIMEOUT = 60.0  # seconds for one attempt
MOST_TRIES = 55  # the pauses after 54 attempts are GIVE_UP together
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=30), timedelta(hours=1)  # after the first failure; then doubled
GIVE_UP = timedelta(hours=48)  # after the message came, or was redelivered: a weekend's outage of a mail server
AT_ONCE = 50  # sites in a look
ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"  # without what is misread: 30 to the 8th references
MAX_REASON = 500  # characters

Version = tuple[int, int]


class HandoverChanged(Retryable):
    """Another process has written the message meanwhile."""

    code = "handover-changed"


class UnknownHandover(Permanent):
    """No such message; it may have been erased."""

    code = "unknown-handover"


class NotWaiting(Permanent):
    """Only a message that was given up, or delivered, can be delivered again."""

    code = "handover-waiting"


@dataclass(frozen=True)
class VersionedHandover:
    """A stored message and its version; None: it is new."""

    stored: StoredHandover
    version: Version | None = None

    @property
    def handover(self) -> Handover:
        return self.stored.handover


class HandoverStore(Protocol):
    """Stores messages (adapters.elastic.conversations). All methods raise Retryable."""

    async def put(self, kept: VersionedHandover) -> VersionedHandover:
        """Store it, seen by the next look, if the stored version is still `kept.version`. Raises: HandoverChanged."""

    async def get(self, site: str, reference: str) -> VersionedHandover | None: ...

    async def due(self, now: datetime, limit: int) -> Sequence[VersionedHandover]:
        """Of each site the waiting message that is due for the longest time."""

    async def of_site(
        self, site: str, state: HandoverState | None, limit: int, after: str | None = None
    ) -> tuple[Sequence[StoredHandover], str | None]:
        """The newest first, and where to read on."""

    async def delete(self, site: str, reference: str) -> bool:
        """False: there is none."""

    async def erase(self, owner: ConversationOwner, conversation_id: str | None = None) -> int:
        """Delete those of an owner, or those that took one of its conversations along. Returns their number."""

    async def expire(self, before: Mapping[str, datetime]) -> Mapping[str, int]:
        """Delete older ones, by site, whatever their state. Returns their numbers by site."""


# Delivers a message of a site (connectors.handover). The receiver knows a repeat by its id. Raises: Retryable;
# Permanent: it is refused.
Deliver = Callable[[Handover], Awaitable[None]]


class Handovers:
    """Takes messages, and shows them to operators. One per gateway."""

    def __init__(self, store: HandoverStore, now: Callable[[], datetime]) -> None:
        self._store = store
        self._now = now

    async def take(
        self, owner: ConversationOwner, order: HandoverOrder, lang: str, conversation: ConversationDetail | None
    ) -> str:
        """Store a message, with the conversation that goes along. Returns its reference. Raises: Retryable."""
        now = self._now()
        reference = _reference()
        turns = conversation.turns if conversation else ()
        handover = Handover(
            reference=reference,
            site=owner.site,
            at=now,
            lang=lang,
            name=order.name,
            reply_to=order.reply_to,
            message=order.message,
            conversation=tuple(HandoverTurn(question=turn.question, answer=turn.answer) for turn in turns),
        )
        stored = StoredHandover(
            handover=handover,
            state="waiting",
            next_at=now,
            owner=owner.name,
            conversation_id=conversation.conversation_id if conversation else None,
        )
        await self._store.put(VersionedHandover(stored))
        return reference

    async def redeliver(self, site: str, reference: str) -> StoredHandover:
        """Deliver a message again from the beginning. Raises: UnknownHandover, NotWaiting, Retryable."""
        kept = await self._store.get(site, reference)
        if kept is None:
            raise UnknownHandover(f"site {site} has no message {reference}")
        if kept.stored.state == "waiting":
            raise NotWaiting(f"{reference} is waiting; it is delivered by itself")
        again = kept.stored.model_copy(
            update={"state": "waiting", "tries": 0, "next_at": self._now(), "done_at": None, "reason": ""}
        )
        await self._store.put(VersionedHandover(again, kept.version))
        return again


class Deliveries:
    """Delivers what is waiting. One per worker of the stage `log`.

    Args:
        couriers: by site; a site without one was set up before, and its messages wait.
        now: Elasticsearch's time, so that all workers agree on what is due.
        label: of a site, for metrics.
    """

    def __init__(
        self,
        store: HandoverStore,
        couriers: Mapping[str, Deliver],
        now: Callable[[], Awaitable[datetime]],
        label: Callable[[str], str],
    ) -> None:
        self._store = store
        self._couriers = couriers
        self._now = now
        self._label = label
        self._task = PeriodicTask("handovers", EVERY, self.look)
        self._busy: dict[str, asyncio.Task[None]] = {}  # by site: a receiver that is slow holds up its own site alone

    async def start(self) -> None:
        await self._task.start(at_once=False)

    async def aclose(self) -> None:
        await self._task.aclose()
        for task in self._busy.values():
            task.cancel()
        await asyncio.gather(*self._busy.values(), return_exceptions=True)

    async def look(self) -> None:
        """Begin to deliver what is due, and return."""
        self._busy = {site: task for site, task in self._busy.items() if not task.done()}
        try:
            found = await self._store.due(await self._now(), AT_ONCE)
        except Retryable as err:
            log.warning("messages to people cannot be looked for", code=err.code, error=str(err))
            return
        for kept in found:
            site = kept.handover.site
            if site not in self._busy:
                self._busy[site] = asyncio.create_task(self._deliver(kept), name=f"handovers {site}")

    async def _deliver(self, kept: VersionedHandover) -> None:
        handover, tries = kept.handover, kept.stored.tries + 1
        try:
            claimed = kept.stored.model_copy(update={"tries": tries, "next_at": await self._now() + LEASE})
            mine = await self._store.put(VersionedHandover(claimed, kept.version))
            failure = await self._send(handover)
            update = _after(tries, failure, await self._now())
            await self._store.put(VersionedHandover(claimed.model_copy(update=update), mine.version))
        except HandoverChanged:
            return  # another worker has it, or it was erased
        except Retryable as err:
            log.warning("a message to a person waits", site=handover.site, code=err.code, error=str(err))
            return
        state = "retried" if update["state"] == "waiting" else str(update["state"])
        HANDOVERS.labels(self._label(handover.site), state).inc()
        log.info("message to a person", site=handover.site, reference=handover.reference, state=state, tries=tries)

    async def _send(self, handover: Handover) -> PagewireError | None:
        """Returns: why it was not delivered."""
        courier = self._couriers.get(handover.site)
        if courier is None:
            return Retryable("the site has no `handover` in pagewire.yaml any more")
        try:
            async with asyncio.timeout(SEND_TIMEOUT):
                await courier(handover)
        except TimeoutError:
            return Retryable(f"no answer within {SEND_TIMEOUT:g} s")
        except PagewireError as err:
            return err
        except Exception as err:  # a message that cannot be written, or a fault of ours: operators see it as failed
            log.exception("a message to a person cannot be sent", site=handover.site, reference=handover.reference)
            return Permanent(f"{type(err).__name__}: {err}")
        return None


def _after(tries: int, failure: PagewireError | None, now: datetime) -> dict[str, object]:
    if failure is None:
        return {"state": "delivered", "next_at": None, "done_at": now, "reason": ""}
    reason = str(failure)[:MAX_REASON]
    if isinstance(failure, Permanent) or tries >= MOST_TRIES:
        return {"state": "failed", "next_at": None, "done_at": now, "reason": reason}
    return {"state": "waiting", "next_at": now + _pause(tries), "reason": reason}


def _pause(tries: int) -> timedelta:
    """After so many failed attempts, 1 and more."""
    doubled: timedelta = FIRST_PAUSE * 2 ** min(tries - 1, 20)
    return min(doubled, LONGEST_PAUSE)


def _reference() -> str:
    letters = "".join(secrets.choice(ALPHABET) for _ in range(8))
    return f"{letters[:4]}-{letters[4:]}"
