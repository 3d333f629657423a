"""Changing what a site keeps of its visitors, while the system runs: by the same versions as its texts.

put, remove, restore, roll back ─▶ does it delete something? is that meant? ─▶ text_changes.py
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime

from pydantic import ValidationError

from pipelines.query.live.site_privacy import PRIVACY, deleted_by, filed_rules, loss, read_rules, written_rules
from pipelines.query.live.text_changes import NoEarlierText, Place, TextChanges, UnknownText
from pipelines.runtime.errors import Permanent
from pipelines.runtime.settings import SitesSettings
from schemas.privacy import PrivacyChange, PrivacyLoss, PrivacyOrder, PrivacyRules, PrivacyState, PrivacyVersion
from schemas.text_version import NewText, TextChange, TextHistory, TextVersion


class WouldDelete(Permanent):
    """The change deletes what visitors said, and the order does not say that this is meant."""

    code = "would-delete"


class PrivacyChanges:
    """Reads and changes what sites keep. `now`: the time that all gateways go by."""

    def __init__(self, texts: TextChanges, settings: SitesSettings, now: Callable[[], datetime]) -> None:
        self._texts = texts
        self._settings = settings
        self._now = now

    async def state(self, site: str) -> PrivacyState:
        """Raises: UnknownSite, Retryable."""
        return self._state(site, await self._texts.history(_place(site)))

    def wanted(self, state: PrivacyState, order: PrivacyOrder) -> PrivacyRules:
        """What is asked for, with what stays as it is."""
        given = order.model_dump(include=set(PrivacyRules.model_fields), exclude_none=True)
        return state.rules.model_copy(update=given)

    def loss(self, state: PrivacyState, rules: PrivacyRules) -> PrivacyLoss | None:
        """What is deleted when the site keeps no more than `rules` say."""
        return loss(state.rules, rules, self._now())

    async def put(self, site: str, order: PrivacyOrder, by: str) -> PrivacyState:
        """Keep so much from now on. Raises: WouldDelete. TextChanged, TooManyTexts, UnknownSite, Retryable."""
        state = await self.state(site)
        rules = self.wanted(state, order)
        text = written_rules(rules)
        return await self._done(
            state, rules, order, lambda told: self._texts.put(_place(site), NewText(text=text, **dict(told)), by)
        )

    async def remove(self, site: str, change: PrivacyChange, by: str) -> PrivacyState:
        """Keep what pagewire.yaml says. Raises: UnknownText: so it is already; as `put`."""
        state = await self.state(site)
        return await self._done(state, state.filed, change, lambda told: self._texts.remove(_place(site), told, by))

    async def restore(self, site: str, version: int, change: PrivacyChange, by: str) -> PrivacyState:
        """Keep again what a version says. Raises: UnknownText: there is none; as `put`."""
        state = await self.state(site)
        found = next((one for one in state.versions if one.version == version), None)
        if found is None:
            raise UnknownText(f"the privacy of site {site} has no version {version}")
        return await self._done(
            state,
            found.rules or state.filed,
            change,
            lambda told: self._texts.restore(_place(site), version, told, by),
        )

    async def roll_back(self, site: str, change: PrivacyChange, by: str) -> PrivacyState:
        """Undo the last change; again, the one before. Raises: NoEarlierText; as `put`."""
        state = await self.state(site)
        before = await self._texts.before(_place(site))
        if before is None:
            raise NoEarlierText(f"what site {site} keeps was never changed")
        rules = next((one.rules for one in state.versions if one.version == before), None) or state.filed
        return await self._done(state, rules, change, lambda told: self._texts.roll_back(_place(site), told, by))

    async def _done(
        self,
        state: PrivacyState,
        rules: PrivacyRules,
        change: PrivacyChange,
        work: Callable[[TextChange], Awaitable[TextVersion]],
    ) -> PrivacyState:
        lost = self.loss(state, rules)
        if lost is not None and not change.sure:
            raise WouldDelete(
                f"site {state.site}: {said(lost)}; say that you are sure (`sure`, at the command --yes), and it is done"
            )
        # The loss is that of the version which was looked at here.
        await work(TextChange(note=change.note, over=state.live if change.over is None else change.over))
        return await self.state(state.site)

    def _state(self, site: str, history: TextHistory) -> PrivacyState:
        filed = filed_rules(self._settings.site(site))
        rules = (_read(history.text, filed) if history.text is not None else None) or filed
        return PrivacyState(
            site=site,
            rules=rules,
            live=history.live,
            filed=filed,
            deleted_by=deleted_by(history.versions, filed, self._now()),
            versions=tuple(
                PrivacyVersion(**one.noted(), of=one.of, rules=_read(one.text, filed) if one.text is not None else None)
                for one in history.versions
            ),
        )


def said(lost: PrivacyLoss) -> str:
    """In plain words, for problems and commands."""
    parts = []
    if lost.conversations_before is not None:
        parts.append(f"conversations whose last question is from before {lost.conversations_before:%Y-%m-%d %H:%M} UTC")
    if lost.outcomes_before is not None:
        parts.append(f"logged questions and runs from before {lost.outcomes_before:%Y-%m-%d %H:%M} UTC")
    return f"this deletes {' and '.join(parts)} for good, not before {lost.not_until:%Y-%m-%d %H:%M} UTC"


def _place(site: str) -> Place:
    return Place(site, "privacy", PRIVACY)


def _read(text: str, filed: PrivacyRules) -> PrivacyRules | None:
    """None: another release has written it."""
    try:
        return read_rules(text, filed)
    except ValidationError:
        return None
