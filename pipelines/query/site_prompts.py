"""Site prompts: what is said to the model and to visitors, ours, or in its place what a site's files say.

prompts/answer.yaml, canned.yaml, examples/ ... ─┐
the folder in the site's setting `prompts`  ─────┴─▶ PromptSet, checked at start
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pipelines.runtime.errors import SettingsError
from pipelines.runtime.settings import SitesSettings
from prompts.loader import Prompt, PromptError, load
from prompts.phrases import Phrases

PROMPTS = (
    "answer",
    "courtesy",
    "decide",
    "judge",
    "react",
    "rephrase",
    "self-ask",
    "think",
    "title",
    "tools",
    "translate",
)
SENTENCES = ("canned", "errors")


@dataclass(frozen=True)
class PromptSet:
    """Prompts by name, and our own sentences."""

    prompts: Mapping[str, Prompt]
    phrases: Phrases

    @classmethod
    def load(cls, overrides: Path | None = None) -> Self:
        """Raises: PromptError."""
        return cls({name: load(name, overrides) for name in PROMPTS}, Phrases.load(overrides))


class SitePrompts:
    """One per process.

    Args:
        folders: of sites that say some things their own way.

    Raises:
        SettingsError: naming the site, the file and what is wrong with it.
    """

    def __init__(self, folders: Mapping[str, Path] | None = None) -> None:
        self._ours = PromptSet.load()
        self._own = {site: _own(site, folder) for site, folder in (folders or {}).items()}

    @classmethod
    def of_settings(cls, settings: SitesSettings) -> Self:
        """Raises: SettingsError."""
        return cls({name: site.prompts for name, site in settings.sites.items() if site.prompts is not None})

    def of(self, site: str) -> PromptSet:
        return self._own.get(site, self._ours)


def _own(site: str, folder: Path) -> PromptSet:
    if not folder.is_dir():
        raise SettingsError(f"sites.{site}.prompts: no such folder: {folder}")
    known = {*PROMPTS, *SENTENCES}
    if unknown := sorted(file.name for file in folder.glob("*.yaml") if file.stem not in known):
        raise SettingsError(f"sites.{site}.prompts: {folder / unknown[0]} is none of {', '.join(sorted(known))}")
    try:
        return PromptSet.load(folder)
    except PromptError as err:
        raise SettingsError(f"sites.{site}.prompts: {err}") from err
