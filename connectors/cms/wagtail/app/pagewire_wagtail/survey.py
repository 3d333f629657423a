"""Answers `pagewire import` and `pagewire reconcile`: every public page with its revision, and pages by id.

Each page is rendered and compared with the last sent version, which finds changes without a signal (`queryset.update`,
SQL, a snippet, a template). It writes its own records only, never a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import monotonic
from typing import Any

from pagewire_wagtail.conf import Pagewire
from pagewire_wagtail.courier import current, expose
from pagewire_wagtail.documents import Unrenderable, digest, document
from pagewire_wagtail.marks import CHUNK, LISTED, Marked, listed, mark
from pagewire_wagtail.models import PageRecord, milliseconds
from pagewire_wagtail.public import Public, key_of, newest, whole

PAGES = 100  # read with one query
SECONDS = 10.0  # for one answer: web servers usually kill a worker after 30


def inventory(pagewire: Pagewire, after: str) -> Iterator[dict[str, Any]]:
    """Pages after `after` in the order of their primary keys; at last the next key, or the end."""
    end = monotonic() + SECONDS
    public = Public.now(pagewire)
    if not after:
        _mark_gone(pagewire)
    while True:
        pages = public.pages().order_by("pk")
        chunk = list((pages.filter(pk__gt=after) if after else pages)[:PAGES])
        if not chunk:
            yield {"end": True}
            return
        seen = [page for page in chunk if public.has(page)]
        records = known(seen)
        for page in seen:
            record = records[key_of(page)]
            try:
                found = document(whole(page))
            except Unrenderable:
                found = {}  # the page exists, and must not count as deleted
            if found is not None:
                yield {"id": record.page_key, "lang": record.lang, "revision": revision_of(record, found)}
        after = str(chunk[-1].pk)
        if monotonic() > end:
            yield {"next": after}
            return


def documents(pagewire: Pagewire, wanted: list[tuple[str, str]], limit: int) -> Iterator[dict[str, Any]]:
    """The current pages. Missing pages are left out; pages beyond `limit` characters must be requested again."""
    public = Public.now(pagewire)
    pages = {key_of(page): page for page in current(public, wanted)}
    records = known(pages.values())
    size = 0
    for key, page in pages.items():
        name = {"id": key[0], "lang": key[1]}
        if size > limit:
            yield {"later": name}
            continue
        try:
            found = document(whole(page))
        except Unrenderable as err:
            yield {"problem": name | {"reason": str(err)}}
            continue
        if found:
            size += len(found["content"])
            expose([records[key]])
            yield {"page": found | {"revision": revision_of(records[key], found)}}


def known(pages: Iterable[Any]) -> dict[tuple[str, str], PageRecord]:
    """The records of these pages, created if missing."""
    keys = [key_of(page) for page in pages]
    found = PageRecord.objects.filter(page_key__in={page_key for page_key, _ in keys})
    records = {(record.page_key, record.lang): record for record in found}
    if missing := [PageRecord(page_key=key[0], lang=key[1]) for key in keys if key not in records]:
        PageRecord.objects.bulk_create(missing, ignore_conflicts=True)
        records = {(record.page_key, record.lang): record for record in found.all()}
    return records


def revision_of(record: PageRecord, found: dict[str, Any]) -> int:
    """The revision of a rendered page: a new one if it differs from the last sent version and has no mark."""
    while not record.waiting and found and record.digest != (now := digest(found)):
        revision = max(record.revision + 1, milliseconds())
        same = PageRecord.objects.filter(pk=record.pk, revision=record.revision)
        if same.update(revision=revision, digest=now):
            return revision
        record.refresh_from_db()
    return record.revision


def mark_all() -> None:
    """Mark every page, and all pages that Pagewire may have, with new revisions."""
    pages = newest().filter(depth__gt=1, live=True).order_by("pk").values_list(*LISTED)
    mark((listed(*page) for page in pages.iterator()), bulk=True)
    exposed = PageRecord.objects.filter(exposed=True, waiting=False).values_list("page_key", "lang")
    mark((Marked(*key, live=False) for key in list(exposed)), bulk=True)


def _mark_gone(pagewire: Pagewire) -> None:
    """Mark pages that Pagewire may have and that are not public any more, in case a signal was missed."""
    public = Public.now(pagewire)
    exposed = PageRecord.objects.filter(exposed=True, waiting=False).order_by("pk")
    last = 0
    while records := list(exposed.filter(pk__gt=last)[:CHUNK]):
        last = records[-1].pk
        keys = {(record.page_key, record.lang) for record in records}
        gone = keys - {key_of(page) for page in current(public, keys)}
        if gone:
            mark(Marked(*key, live=False) for key in sorted(gone))
