"""Marks changed pages in the transaction of the change, so that both are committed or neither."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from django.db import router, transaction
from django.db.models import F, Value
from django.db.models.functions import Greatest

from pagewire_wagtail import kick
from pagewire_wagtail.models import PageRecord, milliseconds
from pagewire_wagtail.public import key_of, language_tag, newest

CHUNK = 500  # lines a statement
LISTED = ("translation_key", "locale__language_code", "live")
MANY = 50  # pages changed at once, from which they are sent in bulk, after editors' saves


class Marked(NamedTuple):
    """A page that may have changed."""

    page_key: str
    lang: str
    live: bool  # a page that is not live only matters if Pagewire may have it


def of(page: Any) -> Marked:
    return Marked(*key_of(page), page.live)


def listed(translation_key: object, language_code: str, live: bool) -> Marked:
    return Marked(str(translation_key), language_tag(language_code), live)


def subtrees(page: Any) -> list[Marked]:
    """The page and its descendants, and those of its aliases, which show the same content."""
    found: dict[tuple[str, str], Marked] = {}
    roots, seen = [page], set()
    while roots:
        root = roots.pop()
        if root.pk in seen:
            continue
        seen.add(root.pk)
        below = newest().filter(path__startswith=root.path).order_by("path")
        for page in below.values_list(*LISTED):
            marked = listed(*page)
            found[marked[:2]] = marked
        roots += newest().filter(alias_of_id=root.pk)
    return list(found.values())


def mark(pages: Iterable[Marked], *, bulk: bool = False) -> None:
    """Mark pages, and deliver them after the current transaction, if there is one.

    Args:
        bulk: no editor waits for these pages.
    """
    pages = iter(pages)
    while chunk := list(islice(pages, CHUNK)):
        for (lang, live), keys in _grouped(chunk):
            found = PageRecord.objects.filter(lang=lang, page_key__in=keys)
            if _update(found, bulk) < len(keys) and live:
                new = [PageRecord(page_key=page_key, lang=lang) for page_key in keys]
                PageRecord.objects.bulk_create(new, ignore_conflicts=True)
                _update(found, bulk)
    transaction.on_commit(kick.kick, using=router.db_for_write(PageRecord))


def _update(records: Any, bulk: bool) -> int:
    if bulk:
        records.exclude(waiting=True, bulk=False).update(bulk=True)  # those in the save lane stay there
    lane = {} if bulk else {"bulk": False}
    revision = Greatest(F("revision") + 1, Value(milliseconds()))
    count: int = records.update(revision=revision, waiting=True, not_before=0, **lane)
    return count


def _grouped(pages: Iterable[Marked]) -> Iterator[tuple[tuple[str, bool], list[str]]]:
    """Pages grouped by language and liveness, in a fixed order, so that transactions cannot deadlock."""
    groups: dict[tuple[str, bool], list[str]] = defaultdict(list)
    for page in sorted(set(pages)):
        groups[(page.lang, page.live)].append(page.page_key)
    yield from sorted(groups.items())
