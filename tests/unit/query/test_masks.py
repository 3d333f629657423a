"""What is masked of visitors' words."""

from __future__ import annotations

from pipelines.query import masks
from pipelines.query.masks import Masks
from wiring.settings import SiteSettings


def test_only_so_many_sites_are_kept_in_mind() -> None:
    numbers = range(masks.CACHED_SITES + 5)
    sites = {f"site-{number}": SiteSettings(contact={"en": f"town-{number}@hall.example"}) for number in numbers}
    made = Masks(sites)
    for number, site in enumerate(sites):
        own, other = f"Is town-{number}@hall.example yours?", f"Is town-{number + 1}@hall.example yours?"
        assert (made.kept(site, own), made.kept(site, other)) == (own, "Is [e-mail] yours?")
    assert masks._own.cache_info().currsize == masks.CACHED_SITES
