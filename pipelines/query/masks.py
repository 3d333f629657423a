"""Masks: what of visitors' words is kept, as their site wants it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from pipelines.query.live.site_privacy import SitePrivacy
from pipelines.runtime.settings import Site
from text.masking import masked, published, regions_of

KNOWN = 1_000  # sites whose own numbers and addresses are kept in mind


class Masks:
    """For all sites. One per process; its threads may ask at once.

    Args:
        privacy: what they keep, changed while the system runs; default: what their settings say.
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
        """Whether it keeps what its visitors said in their words, masked."""
        rules = self._privacy.of(site)
        return rules is not None and rules.log_questions == "on"

    def logs_prompts(self, site: str) -> bool:
        """Whether it keeps what models read and wrote as well, masked."""
        rules = self._privacy.of(site)
        return rules is not None and rules.log_prompts and rules.log_questions == "on"

    def kept(self, site: str, text: str | None, public: Iterable[str] = ()) -> str | None:
        """The text without what identifies a person; None where the site keeps no words.

        Args:
            public: texts of the website; the addresses and numbers in them are public.
        """
        known = self._sites.get(site)
        if text is None or known is None or not self.logs_words(site):
            return None
        regions = regions_of(known.timezone, known.languages)
        own = _own(tuple(known.contact.values()), regions)
        kept = masked(text, regions, own)
        # To look for numbers in whole passages takes milliseconds: only where something of the text was taken out.
        return kept if kept == text else masked(text, regions, own | published(public, regions))


@lru_cache(KNOWN)
def _own(contacts: tuple[str, ...], regions: tuple[str, ...]) -> frozenset[str]:
    """What a site itself says of how it is reached."""
    return published(contacts, regions)
