"""The state of each page at Pagewire: one record a page and language. The waiting records are the queue."""

from __future__ import annotations

import time

from django.db import models, router


class _Newest(models.Manager):
    """Reads from the database for writes, see public.newest."""

    def get_queryset(self) -> models.QuerySet:
        return super().get_queryset().using(router.db_for_write(self.model))


class PageRecord(models.Model):
    """A page in a language. The record is kept after the page is deleted, so that revisions never go back.

    `revision` grows with every mark. A courier reads it before the page, so the sent content is never older than its
    revision. The record only stops waiting if no mark came meanwhile. Two couriers may send a page twice, but Pagewire
    keeps the higher revision, which has the newer content.
    """

    page_key = models.CharField(max_length=36)  # Page.translation_key: the page's id at Pagewire
    lang = models.CharField(max_length=35)  # BCP 47 tag of the page's locale
    revision = models.BigIntegerField(default=0)  # of the newest change: milliseconds since 1970, growing
    waiting = models.BooleanField(default=False)  # to be sent
    bulk = models.BooleanField(default=False)  # many pages at once: editors' saves go first
    exposed = models.BooleanField(default=False)  # Pagewire may have it: set before it is sent
    digest = models.CharField(max_length=64, blank=True)  # SHA-256 of the document as last sent
    told_at = models.DateTimeField(null=True)  # when Pagewire last accepted it
    problem = models.TextField(blank=True)  # why it could not be rendered, or was refused by Pagewire
    tries = models.PositiveIntegerField(default=0)  # to render it
    not_before = models.BigIntegerField(default=0)  # next try, milliseconds since 1970

    objects = _Newest()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["page_key", "lang"], name="pagewire_one_record_a_page"),)
        indexes = (models.Index(fields=["waiting", "bulk", "revision"], name="pagewire_queue"),)
        verbose_name = "page known to Pagewire"
        verbose_name_plural = "pages known to Pagewire"

    def __str__(self) -> str:
        return f"{self.page_key} ({self.lang})"


class CourierState(models.Model):
    """One record with the lease of the current courier and the next try. Some databases cannot lock a row."""

    holder = models.CharField(max_length=36, blank=True)
    until = models.BigIntegerField(default=0)  # the lease ends, milliseconds since 1970
    failures = models.PositiveIntegerField(default=0)  # in a row
    next_try = models.BigIntegerField(default=0)  # milliseconds since 1970
    problem = models.TextField(blank=True)  # of the last delivery
    delivered_at = models.DateTimeField(null=True)

    objects = _Newest()


def milliseconds() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000
