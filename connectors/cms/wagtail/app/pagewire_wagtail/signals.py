"""Signals of changes to pages, their addresses and their visibility.

    saved, published, copied, translated, planned ─▶ post_save      ─┐
    its slug or place changed                     ─▶ pre/post_save  ─┤ with all below it: their URLs changed, silently
    deleted                                       ─▶ post_delete    ─┼▶ mark
    a subtree restricted, or no more              ─▶ PageViewRestriction ─┤
    a site's address or root page changed         ─▶ Site           ─┤
    a document changed, that pages link to        ─▶ post_save      ─┘

post_save runs in the transaction of the save. Wagtail's page_published and page_unpublished come after it, when a
page's tags and its own `save` are complete, so they mark the page again. A planned publication (`go_live_at`) sends
page_published too early; a page that is not live gets no record then.
"""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.contrib.contenttypes.models import ContentType
from django.db.models.signals import post_delete, post_save, pre_delete, pre_save
from wagtail.models import PageViewRestriction, ReferenceIndex, Site
from wagtail.signals import page_published, page_unpublished

from pagewire_wagtail import marks
from pagewire_wagtail.conf import WrongSetting, pagewire
from pagewire_wagtail.public import Page, newest

# Fields that are not visible to visitors: drafts (Wagtail 8 saves them while an editor types), locks.
UNSEEN = frozenset(
    {
        "wagtail_admin_comments",
        "latest_revision_created_at",
        "draft_title",
        "latest_revision",
        "has_unpublished_changes",
        "numchild",
        "locked",
        "locked_at",
        "locked_by",
        "owner",
    }
)
BEFORE = "_pagewire_before"


def connect() -> None:
    pre_save.connect(page_saving)
    post_save.connect(page_saved)
    post_delete.connect(page_deleted)
    post_save.connect(document_saved)
    pre_delete.connect(document_saved)  # its references go with it
    page_published.connect(page_announced)
    page_unpublished.connect(page_announced)
    for signal in (post_save, post_delete):
        signal.connect(restriction_changed, sender=PageViewRestriction)
        signal.connect(site_changed, sender=Site)


def _listening() -> bool:
    try:
        return pagewire() is not None
    except WrongSetting:
        return False  # `manage.py check` reports it; a save must not fail


def _seen(update_fields: Any) -> bool:
    return update_fields is None or not UNSEEN.issuperset(update_fields)


def page_saving(instance: Any, raw: bool = False, update_fields: Any = None, **kwargs: Any) -> None:
    """Remember the page's path and its key at Pagewire before the save."""
    if not isinstance(instance, Page) or raw or instance.pk is None or not _seen(update_fields) or not _listening():
        return
    before = newest().filter(pk=instance.pk).select_related("locale").first()
    setattr(instance, BEFORE, before and (marks.of(before), before.url_path))


def page_saved(instance: Any, raw: bool = False, update_fields: Any = None, **kwargs: Any) -> None:
    if not isinstance(instance, Page) or raw or not _seen(update_fields) or not _listening():
        return
    before, url_path = instance.__dict__.pop(BEFORE, None) or (None, instance.url_path)
    changed = [marks.of(instance)] if url_path == instance.url_path else marks.subtrees(instance)
    if before and before[:2] != changed[0][:2]:
        changed.append(before._replace(live=False))
    marks.mark(changed, bulk=len(changed) > marks.MANY)


def page_deleted(instance: Any, **kwargs: Any) -> None:
    if isinstance(instance, Page) and _listening():
        marks.mark([marks.of(instance)._replace(live=False)])


def page_announced(instance: Any, **kwargs: Any) -> None:
    if _listening():
        marks.mark([marks.of(instance)])


def document_saved(instance: Any, raw: bool = False, **kwargs: Any) -> None:
    """Mark the pages that link to a document: its file or its visibility may be another one."""
    if not apps.is_installed("wagtail.documents") or raw or not _listening():
        return
    from wagtail.documents.models import AbstractDocument

    if isinstance(instance, AbstractDocument):
        pages = ContentType.objects.get_for_model(Page)
        references = ReferenceIndex.get_references_to(instance).filter(base_content_type=pages)
        ids = {int(id) for id in references.values_list("object_id", flat=True)}
        marks.mark(marks.of(page) for page in newest().filter(pk__in=ids, live=True).select_related("locale"))


def restriction_changed(instance: Any, raw: bool = False, **kwargs: Any) -> None:
    """Mark the subtree, never in bulk: private pages must be removed at once."""
    page = newest().filter(pk=instance.page_id).first()
    if page and not raw and _listening():
        marks.mark(marks.subtrees(page))


def site_changed(raw: bool = False, **kwargs: Any) -> None:
    """Mark all pages, since every URL may have changed. This is rare."""
    if not raw and _listening():
        pages = newest().order_by("pk").values_list(*marks.LISTED)
        marks.mark((marks.listed(*page) for page in pages.iterator()), bulk=True)
