"""Tuning: how a site's questions are answered, where it is not as pagewire.yaml says: what was made live since.

    pagewire.yaml: strategy, flow, hits, neighbours, ...         what is not said below
    versions that were made live (live_texts.py) ─▶ SiteTuning ─▶ the first stage marks each question with it ─▶ all
                                                                  others go by the mark (schemas.query.Question.under)

So all stages answer one question by the same settings, whenever each of them would have seen a change. They are written
in YAML, a line for each, and may say what a trial may say (schemas.trial.AnswerSettings):

    strategy: retrieval-gate
    hits: 8
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import structlog
import yaml
from pydantic import ValidationError

from pipelines.query.flow import Flow
from pipelines.runtime.settings import Site
from prompts.loader import PromptError, plain
from schemas.base import problems
from schemas.query import Tuned
from schemas.text_version import TextVersion
from schemas.trial import AnswerSettings

log = structlog.get_logger(__name__)

ANSWERS = "answers"  # a site's settings are one text
NO_RERANKER = "none"


class Configured(Protocol):
    """What pagewire.yaml says (wiring.settings.Settings)."""

    def flow_of(self, site: str) -> Flow: ...

    @property
    def reranker(self) -> str: ...

    def site(self, name: str) -> Site:
        """Raises: UnknownSite."""

    def models(self, site: str) -> tuple[str, ...]:
        """The models that are named for a site."""


class SiteTuning:
    """What was made live, as far as is known here. One per process."""

    def __init__(self, settings: Configured) -> None:
        self._settings = settings
        self._live: Mapping[str, Tuned] = {}

    def of(self, site: str) -> Tuned | None:
        """None: all is as pagewire.yaml has it."""
        return self._live.get(site)

    def take(self, live: Iterable[TextVersion]) -> None:
        """From now on these count, in place of those taken before.

        Those that cannot be followed, as when pagewire.yaml names their model no more, are passed over whole and
        logged: half of what was tried together was never tried.
        """
        taken = {}
        for version in live:
            if version.kind != "settings" or version.text is None:
                continue
            try:
                found = read_settings(version.text)
                can_be_followed(found, self._settings, version.site)
            except PromptError as err:
                log.warning(
                    "settings that were changed cannot be followed, and pagewire.yaml counts",
                    site=version.site,
                    version=version.version,
                    reason=str(err),
                )
            else:
                taken[version.site] = Tuned.model_validate(found.model_dump())
        self._live = taken


def read_settings(text: str) -> AnswerSettings:
    """Settings in YAML. Raises: PromptError: names what is wrong, and what there is."""
    given = plain("settings", text)
    known = ", ".join(AnswerSettings.model_fields)
    if not isinstance(given, dict):
        raise PromptError(f"settings: must be lines such as `hits: 8`; there are: {known}")
    if unknown := [name for name in given if name not in AnswerSettings.model_fields]:
        raise PromptError(f"settings: no setting {unknown[0]!r} can be changed here; there are: {known}")
    try:
        return AnswerSettings.model_validate(given, strict=True)
    except ValidationError as err:
        raise PromptError(f"settings: {problems(err)}") from None


def can_be_followed(wanted: AnswerSettings, settings: Configured, site: str) -> None:
    """Raises: PromptError: the site has no such model, or no reranker. UnknownSite."""
    known = settings.models(site)
    if wanted.model is not None and wanted.model not in known:
        named = ", ".join(known) or "none"
        raise PromptError(f"settings: model: pagewire.yaml names no model {wanted.model!r}; it names: {named}")
    if wanted.rerank and settings.reranker == NO_RERANKER:
        raise PromptError("settings: rerank: no reranker is configured (PAGEWIRE_RERANKER)")


def filed_settings(settings: Configured, name: str) -> str:
    """What pagewire.yaml says, written as settings that would change nothing. Raises: UnknownSite."""
    flow = settings.flow_of(name)
    said = {"strategy": settings.site(name).strategy, "flow": flow.flow, "hits": flow.hits, **flow.departures}
    if settings.reranker != NO_RERANKER:  # which keeps a number of hits of its own
        del said["hits"]
    return yaml.safe_dump(said, sort_keys=False).strip()
