"""The writer of conversations' titles, put together from settings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from pipelines.conversations.titles import Titles
from pipelines.query.live.live_texts import LiveTexts, TextStore
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.titles import ModelTitles
from pipelines.query.token_budget import TokenBudget
from pipelines.runtime.counts import DAY
from pipelines.runtime.errors import SettingsError
from schemas.topics import BUDGETS
from wiring.query import chat_models
from wiring.settings import Settings
from wiring.shared_counts import Share

log = structlog.get_logger(__name__)


@asynccontextmanager
async def titles(settings: Settings, share: Share, texts: TextStore) -> AsyncIterator[Titles | None]:
    """None without a model."""
    models = chat_models(settings, TokenBudget(settings, counts=share(BUDGETS, DAY)))
    if models is None:
        yield None
        return
    site_prompts = SitePrompts(_folders(settings))
    live_texts = LiveTexts(texts, site_prompts.take)
    writing = Titles(ModelTitles(models, site_prompts).write)
    await live_texts.start()
    try:
        yield writing
    finally:
        await writing.aclose()
        await live_texts.aclose()
        await models.aclose()


def _folders(settings: Settings) -> dict[str, Path]:
    """The sites' usable prompt folders. They lie on the workers' machines: a gateway uses our prompt instead of a
    missing or wrong one.
    """
    found = {}
    for name, site in settings.sites.items():
        if site.prompts and site.prompts.is_dir():
            try:
                SitePrompts({name: site.prompts})
            except SettingsError as err:
                log.warning("titles of this site are made by our own prompt", site=name, reason=str(err))
            else:
                found[name] = site.prompts
    return found
