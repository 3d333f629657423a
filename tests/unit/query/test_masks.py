"""What is masked of visitors' words."""

from __future__ import annotations

from pipelines.query import masks
from pipelines.query.masks import Masks
from wiring.settings import SiteSettings


def test_only_so_many_sites_are_kept_in_mind() -> None:
    sites = {f"site-{number}": SiteSettings(contact={"en": "town@hall.example"}) for number in range(masks.KNOWN + 5)}
    made = Masks(sites)
    for site in sites:
        assert made.kept(site, "Is town@hall.example yours?") == "Is town@hall.example yours?"
    assert len(made._own) == masks.KNOWN
