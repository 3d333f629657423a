"""The OpenAPI document at `/openapi.json`: made on first use, beside the event loop, and served from memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request, Response

from gateway.edge.bounds import bounded
from gateway.edge.kept import Cached
from gateway.site.assets import Asset


def routes(document: Callable[[], dict[str, Any]]) -> APIRouter:
    """`document` makes it, in some hundred milliseconds."""
    router = APIRouter(include_in_schema=False)
    made = Cached(lambda: asyncio.to_thread(lambda: Asset.of(json.dumps(document()).encode(), "json")))

    @router.get("/openapi.json")
    @bounded("kept")
    async def serve(request: Request) -> Response:
        return (await made.get()).response(request)

    return router
