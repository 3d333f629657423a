"""What a site says in fixed words, over HTTP: replies, glossary, prompts, and which of them are its own."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter

from gateway.edge.edge import MayView, TheEdge
from pipelines.query.site_texts import site_texts
from schemas.site_texts import SiteTexts

router = APIRouter(prefix="/v1/admin/sites/{site}", tags=["operations"])


@router.get("/texts")
async def list_texts(site: str, caller: MayView, edge: TheEdge) -> SiteTexts:
    """Our own replies to visitors, the site's contact and glossary, and the prompts, each with where it comes from.

    Files are shown as this gateway finds them now; workers read them when they start.
    """
    return await asyncio.to_thread(site_texts, edge.settings, site)
