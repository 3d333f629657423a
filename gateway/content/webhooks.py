"""Webhooks: a CMS sends its changes, signed (connectors/cms/push.py), and a feed's hub its new entries, by WebSub.

site, connector, headers, announced length ─▶ body, within limits ─▶ signature ─▶ lines ─▶ intake
hub: GET  ─▶ our token and topic? ─▶ its challenge
     POST ─▶ our token, its signature ─▶ 202 ─▶ visits to the entries' pages, as after an IndexNow push

Anyone can send here, and the sender is known only after the body was read. So whatever the headers show is refused
before that, and a body may be no larger than a page in the log.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Annotated, Literal

import structlog
from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import PlainTextResponse
from fastapi.security import APIKeyHeader
from pydantic import SecretStr
from starlette.background import BackgroundTask

from connectors.cms.push import ID, SIGNATURE, TIMESTAMP, WINDOW, BadSignature, Delivery
from connectors.cms.settings import SitemapConnector, webhook_secret
from connectors.cms.sitemap.websub import LONGEST_TOPIC, Subscription
from connectors.cms.sources import MOST
from gateway.content.bulk import BATCH_LINES, accept_lines, body_limit
from gateway.content.changed import is_at, visit_in_turn
from gateway.edge.bodies import read_body
from gateway.edge.bounds import bounded
from gateway.edge.edge import Edge, TheEdge, address_of
from gateway.edge.openapi import request_body
from gateway.edge.problems import Problem
from pipelines.operate.states import of_connector
from pipelines.runtime.errors import PagewireError
from schemas.http import BulkLine, BulkResult
from schemas.topics import MAX_MESSAGE_BYTES

DELIVERY_LIMIT = (
    MAX_MESSAGE_BYTES  # of a delivery: as large as a page in the log may be; escaped umlauts count as escaped
)

router = APIRouter(prefix="/v1/sites/{site}", tags=["content"])

signature = APIKeyHeader(
    name=SIGNATURE,
    auto_error=False,
    scheme_name="WebhookSignature",
    description="`v1,` and the base64 of HMAC-SHA256 with the connector's secret over "
    "`{webhook-id}.{webhook-timestamp}.` and the body (https://www.standardwebhooks.com); several may stand there, "
    "with spaces between them.",
)
WebhookId = Annotated[str | None, Header(alias=ID, description="Another one with each delivery.")]
WebhookTimestamp = Annotated[
    str | None,
    Header(alias=TIMESTAMP, description=f"Seconds since 1970, when it was signed; good for {WINDOW} s either way."),
]
InLane = Annotated[
    Literal["save", "bulk"],
    Header(
        alias="Pagewire-Lane", description="`bulk` for what no editor waits for, as a first sync: saves overtake it."
    ),
]


@router.post(
    "/webhooks/{connector}",
    openapi_extra=request_body(BulkLine, media_type="application/x-ndjson", required=False),
    dependencies=[Depends(signature)],
)
@bounded("at once")
async def take_webhook(
    site: str,
    connector: Annotated[str, Path(description="Name under `connectors` of the site in pagewire.yaml.")],
    edge: TheEdge,
    request: Request,
    webhook_id: WebhookId = None,
    webhook_timestamp: WebhookTimestamp = None,
    lane: InLane = "save",
) -> BulkResult:
    """Changes of a connector, one JSON object a line, in order, 500 lines and 8 MiB at most. Each needs its revision,
    so that a delivery that comes twice changes nothing. A bad line does not affect the others. After any status
    other than 200 send everything again later. An empty body is a test of the connection.
    """
    secret = _secret(edge, site, connector)
    try:
        delivery = Delivery.of(request.headers, time.time())
        verification = delivery.verification(secret)
        with edge.deliveries.one(address_of(request)):
            body = await read_body(request, min(DELIVERY_LIMIT, body_limit(edge.settings)), verification.update)
        verification.finish()
    except BadSignature as err:
        raise Problem(401, err.code, str(err)) from None
    edge.ports.uses.note(of_connector(site, connector))
    if sum(bool(line.strip()) for line in body.split(b"\n")) > BATCH_LINES:
        raise Problem(413, "too-large", f"the limit is {BATCH_LINES} lines")
    return await accept_lines(
        _lines(body), site, edge.ports.intake, edge.settings, source=connector, lane=lane, revised=True
    )


def _secret(edge: Edge, site: str, connector: str) -> SecretStr:
    """Raises: Problem: 404, the same for everything that does not exist."""
    known = edge.settings.sites.get(site)
    secret = webhook_secret(known.connectors[connector]) if known and connector in known.connectors else None
    if secret is None:
        raise Problem(404, "unknown-connector", "no connector of this name takes webhooks for this site")
    return secret


async def _lines(body: bytes) -> AsyncIterator[tuple[int, bytes | None]]:
    for number, line in enumerate(body.split(b"\n"), 1):
        if line.strip():
            yield number, line


log = structlog.get_logger(__name__)

FEED_LIMIT = 5 * 1024 * 1024  # bytes, as of a feed that is polled


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
        body = await read_body(request, FEED_LIMIT)
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
