"""Sign in to the console with a key that has the scope `view`, and sign out."""

from __future__ import annotations

import asyncio
from typing import Annotated

import structlog
from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse

from gateway.console.view import HOME, SESSION_COOKIE, SIGN_IN, AnyView, ConsoleRoute, SignedIn, form_of, inside
from gateway.edge.auth import LIFE
from gateway.edge.bounds import bounded
from gateway.edge.edge import TheEdge, address_of

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
