"""Several sites of a fleet by a pattern of their names."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from pipelines.runtime.errors import WrongUse
from pipelines.runtime.near_names import some_of

if TYPE_CHECKING:
    from wiring.settings import Settings


class NoSuchSites(WrongUse):
    """No site of pagewire.yaml has such a name."""

    code = "no-such-sites"


def sites_called(glob: str, settings: Settings) -> list[str]:
    """In the order of pagewire.yaml.

    Args:
        glob: for example `shop-*`; capitals count.

    Raises: NoSuchSites.
    """
    found = [site for site in settings.sites if fnmatchcase(site, glob)]
    if not found:
        raise NoSuchSites(f"no site is called like {glob!r}; there are: {some_of(settings.sites)}")
    return found
