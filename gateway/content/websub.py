"""The callback of WebSub subscriptions: a feed's hub asks whether we want it, and sends its new entries.

GET ─▶ our token and topic? ─▶ the hub's challenge
POST ─▶ our token, the hub's signature ─▶ 202 ─▶ visits to the entries' pages, as after an IndexNow push
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Annotated

import structlog
from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.responses import PlainTextResponse
from starlette.background import BackgroundTask

from connectors.cms.changed import MOST
from connectors.cms.settings import SitemapConnector
from connectors.cms.sitemap.websub import LONGEST_TOPIC, Subscription
from gateway.content.changed import is_at, visit_in_turn
from gateway.edge.bodies import read_body
from gateway.edge.bounds import bounded
from gateway.edge.edge import Edge, TheEdge, address_of
from gateway.edge.problems import Problem
from pipelines.runtime.errors import PagewireError

log = structlog.get_logger(__name__)

LIMIT = 5 * 1024 * 1024  # bytes, as of a feed that is polled

router = APIRouter(prefix="/v1/sites/{site}", tags=["content"])

Connector = Annotated[str, Path(description="A connector of the kind `sitemap` with `websub`.")]
Topic = Annotated[str, Query(max_length=LONGEST_TOPIC, description="The feed, as its hub calls it.")]
Token = Annotated[str, Query(max_length=100, description="Shows that this gateway's secret made the address.")]


@router.get("/connectors/{connector}/websub", response_class=PlainTextResponse)
@bounded("address")
async def confirm_subscription(
    site: str,
    connector: Connector,
    edge: TheEdge,
    request: Request,
    topic: Topic,
    token: Token,
    mode: Annotated[str, Query(alias="hub.mode", max_length=20)],
    hub_topic: Annotated[str, Query(alias="hub.topic", max_length=LONGEST_TOPIC)],
    challenge: Annotated[str, Query(alias="hub.challenge", max_length=1_000)] = "",
    lease: Annotated[str, Query(alias="hub.lease_seconds", max_length=20)] = "",
    reason: Annotated[str, Query(alias="hub.reason", max_length=1_000)] = "",
) -> Response:
    """A hub's question whether we have subscribed (https://www.w3.org/TR/websub/#hub-verifies-intent), or its refusal
    to serve us. 404: we have not subscribed, or do not want to unsubscribe.
    """
    edge.rates.count("websub", address_of(request))
    _subscription(edge, site, connector, topic, token)
    said = log.bind(site=site, connector=connector)
    if mode == "denied":
        said.warning("websub: the hub denies the subscription, the feed is polled only", reason=reason)
        return Response(status_code=200)
    if mode != "subscribe" or hub_topic != topic or not challenge:
        raise Problem(404, "unknown-connector", "nothing of this kind was asked for")
    said.info("websub: subscribed", seconds=lease)
    return PlainTextResponse(challenge)


@router.post("/connectors/{connector}/websub", status_code=202, response_class=Response)
@bounded("address")
async def take_entries(
    site: str,
    connector: Connector,
    edge: TheEdge,
    request: Request,
    topic: Topic,
    token: Token,
    signature: Annotated[str, Header(alias="X-Hub-Signature", max_length=200)] = "",
) -> Response:
    """New entries of a feed, from its hub. The response comes at once. A body without the right signature is ignored,
    as the standard demands. Of the entries' addresses, those of the website are visited, 100 at most.
    """
    edge.rates.count("websub", address_of(request))
    subscription, website = _subscription(edge, site, connector, topic, token)
    with edge.deliveries.one(address_of(request)):
        body = await read_body(request, LIMIT)
    said = log.bind(site=site, connector=connector)
    if not subscription.is_signed(signature, body):
        said.warning("websub: not signed by the hub, left alone")
        return Response(status_code=202)
    try:
        urls = await asyncio.to_thread(_addresses, body, topic, website.url)
    except PagewireError as err:
        said.warning("websub: cannot be read, the feed is polled", reason=str(err))
        return Response(status_code=202)
    with ExitStack() as stack:
        stack.enter_context(edge.visits.one(f"{site} {connector}"))
        visits = BackgroundTask(visit_in_turn, edge, site, connector, urls, stack.pop_all())
        return Response(status_code=202, background=visits)


def _addresses(body: bytes, topic: str, website: str) -> list[str]:
    """Raises: NotASitemap, ServerUnavailable: the body is no feed."""
    from connectors.cms.sitemap.feeds import entries_of  # the extra `crawl`

    found = dict.fromkeys(entry.url for entry in entries_of(body, topic) if is_at(entry.url, website))
    return list(found)[:MOST]


def _subscription(
    edge: Edge, site: str, connector: str, topic: str, token: str
) -> tuple[Subscription, SitemapConnector]:
    """Raises: Problem: 404, the same for everything that does not exist."""
    known = edge.settings.sites.get(site)
    found = known.connectors.get(connector) if known else None
    subscription = Subscription(site, connector, topic, edge.token_secret)
    if not isinstance(found, SitemapConnector) or found.websub is None or not subscription.is_token(token):
        raise Problem(404, "unknown-connector", "no connector of this name has subscribed to this")
    return subscription, found
