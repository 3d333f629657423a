"""Masks: what of visitors' words is kept, as their site wants it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pipelines.runtime.settings import Site
from text.masking import masked, published, regions_of


class Masks:
    """For all sites. One per process."""

    def __init__(self, sites: Mapping[str, Site]) -> None:
        self._sites = sites
        self._own: dict[str, frozenset[str]] = {}

    def logs(self, site: str) -> bool:
        """Whether the site keeps what became of its questions."""
        known = self._sites.get(site)
        return known is not None and known.log_questions != "off"

    def kept(self, site: str, text: str | None, public: Iterable[str] = ()) -> str | None:
        """The text without what identifies a person; None where the site keeps no words.

        Args:
            public: texts of the website; the addresses and numbers in them are nobody's secret.
        """
        known = self._sites.get(site)
        if text is None or known is None or known.log_questions != "on":
            return None
        regions = regions_of(known.timezone, known.languages)
        if site not in self._own:
            self._own[site] = published(known.contact.values(), regions)
        kept = masked(text, regions, self._own[site])
        # To look for numbers in whole passages takes milliseconds: only where something of the text was taken out.
        return kept if kept == text else masked(text, regions, self._own[site] | published(public, regions))
