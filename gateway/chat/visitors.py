"""What a chat page needs before the first question: visitor tokens, and what it shows."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from gateway.edge.auth import Caller
from gateway.edge.bodies import parse, read_body
from gateway.edge.bounds import Bound, bounded
from gateway.edge.edge import TheEdge, address_of, allow, bearer_scheme
from gateway.edge.openapi import request_body
from gateway.edge.problems import Problem, problem_of
from gateway.edge.tokens import VisitorToken
from pipelines.runtime.errors import UnknownSite
from schemas.base import language_tag
from schemas.http import VisitorTokenOrder, Welcome

BODY_LIMIT = 16 * 1024  # bytes; what is in there goes into a header with every request

router = APIRouter(prefix="/v1/sites/{site}", tags=["chat"])


async def _bearer(request: Request) -> str:
    credentials = await bearer_scheme(request)
    return credentials.credentials if credentials else ""


Bearer = Annotated[str, Depends(_bearer)]


class MayEmbed:
    """A dependency: who may have tokens of the path's site, a program with a key or a page of an allowed origin."""

    bound: Bound = "address"
    visitors = True

    async def __call__(self, site: str, request: Request, edge: TheEdge, bearer: Bearer) -> Caller | None:
        """The program; None for a page. Raises: Problem: 403, 404, 429."""
        try:
            origins = edge.settings.site(site).origins
        except UnknownSite as err:
            raise _readable(problem_of(err)) from None
        caller = edge.keys.caller(bearer)
        if caller is not None and caller.visitor is None:
            allow(caller, "chat", site)
            return caller
        origin, host = request.headers.get("origin"), request.headers.get("host", "")
        if origin is None:
            raise _refused("there is neither the origin of a page nor a key that is known")
        if origin not in origins and not edge.hosts.is_own_page(origin, host):
            raise _refused(f"this origin is neither the gateway's nor among the origins of the site {site!r}")
        edge.rates.count("token", address_of(request))
        return None


def _refused(detail: str) -> Problem:
    return _readable(Problem(403, "origin-not-allowed", detail))


def _readable(problem: Problem) -> Problem:
    """Readable by the refused page, so that its chat can say what is wrong."""
    problem.headers["Access-Control-Allow-Origin"] = "*"
    return problem


@router.post("/visitor-tokens", openapi_extra=request_body(VisitorTokenOrder, required=False))
async def issue_token(
    site: str,
    program: Annotated[Caller | None, Depends(MayEmbed())],
    bearer: Bearer,
    edge: TheEdge,
    request: Request,
    response: Response,
) -> VisitorToken:
    """A short-lived token for one visitor.

    A page that may embed the chat is recognised by its origin. That keeps the chat off other websites; it is neither a
    secret nor a login. With an earlier token in `Authorization`, even an expired one, the new token is for the same
    visitor and opens the same conversations, but has no access groups.

    A website's own server uses a key with the scope `chat` in `Authorization`, and needs no origin. It may give the
    visitor access groups of the key, which end with the token. `before` is an earlier token of the same visitor.
    """
    body = await read_body(request, BODY_LIMIT)
    order = parse(VisitorTokenOrder, body) if body else VisitorTokenOrder()
    if not set(order.groups) <= set(program.groups if program else ()):
        raise Problem(403, "forbidden", "groups: only those of the key in Authorization can be given to a visitor")
    response.headers["Cache-Control"] = "no-store"
    return edge.tokens.issue(site, order.before or bearer, order.groups)


@router.get("/welcome")
@bounded("memory", visitors=True)
async def welcome(site: str, edge: TheEdge, lang: str = "") -> Welcome:
    """The site's name, questions to begin with, and who writes the answers. Public, as the chat is."""
    settings = edge.settings.site(site)
    tags = (tag := language_tag(lang), tag.partition("-")[0])
    examples = settings.chat.examples
    of = next((each for each in tags if each in examples), None)
    spoken = settings.spoken(lang)
    suggested: tuple[str, ...] = ()
    if spoken and not of and settings.chat.enabled and not edge.ports.chat.off(site):
        suggested = edge.ports.suggestions.of(site, spoken)  # those known so far, without waiting
    return Welcome(
        title=settings.title or site,
        examples=examples[of] if of else suggested,
        model=edge.settings.llm_model is not None,
        handover=settings.hands_over,
        frequent=settings.chat.frequent_questions,
    )
