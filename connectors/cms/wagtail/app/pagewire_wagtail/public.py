"""The pages that every visitor may see, by Wagtail's own rules, read again for each batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import router
from wagtail.models import PageViewRestriction, Site

from pagewire_wagtail.conf import Pagewire

Page: Any = PageViewRestriction._meta.get_field("page").related_model  # Wagtail 8 lets a project have its own


def newest() -> Any:
    """All pages from the database for writes, since a replica may lag behind."""
    return Page.objects.using(router.db_for_write(Page))


def language_tag(code: str) -> str:
    """A BCP 47 tag for Django's code: `pt-BR` for `pt-br`, `zh-Hans` for `zh-hans`."""
    first, *rest = code.replace("_", "-").split("-")
    shaped = [part.upper() if len(part) == 2 else part.title() if len(part) == 4 else part.lower() for part in rest]
    return "-".join([first.lower(), *shaped])


def key_of(page: Any) -> tuple[str, str]:
    """Id and language at Pagewire. The id is the translation key, which a page shares with its translations and keeps
    when it is moved.
    """
    return str(page.translation_key), language_tag(page.locale.language_code)


@dataclass(frozen=True)
class Public:
    """The current rules."""

    private: tuple[str, ...]  # tree paths below which pages are private
    roots: tuple[str, ...]  # URL paths of the sites' root pages, in every language
    aliases: bool

    @classmethod
    def now(cls, pagewire: Pagewire) -> Public:
        # A cache in this process's memory does not see other processes' changes of a Site.
        Site.clear_site_root_paths_cache()
        roots = tuple(root.root_path for root in Site.get_site_root_paths())
        return cls(tuple(_private_paths()), roots, pagewire.aliases)

    def pages(self) -> Any:
        """A query for all pages that may be public; `has` decides."""
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
    """The page with the fields of its model, from the same database; None: it is deleted meanwhile."""
    model = page.specific_class
    if model is None or isinstance(page, model):
        return page
    return model._default_manager.using(page._state.db).filter(pk=page.pk).first()


def _private_paths() -> Iterable[str]:
    """Paths of restricted pages and of their aliases, which Wagtail restricts as well."""
    restrictions = PageViewRestriction.objects.using(router.db_for_write(Page))
    ids = set(restrictions.values_list("page_id", flat=True))
    found = ids
    while found:
        found = set(newest().filter(alias_of_id__in=found).values_list("pk", flat=True)) - ids
        ids |= found
    return newest().filter(pk__in=ids).values_list("path", flat=True)
