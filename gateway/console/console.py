"""All routes of the console.

sign-in (a key) ─▶ cookie ─▶ View: caller, site, language ─▶ port ─▶ template
"""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import RedirectResponse

from gateway.console import (
    audit_log,
    corrections,
    evaluation_runs,
    evaluations,
    examples,
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
)
from gateway.console.view import HOME, ConsoleRoute, SignedIn
from gateway.edge.bounds import bounded
from gateway.edge.problems import Problem
from gateway.site.assets import add_assets

SCREENS = (
    session,
    overview,
    questions,
    evaluation_runs,  # before evaluations: its path `/evaluations/{run}` would match `/evaluations/new`
    evaluations,
    page,
    playground,
    privacy,
    corrections,
    examples,
    text,
    indexes,
    sites,
    letters,
    keys,
    audit_log,
)
others = APIRouter(route_class=ConsoleRoute)


def routes() -> APIRouter:
    """The router of the whole console. Reads the style sheet from disk."""
    made = APIRouter(include_in_schema=False)
    add_assets(made, files("gateway.console") / "static", "/console/static")
    for part in (*(module.router for module in SCREENS), others):
        made.include_router(part)
    return made


@others.get("/console")
@bounded("memory")
async def without_slash() -> RedirectResponse:
    return RedirectResponse(HOME, 308)


@others.get("/console/{path:path}")
async def elsewhere(view: SignedIn, path: str) -> None:
    raise Problem(404, "not-found", "no such page")
