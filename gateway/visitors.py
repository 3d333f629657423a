"""Visitor tokens: what a chat page needs before it may ask."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from gateway.edge import TheEdge, address_of
from gateway.origins import is_same_origin
from gateway.problems import Problem
from gateway.tokens import VisitorToken

router = APIRouter(prefix="/v1/sites/{site}", tags=["chat"])


@router.post("/visitor-tokens")
async def issue_token(site: str, edge: TheEdge, request: Request, response: Response) -> VisitorToken:
    """A short-lived token for one visitor of a page that may embed the chat.

    With an earlier token in `Authorization`, even one that is over: for the same visitor, whose conversations it opens.
    The origin keeps other websites from putting our chat on their pages; it is no secret and no login.
    """
    allowed = edge.settings.site(site).origins
    origin = request.headers.get("origin")
    if origin is None or not (origin in allowed or is_same_origin(origin, request.headers.get("host", ""))):
        raise Problem(
            403,
            "origin-not-allowed",
            f"this origin is not among the origins of the site {site!r}",
            # The refusal itself may be read: a chat that only saw its connection fail could not say what is wrong.
            headers={"Access-Control-Allow-Origin": "*"},
        )
    edge.rates.count("token", address_of(request))
    response.headers["Cache-Control"] = "no-store"
    before = request.headers.get("authorization", "").removeprefix("Bearer ")
    return edge.tokens.issue(site, before)
