"""Delivers waiting pages to Pagewire, in the order of the changes; editors' saves before bulk.

    lease ─▶ waiting records ─▶ the current pages ─▶ marked as exposed ─▶ one delivery ─▶ settled on a 200

Any number of web workers and commands may try, and the lease lets one of them deliver. It saves work and keeps the
order, but correctness does not depend on it (see models.PageRecord). Nothing here runs in a transaction: a courier that
dies leaves waiting records and a lease that expires.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from time import sleep
from typing import Any
from uuid import uuid4

from django.db.models import F
from django.utils import timezone

from pagewire_wagtail.conf import Pagewire
from pagewire_wagtail.documents import Unrenderable, digest, document
from pagewire_wagtail.models import CourierState, PageRecord, milliseconds
from pagewire_wagtail.public import Public, key_of, whole
from pagewire_wagtail.wire import Away, Taken, send

log = logging.getLogger(__name__)

BATCH = 100  # lines of a delivery; Pagewire accepts 500
BATCH_BYTES = 4 * 1024 * 1024
LEASE = 120.0  # seconds; longer than rendering a batch and waiting for an answer
HELD = 0.5  # seconds until the next try to get another courier's lease
LONGEST_PAUSE = 60.0  # seconds between two tries
LONGEST_RENDER_PAUSE = 3600.0  # seconds between two tries to render a page whose template fails


@dataclass(frozen=True)
class Line:
    """A record with the current state of its page."""

    record: PageRecord
    public: bool
    digest: str
    body: bytes


def pending() -> Any:
    """Waiting records, in their order."""
    return PageRecord.objects.filter(waiting=True).order_by("bulk", "revision", "pk")


def drain(pagewire: Pagewire, patience: int, report: Callable[[], None] = lambda: None) -> None:
    """Deliver together with other couriers until nothing is due. Ignores pauses for the first try.

    Args:
        patience: failures in a row after which it gives up.
        report: called after each step.

    Raises:
        Away: the failure of the last delivery.
    """
    CourierState.objects.filter(pk=1).update(next_try=0, failures=0, problem="")
    while (pause := work(pagewire)) is not None:
        report()
        state = CourierState.objects.get(pk=1)
        if state.failures >= patience:
            raise Away(state.problem)
        sleep(pause)


def work(pagewire: Pagewire) -> float | None:
    """Make one delivery at most.

    Returns:
        Seconds until the next call; None: nothing waits.
    """
    if not _due().exists():
        return None
    holder = str(uuid4())
    if not _acquire(holder):
        state = CourierState.objects.get(pk=1)
        return max(HELD, (state.next_try - milliseconds()) / 1000)
    try:
        deliver(pagewire, list(_due()[:BATCH]))
    except Away as err:
        return _failed(holder, err)
    except BaseException:
        _release(holder)
        raise
    _release(holder, failures=0, next_try=0, problem="")
    return 0


def deliver(pagewire: Pagewire, records: list[PageRecord]) -> int:
    """Send the current pages of these records that are in the lane of the first, in deliveries of at most BATCH_BYTES.

    Returns:
        The number of accepted pages.

    Raises:
        Away: pages that were not accepted still wait.
    """
    bulk = bool(records) and records[0].bulk
    records = [record for record in records if record.bulk == bulk]
    taken = 0
    batch: list[Line] = []
    for line in look(pagewire, records):
        if batch and sum(len(one.body) for one in batch) + len(line.body) > BATCH_BYTES:
            taken += _send(pagewire, batch, bulk)
            batch = []
        batch.append(line)
    return taken + (_send(pagewire, batch, bulk) if batch else 0)


def look(pagewire: Pagewire, records: list[PageRecord]) -> Iterable[Line]:
    """A line for each record that must be sent. The others are settled."""
    public = Public.now(pagewire)
    pages = {key_of(page): page for page in current(public, ((r.page_key, r.lang) for r in records))}
    for record in records:
        page = pages.get((record.page_key, record.lang))
        try:
            found = document(page and whole(page))
        except Unrenderable as err:
            _unrenderable(record, err)
            continue
        if found:
            page_line = {"op": "upsert", "page": found | {"revision": record.revision}}
            yield Line(record, True, digest(found), json.dumps(page_line).encode())
        elif record.exposed:
            gone = {"id": record.page_key, "lang": record.lang, "revision": record.revision}
            yield Line(record, False, "", json.dumps({"op": "delete", "page": gone}).encode())
        else:
            settle(record, public=False)


def current(public: Public, keys: Iterable[tuple[str, str]]) -> Iterable[Any]:
    """The pages of these keys that are public now."""
    wanted = set(keys)
    found = public.pages().filter(translation_key__in={page_key for page_key, _ in wanted})
    return (page for page in found if key_of(page) in wanted and public.has(page))


def expose(records: Iterable[PageRecord]) -> None:
    """Mark records as exposed before sending them, since Pagewire may have a page even if its answer is lost."""
    PageRecord.objects.filter(pk__in=[record.pk for record in records], exposed=False).update(exposed=True)


def settle(record: PageRecord, *, public: bool, digest: str = "", problem: str = "") -> None:
    """Store the outcome of a delivery. A mark that came meanwhile still waits."""
    same = PageRecord.objects.filter(pk=record.pk, revision=record.revision)
    values = {"digest": digest, "told_at": timezone.now(), "problem": problem, "tries": 0}
    if not public:
        values["exposed"] = False
    same.update(waiting=False, bulk=False, **values)


def _send(pagewire: Pagewire, batch: list[Line], bulk: bool) -> int:
    expose(line.record for line in batch if line.public)
    try:
        taken = send(pagewire, [line.body for line in batch], bulk=bulk)
    except Away as err:
        if not err.too_large:
            raise
        if len(batch) > 1:
            half = len(batch) // 2
            return _send(pagewire, batch[:half], bulk) + _send(pagewire, batch[half:], bulk)
        taken = Taken(0, {1: str(err)})
    for number, line in enumerate(batch, 1):
        refused = taken.refused.get(number, "")
        if refused:
            log.warning("Pagewire refused %s: %s", line.record, refused)
        settle(line.record, public=line.public or bool(refused), digest=line.digest, problem=refused)
    CourierState.objects.filter(pk=1).update(delivered_at=timezone.now())
    return taken.accepted


def _due() -> Any:
    return pending().filter(not_before__lte=milliseconds())


def _unrenderable(record: PageRecord, err: Unrenderable) -> None:
    """Store why a page cannot be rendered. It is retried with growing pauses, or when it is saved."""
    log.warning("page %s cannot be rendered for Pagewire: %s", record, err)
    pause = min(2.0**record.tries, LONGEST_RENDER_PAUSE)
    later = milliseconds() + round(timedelta(seconds=pause) / timedelta(milliseconds=1))
    same = PageRecord.objects.filter(pk=record.pk, revision=record.revision)
    same.update(not_before=later, tries=F("tries") + 1, problem=str(err))


def _acquire(holder: str) -> bool:
    now = milliseconds()
    free = CourierState.objects.filter(pk=1, until__lt=now, next_try__lte=now)
    taken = {"holder": holder, "until": now + round(LEASE * 1000)}
    if free.update(**taken):
        return True
    CourierState.objects.bulk_create([CourierState(pk=1)], ignore_conflicts=True)
    return bool(free.update(**taken))


def _release(holder: str, **learned: Any) -> None:
    CourierState.objects.filter(pk=1, holder=holder).update(holder="", until=0, **learned)


def _failed(holder: str, err: Away) -> float:
    failures = CourierState.objects.get(pk=1).failures
    # pipelines.runtime.retry is not available: this app is installed without Pagewire.
    pause = min(2.0**failures, LONGEST_PAUSE) if err.retry_after is None else err.retry_after
    if failures == 0:  # log once an outage
        log.warning("%s; everything is kept and sent later", err)
    next_try = milliseconds() + round(pause * 1000)
    _release(holder, failures=failures + 1, next_try=next_try, problem=str(err))
    return pause
