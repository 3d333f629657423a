"""The console's routes, put together.

sign-in (a key) ─▶ cookie ─▶ View: who, which site, which language ─▶ port ─▶ template
"""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import RedirectResponse

from gateway.console import (
    audit_log,
    audits,
    cases,
    corrections,
    evaluation_runs,
    evaluations,
    examples,
    gaps,
    handovers,
    indexes,
    keys,
    letters,
    overview,
    page,
    playground,
    privacy,
    questions,
    session,
    sites,
    text,
    texts,
)
from gateway.console.view import HOME, ConsoleRoute, SignedIn
from gateway.edge.bounds import bounded
from gateway.edge.problems import Problem
from gateway.site.assets import add_assets

SCREENS = (
    session,
    overview,
    questions,
    evaluation_runs,  # before evaluations, whose paths would take its own
    evaluations,
    gaps,
    handovers,
    page,
    playground,
    privacy,
    cases,
    corrections,
    examples,
    text,
    texts,
    audits,
    indexes,
    sites,
    letters,
    keys,
    audit_log,
)


def routes() -> APIRouter:
    """Reads the style sheet."""
    router = APIRouter(include_in_schema=False)
    add_assets(router, files("gateway.console") / "static", "/console/static")
    for module in SCREENS:
        router.include_router(module.router)
    router.include_router(others)
    return router


others = APIRouter(route_class=ConsoleRoute)


@others.get("/console")
@bounded("memory")
async def without_slash() -> RedirectResponse:
    return RedirectResponse(HOME, 308)


@others.get("/console/{path:path}")
async def elsewhere(view: SignedIn, path: str) -> None:
    raise Problem(404, "not-found", "no such page")
