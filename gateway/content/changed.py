"""Changed addresses that a website sends: works with any CMS that can send a list.

changed ──▶ key of the scope `ingest` ──▶ visits ──▶ the outcome of each
indexnow ─▶ the connector's IndexNow key ─▶ 202 ─▶ visits, one push of a connector after the other
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from hmac import compare_digest
from typing import Annotated
from urllib.parse import urlsplit

import structlog
from fastapi import APIRouter, Path, Query, Request, Response
from starlette.background import BackgroundTask

from connectors.cms.addresses import same_site
from connectors.cms.settings import SitemapConnector
from connectors.cms.sources import MOST, take_changed
from gateway.edge.bodies import parse, read_body
from gateway.edge.bounds import bounded
from gateway.edge.edge import Edge, MayIngest, TheEdge, address_of
from gateway.edge.openapi import request_body
from gateway.edge.problems import Problem
from pipelines.runtime.errors import PagewireError
from schemas.changed import LONGEST_KEY, LONGEST_URL, ChangedAddress, ChangedOrder, ChangedResult, IndexNowOrder

log = structlog.get_logger(__name__)

LIMIT = 1024 * 1024  # bytes: as many addresses as are taken, and those that are too many for a plain answer

router = APIRouter(prefix="/v1/sites/{site}", tags=["content"])


@router.post("/connectors/{connector}/changed", openapi_extra=request_body(ChangedOrder))
async def changed(
    site: str,
    connector: Annotated[str, Path(description="A connector of the kind `sitemap`.")],
    caller: MayIngest,
    edge: TheEdge,
    request: Request,
) -> ChangedResult:
    """Visit these addresses of a website at once, and accept what has changed: IndexNow's `urlList`, 100 at most.

    A page that is gone, moved or excluded is deleted. Each address has its outcome; see also the page's receipt.
    """
    if connector not in edge.settings.site(site).connectors:
        raise Problem(404, "unknown-connector", "the site has no connector of this name")
    order = parse(ChangedOrder, await read_body(request, LIMIT))
    if len(order.urlList) > MOST:
        raise Problem(413, "too-large", f"the limit is {MOST} addresses; for more: `pagewire reconcile {site}`")
    return ChangedResult(addresses=tuple(await _visit(edge, site, connector, order.urlList)))


@router.post(
    "/connectors/{connector}/indexnow",
    status_code=202,
    response_class=Response,
    openapi_extra=request_body(IndexNowOrder),
)
@bounded("address")
async def indexnow(
    site: str,
    connector: Annotated[str, Path(description="A connector of the kind `sitemap` with an `indexnow_key`.")],
    edge: TheEdge,
    request: Request,
) -> Response:
    """What a website pushes to search engines (https://www.indexnow.org/documentation), 100 addresses at most.

    The addresses are visited after the response, since a website may push while it saves and answer no other request
    meanwhile. 400: another format. 403: another key. 422: addresses of another website, or too many.
    """
    website = _website(edge, site, connector, request)
    with edge.deliveries.one(address_of(request)):
        body = await read_body(request, LIMIT)
    try:
        order = parse(IndexNowOrder, body)
    except Problem as err:
        if err.status != 422:
            raise
        raise Problem(400, err.code, err.detail, errors=err.errors) from None
    return _pushed(edge, site, connector, website, order.key, order.host, order.urlList)


@router.get("/connectors/{connector}/indexnow", status_code=202, response_class=Response)
@bounded("address")
async def indexnow_address(
    site: str,
    connector: Annotated[str, Path(description="A connector of the kind `sitemap` with an `indexnow_key`.")],
    url: Annotated[str, Query(min_length=1, max_length=LONGEST_URL, description="The changed page.")],
    key: Annotated[str, Query(min_length=1, max_length=LONGEST_KEY, description="The connector's `indexnow_key`.")],
    edge: TheEdge,
    request: Request,
) -> Response:
    """IndexNow's short form: one address, visited after the response. 403: another key. 422: another website."""
    website = _website(edge, site, connector, request)
    return _pushed(edge, site, connector, website, key, website.url, (url,))


def _pushed(
    edge: Edge, site: str, connector: str, website: SitemapConnector, key: str, host: str, urls: Sequence[str]
) -> Response:
    if not compare_digest(key.encode(), (website.indexnow_key or "").encode()):
        raise Problem(403, "forbidden", "`key` is not the connector's `indexnow_key`")
    if len(urls) > MOST:
        raise Problem(422, "invalid", f"`urlList`: {MOST} addresses at most; for more: `pagewire reconcile {site}`")
    if not all(is_at(url, website.url) for url in urls) or _host(host) != _host(website.url):
        raise Problem(422, "invalid", "`host` or an address is not of this website")
    with ExitStack() as stack:
        stack.enter_context(edge.visits.one(f"{site} {connector}"))
        visits = BackgroundTask(visit_in_turn, edge, site, connector, urls, stack.pop_all())
        return Response(status_code=202, background=visits)


async def visit_in_turn(edge: Edge, site: str, connector: str, urls: Sequence[str], held: ExitStack) -> None:
    """Visit addresses when the connector's earlier pushes are done, and log the outcome. Args: held: until then."""
    said = log.bind(site=site, connector=connector)
    with held:
        async with edge.visits.turns[f"{site} {connector}"]:
            try:
                outcomes = await _visit(edge, site, connector, urls)
            except PagewireError as err:
                said.warning("pushed addresses: not visited", addresses=len(urls), reason=str(err))
            else:
                said.info("pushed addresses: visited", **Counter[str](one.state for one in outcomes))


async def _visit(edge: Edge, site: str, connector: str, urls: Sequence[str]) -> list[ChangedAddress]:
    return await take_changed(
        edge.settings,
        site,
        connector,
        urls,
        edge.ports.intake,
        lambda url: edge.ports.indexed.at(site, url, groups=None),
    )


def _website(edge: Edge, site: str, connector: str, request: Request) -> SitemapConnector:
    """Count the push. Raises: Problem: 404, the same for everything that does not exist; 429."""
    edge.rates.count("indexnow", address_of(request))
    known = edge.settings.sites.get(site)
    found = known.connectors.get(connector) if known else None
    if not isinstance(found, SitemapConnector) or found.indexnow_key is None:
        raise Problem(404, "unknown-connector", "no connector of this name takes IndexNow for this site")
    return found


def is_at(url: str, website: str) -> bool:
    """Whether the address is on the website."""
    with suppress(ValueError):
        return same_site(url, website)
    return False


def _host(said: str) -> str | None:
    """The host of an address, or of a `host` with or without a port."""
    with suppress(ValueError):
        return urlsplit(said if "//" in said else f"//{said}").hostname
    return None
