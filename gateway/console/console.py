"""All routes of the console.

sign-in (a key) ─▶ cookie ─▶ View: caller, site, language ─▶ port ─▶ template

Sign in to the console with a key that has the scope `view`, and sign out.
"""

from __future__ import annotations

import asyncio
from importlib.resources import files
from typing import Annotated

import structlog
from fastapi import APIRouter, Depends, Query, Request, Response
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
    sites,
    text,
)
from gateway.console.view import HOME, SESSION_COOKIE, SIGN_IN, AnyView, ConsoleRoute, SignedIn, form_of, inside
from gateway.edge.auth import LIFE
from gateway.edge.bounds import bounded
from gateway.edge.edge import TheEdge, address_of
from gateway.edge.problems import Problem
from gateway.site.assets import add_assets

log = structlog.get_logger(__name__)

WRONG_KEY_PAUSE = 1.0  # seconds; slows an attacker who tries keys

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)


@router.get("/sign-in")
async def show_form(view: AnyView, to: Annotated[str, Query(max_length=4_000)] = HOME) -> Response:
    if view.holder is not None:
        return RedirectResponse(inside(to), 303)
    return view.page("sign_in.html", to=inside(to), wrong=False)


@bounded("address")
async def limit_attempts(request: Request, edge: TheEdge) -> None:
    """Count attempts by IP address, as visitors' questions. Raises: Problem: 429."""
    address = address_of(request)
    edge.rates.count("sign-in", address, address)


@router.post("/sign-in", dependencies=[Depends(limit_attempts)])
async def sign_in(view: AnyView) -> Response:
    form = await form_of(view, before_sign_in=True)
    to = inside(form.get("to", HOME))
    if view.user is not None:  # the proxy's sign-in goes before a key
        return RedirectResponse(to, 303)
    cookie = view.edge.sessions.begin(form.get("key", "").strip())
    if cookie is None:
        log.warning("console: wrong key")  # no addresses in logs: docs/privacy.md
        await asyncio.sleep(WRONG_KEY_PAUSE)
        return view.page("sign_in.html", 403, to=to, wrong=True)
    response = RedirectResponse(to, 303)
    response.set_cookie(
        SESSION_COOKIE, cookie, max_age=LIFE, path=HOME, secure=view.secure, httponly=True, samesite="strict"
    )
    return response


@router.post("/sign-out")
async def sign_out(view: SignedIn) -> Response:
    await form_of(view)
    response = RedirectResponse((view.edge.proxy_users.sign_out or HOME) if view.user else SIGN_IN, 303)
    response.delete_cookie(SESSION_COOKIE, path=HOME, secure=view.secure, httponly=True, samesite="strict")
    return response


SCREENS = (
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
    for part in (router, *(module.router for module in SCREENS), others):
        made.include_router(part)
    return made


@others.get("/console")
@bounded("memory")
async def without_slash() -> RedirectResponse:
    return RedirectResponse(HOME, 308)


@others.get("/console/{path:path}")
async def elsewhere(view: SignedIn, path: str) -> None:
    raise Problem(404, "not-found", "no such page")
