"""Webhooks: a CMS sends its changes, signed (connectors/cms/push.py).

site, connector, headers, announced length ─▶ body, within limits ─▶ signature ─▶ lines ─▶ intake

Anyone can send here, and the sender is known only after the body was read. So whatever the headers show is refused
before that, and a body may be no larger than a page in the log.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Header, Path, Request
from fastapi.security import APIKeyHeader
from pydantic import SecretStr

from connectors.cms.push import ID, SIGNATURE, TIMESTAMP, WINDOW, BadSignature, Delivery
from connectors.cms.settings import webhook_secret
from gateway.content.bulk import BATCH_LINES, accept_lines, body_limit
from gateway.edge.bodies import read_body
from gateway.edge.bounds import bounded
from gateway.edge.edge import Edge, TheEdge, address_of
from gateway.edge.openapi import request_body
from gateway.edge.problems import Problem
from pipelines.operate.states import of_connector
from schemas.http import BulkLine, BulkResult
from schemas.topics import MAX_MESSAGE_BYTES

LIMIT = MAX_MESSAGE_BYTES  # of a delivery: as large as a page in the log may be; escaped umlauts count as escaped

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
            body = await read_body(request, min(LIMIT, body_limit(edge.settings)), verification.update)
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
