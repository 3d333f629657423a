"""Visitor tokens: what a chat page needs before it may ask."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from gateway.edge.bodies import parse, read_body
from gateway.edge.edge import Edge, TheEdge, address_of, allow, bearer_scheme
from gateway.edge.openapi import request_body
from gateway.edge.origins import is_same_origin
from gateway.edge.problems import Problem
from gateway.edge.tokens import VisitorToken
from pipelines.runtime.errors import UnknownSite
from schemas.http import VisitorTokenOrder

BODY_LIMIT = 16 * 1024  # bytes; what is in there goes into a header with every request
# Some refusals may be read by any page: a chat that only saw its connection fail could not say what is wrong.
READABLE = {"Access-Control-Allow-Origin": "*"}

router = APIRouter(prefix="/v1/sites/{site}", tags=["chat"])


@router.post("/visitor-tokens", openapi_extra=request_body(VisitorTokenOrder, required=False))
async def issue_token(site: str, edge: TheEdge, request: Request, response: Response) -> VisitorToken:
    """A short-lived token for one visitor.

    A page that may embed the chat is known by its origin, which keeps other websites from putting our chat on their
    pages; it is no secret and no login. With an earlier token in `Authorization`, even one that is over: for the same
    visitor, whose conversations it opens, but without the earlier one's access groups.

    A website's own server is known by a key with the scope `chat` in `Authorization`, and needs no origin. It may give
    the visitor access groups that the key has; they end with the token. `before` is an earlier token, for the same
    visitor.
    """
    if site not in edge.settings.sites:
        raise Problem(404, UnknownSite.code, "no such site", headers=READABLE)
    credentials = await bearer_scheme(request)
    bearer = credentials.credentials if credentials else ""
    caller = edge.keys.caller(bearer)
    mine: tuple[str, ...] = ()
    if caller is not None and caller.visitor is None:
        allow(caller, "chat", site)
        mine = caller.groups
    else:
        _check_origin(edge, site, request)
        edge.rates.count("token", address_of(request))
    body = await read_body(request, BODY_LIMIT)
    order = parse(VisitorTokenOrder, body) if body else VisitorTokenOrder()
    if not set(order.groups) <= set(mine):
        raise Problem(403, "forbidden", "groups: only those of the key in Authorization can be given to a visitor")
    response.headers["Cache-Control"] = "no-store"
    return edge.tokens.issue(site, order.before or bearer, order.groups)


def _check_origin(edge: Edge, site: str, request: Request) -> None:
    """Raises: Problem: 403, when the page may not embed the chat."""
    origin = request.headers.get("origin")
    allowed = edge.settings.site(site).origins
    if origin is None or not (origin in allowed or is_same_origin(origin, request.headers.get("host", ""))):
        raise Problem(
            403,
            "origin-not-allowed",
            f"this origin is not among the origins of the site {site!r}"
            if origin is not None
            else "there is neither the origin of a page nor a key that is known",
            headers=READABLE,
        )
