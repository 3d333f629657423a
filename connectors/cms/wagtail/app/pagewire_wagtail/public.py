"""What every visitor may see, and only that: Wagtail's own rules, looked at anew for each batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import router
from wagtail.models import PageViewRestriction, Site

from pagewire_wagtail.conf import Pagewire

Page: Any = PageViewRestriction._meta.get_field("page").related_model  # Wagtail 8 lets a project have its own


def newest() -> Any:
    """All pages, from where writes go: a replica that is behind would make old content look new."""
    return Page.objects.using(router.db_for_write(Page))


def language_tag(code: str) -> str:
    """Django's `pt-br` or `zh-hans` as BCP 47 writes it: `pt-BR`, `zh-Hans`."""
    first, *rest = code.replace("_", "-").split("-")
    shaped = [part.upper() if len(part) == 2 else part.title() if len(part) == 4 else part.lower() for part in rest]
    return "-".join([first.lower(), *shaped])


def key_of(page: Any) -> tuple[str, str]:
    """(id, language) at Pagewire. A page and its translations share a translation key, and so one id: whoever asks for
    the page in another language finds it, and copying or moving does not change it."""
    return str(page.translation_key), language_tag(page.locale.language_code)


@dataclass(frozen=True)
class Public:
    """The rules as they are now."""

    private: tuple[str, ...]  # tree paths below which nothing leaves
    roots: tuple[str, ...]  # URL paths of the sites' root pages, in every language
    aliases: bool

    @classmethod
    def now(cls, pagewire: Pagewire) -> Public:
        # Another process' change of a Site does not reach a cache in this one's memory.
        Site.clear_site_root_paths_cache()
        roots = tuple(root.root_path for root in Site.get_site_root_paths())
        return cls(tuple(_private_paths()), roots, pagewire.aliases)

    def pages(self) -> Any:
        """All that may be public, as a query; `has` decides."""
        found = newest().filter(live=True, depth__gt=1).select_related("locale")
        return found if self.aliases else found.filter(alias_of__isnull=True)

    def has(self, page: Any) -> bool:
        """Whether every visitor may see the page."""
        return (
            page.live
            and (self.aliases or page.alias_of_id is None)
            and not page.path.startswith(self.private)
            and page.url_path.startswith(self.roots)
            and getattr(page.specific_class, "pagewire_document", True) is not None
        )


def whole(page: Any) -> Any | None:
    """The page with the fields of its own model, from where it was read; None: it is gone by now."""
    model = page.specific_class
    if model is None or isinstance(page, model):
        return page
    return model._default_manager.using(page._state.db).filter(pk=page.pk).first()


def _private_paths() -> Iterable[str]:
    """Of restricted pages, and of their aliases, which Wagtail restricts alike."""
    restrictions = PageViewRestriction.objects.using(router.db_for_write(Page))
    ids = set(restrictions.values_list("page_id", flat=True))
    found = ids
    while found:
        found = set(newest().filter(alias_of_id__in=found).values_list("pk", flat=True)) - ids
        ids |= found
    return newest().filter(pk__in=ids).values_list("path", flat=True)
