"""Site prompts: what is said to the model and to visitors, ours, or in its place what a site's files say.

prompts/answer.yaml, canned.yaml, examples/ ... ─┐
the folder in the site's setting `prompts`  ─────┼─▶ PromptSet, checked at start
versions that were made live (live_texts.py) ────┘    and, of these, whenever there is a new one
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Self

import structlog

from pipelines.query.live.corrections import read_correction, with_synonyms
from pipelines.query.live.glossary import Glossary, read_glossary
from pipelines.query.ports import BadTrialPrompt
from pipelines.runtime.errors import SettingsError
from pipelines.runtime.settings import Site, SitesSettings
from prompts.loader import Prompt, PromptError, load, tried
from prompts.phrases import Phrases
from schemas.correction import Correction
from schemas.query import Question
from schemas.text_version import MAX_SENTENCE, TextKind, TextVersion

log = structlog.get_logger(__name__)

PROMPTS = (
    "answer",
    "courtesy",
    "decide",
    "expand",
    "judge",
    "react",
    "rephrase",
    "self-ask",
    "short",
    "think",
    "title",
    "tools",
    "translate",
)
SENTENCES = ("canned", "errors")
GLOSSARY = "terms"  # a site's glossary is one text


@dataclass(frozen=True)
class PromptSet:
    """Prompts by name, and our own sentences."""

    prompts: Mapping[str, Prompt]
    phrases: Phrases
    contact: Mapping[str, str] = field(default_factory=dict)  # by language; it goes before the site's setting
    glossary: Glossary | None = None  # it takes the place of the site's setting
    synonyms: tuple[Correction, ...] = ()

    @classmethod
    def load(cls, overrides: Path | None = None) -> Self:
        """Raises: PromptError."""
        return cls({name: load(name, overrides) for name in PROMPTS}, Phrases.load(overrides))

    def reached_by(self, site: Site, lang: str) -> str:
        """How to reach somebody of the site, in a language or in the site's own; empty where nothing says."""
        if not self.contact:
            return site.reached_by(lang)
        return site.model_copy(update={"contact": {**site.contact, **self.contact}}).reached_by(lang)

    def glossary_of(self, site: Site) -> Glossary:
        return site.glossary if self.glossary is None else self.glossary

    def searched_by(self, site: Site) -> Glossary:
        """The glossary with editors' synonyms, which are understood and never said."""
        return with_synonyms(self.glossary_of(site), self.synonyms) if self.synonyms else self.glossary_of(site)

    def changed(self, kind: TextKind, name: str, text: str) -> PromptSet:
        """With a text in place of what is said here.

        Raises: PromptError: it does not fit, or nothing of this name is said.
        """
        if kind == "prompts":
            if name not in self.prompts:
                raise PromptError(f"no prompt {name!r}; there are: {', '.join(sorted(self.prompts))}")
            return replace(self, prompts={**self.prompts, name: tried(text, self.prompts[name])})
        if kind == "glossary":
            if name != GLOSSARY:
                raise PromptError(f"no glossary {name!r}; a site has one, {GLOSSARY!r}")
            return replace(self, glossary=read_glossary(text))
        if kind == "corrections":
            correction = read_correction(text)
            return replace(self, synonyms=(*self.synonyms, correction)) if correction.kind == "synonym" else self
        if len(text) > MAX_SENTENCE:
            raise PromptError(f"{name}: more than {MAX_SENTENCE:,} characters")
        if kind == "contact":
            return replace(self, contact={**self.contact, name: text})
        sentence, _, lang = name.partition(".")
        said = self.phrases.canned if kind == "canned" else self.phrases.errors
        if sentence not in said or not lang:
            raise PromptError(f"no sentence {name!r}; it is NAME.LANGUAGE, of: {', '.join(sorted(said))}")
        spoken = {**said, sentence: {**said[sentence], lang: text}}
        if kind == "canned":
            return replace(self, phrases=replace(self.phrases, canned=spoken))
        return replace(self, phrases=replace(self.phrases, errors=spoken))


class SitePrompts:
    """One per process.

    Args:
        folders: of sites that say some things their own way.

    Raises: SettingsError: naming the site, the file and what is wrong with it.
    """

    def __init__(self, folders: Mapping[str, Path] | None = None) -> None:
        self._ours = _ours()
        self._own = {site: _own(site, folder) for site, folder in (folders or {}).items()}
        self._live: Mapping[str, PromptSet] = {}

    @classmethod
    def of_settings(cls, settings: SitesSettings) -> Self:
        """Raises: SettingsError."""
        return cls({name: site.prompts for name, site in settings.sites.items() if site.prompts is not None})

    def of(self, site: str) -> PromptSet:
        return self._live.get(site) or self.filed(site)

    def asked(self, request: Question, name: str) -> Prompt:
        """A prompt for a question: what its trial has in its place, else what its site says. Raises: BadTrialPrompt."""
        trial = request.trial
        if name == "answer" and trial is not None and trial.short:
            name = "short"
        own = self.of(request.site).prompts[name]
        if trial is None or trial.prompt is None or trial.prompt_name != name:
            return own
        try:
            return tried(trial.prompt, own)
        except PromptError as err:
            raise BadTrialPrompt(str(err)) from err

    def filed(self, site: str) -> PromptSet:
        """What is said where nothing was changed since the start."""
        return self._own.get(site, self._ours)

    def take(self, live: Iterable[TextVersion]) -> None:
        """From now on say these, in place of those taken before. Takes some milliseconds for each prompt.

        One that does not fit, as after an update that has given a prompt another variable, is passed over and logged:
        what it was to take the place of is said.
        """
        taken: dict[str, PromptSet] = {}
        for version in live:
            if version.text is None or version.kind in ("privacy", "settings"):
                continue
            below = taken.get(version.site) or self.filed(version.site)
            try:
                taken[version.site] = below.changed(version.kind, version.name, version.text)
            except PromptError as err:
                log.warning(
                    "a text that was changed does not fit, and is passed over",
                    site=version.site,
                    text=f"{version.kind}/{version.name}",
                    version=version.version,
                    reason=str(err),
                )
        self._live = taken


@cache
def _ours() -> PromptSet:
    """Of our own files, which no process sees change."""
    return PromptSet.load()


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
