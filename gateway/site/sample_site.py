"""The bundled sample site under `/site/`, with the chat on every page: only where the site `demo` is configured."""

from __future__ import annotations

from fastapi import APIRouter, Response

from gateway.edge.bounds import bounded
from gateway.edge.problems import Problem
from gateway.site.assets import add_assets
from gateway.site.pages import CSP
from sites.content import DEMO, SampleSite
from sites.render import MOUNT, render_path

CHAT_SCRIPT = "/widget.js"


def routes(site: SampleSite) -> APIRouter:
    """The rendered site; reads its assets."""
    router = APIRouter(prefix=MOUNT, include_in_schema=False)
    add_assets(router, DEMO / "assets", "/assets")

    @router.get("/{path:path}")
    @bounded("memory")
    async def page(path: str) -> Response:
        html = render_path(site, path, CHAT_SCRIPT)
        if html is None:
            raise Problem(404, "not-found", "no such page")
        headers = {"Content-Security-Policy": CSP, "Cache-Control": "no-cache"}
        return Response(html, media_type="text/html", headers=headers)

    return router
