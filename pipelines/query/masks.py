"""Masks: removes personal data from visitors' words, as far as their site's privacy rules keep words at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from pipelines.query.live.site_privacy import SitePrivacy
from pipelines.runtime.settings import Site
from text.masking import masked, published, regions_of

CACHED_SITES = 1_000  # sites whose own phone numbers and addresses are cached


class Masks:
    """Masks of all sites. One per process; safe to use from several threads.

    Args:
        privacy: the rules in force, which may change while the system runs; default: those of the settings.
    """

    def __init__(self, sites: Mapping[str, Site], privacy: SitePrivacy | None = None) -> None:
        self._sites = sites
        self._privacy = privacy or SitePrivacy(sites)

    def knows(self, site: str) -> bool:
        return self._privacy.of(site) is not None

    def logs(self, site: str) -> bool:
        """Whether the site keeps the outcomes of its questions."""
        rules = self._privacy.of(site)
        return rules is not None and rules.log_questions != "off"

    def logs_words(self, site: str) -> bool:
        """Whether the site keeps visitors' words, masked."""
        rules = self._privacy.of(site)
        return rules is not None and rules.log_questions == "on"

    def logs_prompts(self, site: str) -> bool:
        """Whether the site also keeps input and output of models, masked."""
        rules = self._privacy.of(site)
        return rules is not None and rules.log_prompts and rules.log_questions == "on"

    def kept(self, site: str, text: str | None, public: Iterable[str] = ()) -> str | None:
        """The text without personal data; None where the site keeps no words.

        Args:
            public: texts of the website; addresses and numbers in them stay.
        """
        known = self._sites.get(site)
        if text is None or known is None or not self.logs_words(site):
            return None
        regions = regions_of(known.timezone, known.languages)
        own = _own(tuple(known.contact.values()), regions)
        kept = masked(text, regions, own)
        # Searching whole passages for numbers takes milliseconds, so it is done only if something was masked.
        return kept if kept == text else masked(text, regions, own | published(public, regions))


@lru_cache(CACHED_SITES)
def _own(contacts: tuple[str, ...], regions: tuple[str, ...]) -> frozenset[str]:
    """Addresses and numbers in the site's own contact texts."""
    return published(contacts, regions)
