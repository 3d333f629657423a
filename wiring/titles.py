"""Who gives conversations their titles, put together from settings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pipelines.conversations.titles import Titles
from pipelines.query.site_prompts import SitePrompts
from pipelines.query.spending import Spending
from pipelines.query.titles import ModelTitles
from wiring.query import chat_models
from wiring.settings import Settings


@asynccontextmanager
async def titles(settings: Settings) -> AsyncIterator[Titles | None]:
    """None where no model is configured, or no site wants them.

    Raises:
        SettingsError: a site's prompts are wrong.
    """
    wanted = any(site.chat.titles for site in settings.sites.values())
    models = chat_models(settings, Spending(settings)) if wanted else None
    if models is None:
        yield None
        return
    # A gateway need not have the folders, which are the workers': without them it takes our prompt.
    folders = {name: site.prompts for name, site in settings.sites.items() if site.prompts and site.prompts.is_dir()}
    writing = Titles(ModelTitles(models, SitePrompts(folders)))
    try:
        yield writing
    finally:
        await writing.aclose()
        await models.aclose()
