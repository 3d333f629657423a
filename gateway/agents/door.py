"""Who may use what a site opens to assistants: callers with a key or a token as everywhere, and others as visitors.

An agent without a token has no name, so its address alone is counted, and it finds what everybody may find.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials

from gateway.edge.auth import VISITOR_SCOPES, Caller
from gateway.edge.bounds import Bound
from gateway.edge.edge import Edge, allow, bearer_scheme, caller_of, edge_of
from gateway.edge.problems import Problem
from gateway.edge.rates import What
from wiring.settings import AgentAccess


@dataclass(frozen=True)
class MayVisit:
    """A dependency that lets callers use `access` of the path's site if the site opens it, and counts visitors.

    A page that calls must be of the site's origins or the gateway's own.
    """

    access: AgentAccess
    counts: What

    bound: Bound = "visitor"
    visitors: bool = True

    async def __call__(
        self,
        site: str,
        request: Request,
        credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer_scheme)],
        edge: Annotated[Edge, Depends(edge_of)],
    ) -> Caller:
        """
        Raises:
            Problem: 401, 403, 429.
            UnknownSite.
        """
        settings = edge.settings.site(site)
        check_origin(edge, request, settings.origins)
        agent = Caller("agent", VISITOR_SCOPES, site, visitor="")
        caller = agent if credentials is None else caller_of(edge, credentials)
        request.state.caller = caller
        edge.used(caller)
        allow(caller, "chat", site)
        if self.access not in settings.agents:
            raise Problem(403, "agents-off", f"the site does not open this to assistants: `agents: [{self.access}]`")
        edge.count(self.counts, request, caller)
        return caller


def check_origin(edge: Edge, request: Request, origins: Collection[str]) -> None:
    """Refuse pages of other origins: a foreign page in an employee's browser could else read an intranet's gateway (DNS
    rebinding; MCP, 2025-11-25, Transports, Security Warning). Raises: Problem: 403."""
    origin, host = request.headers.get("origin"), request.headers.get("host", "")
    if origin is not None and origin not in origins and not edge.hosts.is_own_page(origin, host):
        raise Problem(403, "origin-not-allowed", "this origin is not among the origins of the site")
