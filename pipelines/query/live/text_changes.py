"""Changing a site's texts while the system runs: each change is a new version, and undoing one is another.

    put, remove, restore, roll back ─▶ does it fit? is live what the editor saw? ─▶ version n + 1 ─▶ live_texts.py
    propose ────────────────────────▶ does it fit? ──────────────────────────────▶ version n + 1, a candidate: not live

Who makes a version takes its number, and a number is given once. So of two who change one text at once the second gets
an error, and a gateway that dies in between has changed it or not: there is no half of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from pipelines.query.live.corrections import MAX_CORRECTIONS, read_correction
from pipelines.query.live.glossary import written_glossary
from pipelines.query.live.live_texts import TextStore
from pipelines.query.live.site_privacy import PRIVACY, filed_rules, read_rules, written_rules
from pipelines.query.live.site_prompts import GLOSSARY, PromptSet, SitePrompts
from pipelines.query.live.tuning import ANSWERS, Configured, can_be_followed, filed_settings, read_settings
from pipelines.runtime.errors import Permanent, Retryable
from pipelines.runtime.settings import Site
from prompts.loader import PromptError, written
from schemas.base import is_language_tag, problems
from schemas.text_version import NewText, TextChange, TextHistory, TextKind, TextVersion

MAX_TEXTS = 1_000  # of a site that were ever changed; ours are some 70 in each language
TRIES = 5  # to get a number while others take them


class UnknownText(Permanent):
    """The site says no such text, or it has no such version."""

    code = "unknown-text"


class BadText(Permanent):
    """It cannot be said in this place."""

    code = "bad-text"


class TextChanged(Permanent):
    """Somebody else has changed the text meanwhile."""

    code = "text-changed"


class NoEarlierText(Permanent):
    """There is nothing to go back to."""

    code = "no-earlier-text"


class TooManyTexts(Permanent):
    """No more texts of this site are kept."""

    code = "too-many-texts"


@dataclass(frozen=True)
class Place:
    """Which text of which site."""

    site: str
    kind: TextKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True)
class _Known:
    """What there is of a text at one moment."""

    files: PromptSet
    filed: str | None
    versions: Sequence[TextVersion]  # the newest first

    @property
    def live(self) -> TextVersion | None:
        return next((one for one in self.versions if not one.candidate), None)

    @property
    def number(self) -> int:
        """Of the live version; 0: the files say what is said."""
        return self.live.version if self.live is not None and self.live.text is not None else 0

    @property
    def text(self) -> str | None:
        return self.live.text if self.live is not None and self.live.text is not None else self.filed

    def version(self, number: int) -> TextVersion | None:
        return next((one for one in self.versions if one.version == number), None)

    def before(self) -> int | None:
        """The version that was live before what is live now was first said, 0: the files; None: nothing was.

        What a step back has brought back counts as if it had stayed: going back twice goes back two steps.
        """
        at = self.live
        while at is not None and at.back and at.of is not None:
            at = self.version(at.of)
        if at is None:
            return None
        earlier = (one for one in self.versions if one.version < at.version and not one.candidate)
        found = next(earlier, None)
        return 0 if found is None or found.text is None else found.version


_Wanted = TextVersion | dict[str, Any]  # one that is there already, or what is special of the next one


class TextChanges:
    """Reads and changes texts. `now`: the time that all gateways go by."""

    def __init__(self, store: TextStore, settings: Configured, now: Callable[[], datetime]) -> None:
        self._store = store
        self._settings = settings
        self._now = now

    async def history(self, place: Place) -> TextHistory:
        """Raises: UnknownSite, UnknownText, SettingsError: a file of the site is wrong. Retryable."""
        known = await self._known(place)
        return TextHistory(
            **vars(place),
            text=known.text,
            live=known.number,
            filed=known.filed,
            versions=tuple(known.versions),
        )

    async def check(self, place: Place, text: str) -> None:
        """Raises: BadText; as `history`."""
        self._fit(place, text, await self._known(place))

    async def before(self, place: Place) -> int | None:
        """The version that a step back would bring back, 0: the files; None: there is none. Raises: as `history`."""
        return (await self._known(place)).before()

    async def put(self, place: Place, new: NewText, by: str) -> TextVersion:
        """Say it from now on. What is live already is not made again, so that a request may be repeated.

        Raises: BadText, TextChanged, TooManyTexts; as `history`.
        """

        def wanted(known: _Known) -> _Wanted:
            return known.live if known.live is not None and known.live.text == new.text else {"text": new.text}

        return await self._add(place, new, by, wanted)

    async def remove(self, place: Place, change: TextChange, by: str) -> TextVersion:
        """Say from now on what the files say. Raises: UnknownText: they do already; as `put`."""

        def wanted(known: _Known) -> _Wanted:
            if not known.number:
                raise UnknownText(f"{place} of site {place.site} is as the files have it")
            return {"text": None}

        return await self._add(place, change, by, wanted)

    async def restore(self, place: Place, version: int, change: TextChange, by: str) -> TextVersion:
        """Say again what a version says; of a candidate, put it to use. Raises: UnknownText; as `put`."""

        def wanted(known: _Known) -> _Wanted:
            found = known.version(version)
            if found is None:
                raise UnknownText(f"{place} of site {place.site} has no version {version}")
            if known.live is not None and known.live.of == version:
                return known.live  # this request, repeated
            return {"text": found.text, "of": version}

        return await self._add(place, change, by, wanted)

    async def roll_back(self, place: Place, change: TextChange, by: str) -> TextVersion:
        """Say again what was said before. Raises: NoEarlierText; as `put`."""

        def wanted(known: _Known) -> _Wanted:
            before = known.before()
            if before is None:
                raise NoEarlierText(f"{place} of site {place.site}: nothing was said before what is said now")
            found = known.version(before)
            return {"text": found.text if found is not None else None, "of": before, "back": True}

        return await self._add(place, change, by, wanted)

    async def propose(self, place: Place, new: NewText, by: str) -> TextVersion:
        """Keep it as a candidate. Raises: BadText, TooManyTexts; as `history`."""

        def wanted(known: _Known) -> _Wanted:
            newest = known.versions[0] if known.versions else None
            again = newest is not None and newest.candidate and newest.text == new.text
            return newest if newest is not None and again else {"text": new.text, "candidate": True}

        return await self._add(place, new, by, wanted)

    def _fit(self, place: Place, text: str, known: _Known) -> None:
        """Raises: BadText."""
        try:
            if place.kind == "privacy":
                read_rules(text, filed_rules(self._settings.site(place.site)))
            elif place.kind == "corrections":
                read_correction(text)
            elif place.kind == "settings":
                can_be_followed(read_settings(text), self._settings, place.site)
            else:
                known.files.changed(place.kind, place.name, text)
        except PromptError as err:
            raise BadText(str(err)) from None
        except ValidationError as err:
            raise BadText(problems(err)) from None

    async def _add(self, place: Place, change: TextChange, by: str, wanted: Callable[[_Known], _Wanted]) -> TextVersion:
        for _ in range(TRIES):
            known = await self._known(place)
            made = wanted(known)
            if isinstance(made, TextVersion):
                return made
            if made["text"] is not None:
                self._fit(place, made["text"], known)
            if not made.get("candidate"):
                _as_seen(place, change, known)
            if not known.number:
                await self._room(place, known)
            number = known.versions[0].version + 1 if known.versions else 1
            version = TextVersion(**vars(place), **made, version=number, by=by, at=self._now(), note=change.note)
            if await self._store.add(version):
                return version
        raise Retryable(f"{place} of site {place.site} is changed by others all the time; try again")

    async def _room(self, place: Place, known: _Known) -> None:
        """Raises: TooManyTexts."""
        live = await self._store.live(place.site)
        if place.kind == "corrections":
            if sum(one.kind == place.kind and one.text is not None for one in live) >= MAX_CORRECTIONS:
                raise TooManyTexts(f"site {place.site} has {MAX_CORRECTIONS:,} corrections already; take some back")
        elif not known.versions and sum(one.kind != "corrections" for one in live) >= MAX_TEXTS:
            raise TooManyTexts(f"{MAX_TEXTS:,} texts of site {place.site} were changed already")

    async def _known(self, place: Place) -> _Known:
        site = self._settings.site(place.site)
        files = await asyncio.to_thread(_files, place, site)
        return _Known(
            files,
            await asyncio.to_thread(_filed, place, self._settings, files),
            await self._store.versions(place.site, place.kind, place.name),
        )


def _files(place: Place, site: Site) -> PromptSet:
    """Raises: SettingsError; not of what no wrong file of prompts must keep from being changed."""
    own = site.prompts if place.kind not in ("privacy", "settings", "corrections") else None
    return SitePrompts({place.site: own} if own else {}).of(place.site)


def _filed(place: Place, settings: Configured, files: PromptSet) -> str | None:
    """What the site's files, or ours, say there. Raises: UnknownText."""
    site = settings.site(place.site)
    name, _, lang = place.name.partition(".")
    spoken = place.name if place.kind == "contact" else lang
    wrong = UnknownText(f"no text {place} is said by site {place.site}")
    if place.kind == "corrections":
        return None
    if place.kind == "prompts":
        if place.name not in files.prompts:
            raise wrong
        return written(place.name, site.prompts).strip()
    if place.name != {"privacy": PRIVACY, "settings": ANSWERS, "glossary": GLOSSARY}.get(place.kind, place.name):
        raise wrong
    if place.kind == "privacy":
        return written_rules(filed_rules(site))
    if place.kind == "settings":
        return filed_settings(settings, place.site)
    if place.kind == "glossary":
        return written_glossary(site.glossary) or None
    if not is_language_tag(spoken):
        raise wrong
    if place.kind == "contact":
        return site.contact.get(spoken)
    said = files.phrases.canned if place.kind == "canned" else files.phrases.errors
    if name not in said:
        raise wrong
    return said[name].get(spoken)


def _as_seen(place: Place, change: TextChange, known: _Known) -> None:
    """Raises: TextChanged."""
    if change.over is not None and change.over != known.number:
        live = f"version {known.number}" if known.number else "what the files say"
        raise TextChanged(
            f"{place} of site {place.site} was changed meanwhile: {live} is live, not version {change.over}"
        )
