"""The connection, and what Elasticsearch's errors mean to us."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from elastic_transport import ApiResponse, AsyncTransport, ConnectionTimeout, TransportApiResponse, TransportError
from elastic_transport import ConnectionError as TransportConnectionError
from elasticsearch import ApiError, AsyncElasticsearch, OrjsonSerializer
from elasticsearch.serializer import NdjsonSerializer

from adapters.elastic.settings import ElasticSettings
from adapters.tls import handshake_failure
from pipelines.runtime import tracing
from pipelines.runtime.errors import READ_AGAIN, READ_AT_START, Kind, PagewireError, Permanent, Retryable, SettingsError

REQUEST_TIMEOUT = 20.0  # seconds
# 429: queue full or a disk-full block, 5xx: no master, shard not yet allocated. All pass.
TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
_SITE_BLOCKED = re.compile(r"index \[pagewire-[^\]]*\] blocked")


class ElasticsearchDown(Retryable):
    """Elasticsearch cannot be reached or is busy."""

    code = "elasticsearch-unavailable"


class ElasticsearchDenied(ElasticsearchDown):
    """Elasticsearch does not take our key or password, or they may not do this, or we do not trust its certificate."""

    code = "elasticsearch-denied"


class ElasticsearchFull(Retryable):
    """The cluster takes no more shards, so a site without an index gets none."""

    code = "elasticsearch-full"
    kind = Kind.SITE


class IndexBlocked(Retryable):
    """A site's index takes no writes: somebody has set a block on it."""

    code = "index-blocked"
    kind = Kind.SITE


class ElasticsearchRefused(Permanent):
    """Elasticsearch will never take this request, or this document."""

    code = "elasticsearch-refused"
    kind = Kind.UNKNOWN


class DocumentRefused(ElasticsearchRefused):
    """Elasticsearch will never take this document, while it took others of the same request."""

    kind = Kind.RECORD


class OrjsonLines(OrjsonSerializer, NdjsonSerializer):
    """Bulks and several searches at once. Takes numpy vectors as they are, and is ten times as fast with them."""


class TracedElasticsearch(AsyncElasticsearch):
    """Tells of its requests where something is traced (pipelines.runtime.tracing).

    In place of the client's own spans, which hold URLs with ids and, with an error, what Elasticsearch quotes of a
    search; those go to OpenTelemetry's global provider, which ours is not.
    """

    async def perform_request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any | None = None,
        endpoint_id: str | None = None,
        path_parts: Mapping[str, Any] | None = None,
    ) -> ApiResponse[Any]:
        asked = partial(
            super().perform_request,
            method,
            path,
            params=params,
            body=body,
            endpoint_id=endpoint_id,
            path_parts=path_parts,
        )
        if not tracing.is_on():
            return await asked(headers=headers)
        index = (path_parts or {}).get("index", "")
        with tracing.database(endpoint_id or method, index if isinstance(index, str) else "", method) as request:
            try:
                answer = await asked(headers={**(headers or {}), **tracing.http_headers()})
            except ApiError as err:
                request.answered(err.meta.status, err.meta.node.host, err.meta.node.port)
                raise
            request.answered(answer.meta.status, answer.meta.node.host, answer.meta.node.port)
            return answer


def connect(url: str, settings: ElasticSettings) -> AsyncElasticsearch:
    """A client that does not try a node again: who calls knows better when.

    Args:
        url: One, or those of several nodes with commas between them.

    Raises:
        SettingsError: the file of the authority is no longer there.
    """
    urls = [one.strip() for one in url.split(",")]
    return TracedElasticsearch(
        urls,
        transport_class=_signing(settings),
        request_timeout=REQUEST_TIMEOUT,
        # Where a node cannot be reached the next one is asked, each once. A write may so be done twice: that ends the
        # same, here as everywhere.
        max_retries=len(urls) - 1,
        retry_on_timeout=False,
        retry_on_status=(),
        **_tls(urls, settings),
        serializers={serializer.mimetype: serializer for serializer in (OrjsonSerializer(), OrjsonLines())},
    )


def _signing(settings: ElasticSettings) -> type[AsyncTransport]:
    """A transport that says with each request who we are: what is in a key's file may be another one by then."""

    class Signing(AsyncTransport):
        async def perform_request(  # type: ignore[override]
            self, method: str, target: str, **options: Any
        ) -> TransportApiResponse:
            if said := _authorization(settings):
                options["headers"] = {**options.get("headers", {}), "authorization": said}
            return await super().perform_request(method, target, **options)

    return Signing


def _authorization(settings: ElasticSettings) -> str | None:
    key, user, password = (
        settings.elasticsearch_api_key,
        settings.elasticsearch_user,
        settings.elasticsearch_password,
    )
    if key:  # it wins
        return f"ApiKey {key.get_secret_value()}"
    if user and password:
        return f"Basic {b64encode(f'{user}:{password.get_secret_value()}'.encode()).decode()}"
    return None


def _tls(urls: Sequence[str], settings: ElasticSettings) -> dict[str, Any]:
    if not any(url.startswith("https:") for url in urls):
        return {}
    try:
        return {"ssl_context": settings.elasticsearch_tls.context()}
    except ValueError as err:  # it was there at the start
        raise SettingsError(str(err)) from None


@contextmanager
def explained(doing: str) -> Iterator[None]:
    """Turn the client's exceptions into ours.

    Raises:
        What `refusal` names: saying what was being done.
    """
    try:
        yield
    except (TransportConnectionError, ConnectionTimeout) as err:
        said = handshake_failure(err, "elasticsearch", "Elasticsearch", "PAGEWIRE_ELASTICSEARCH")
        if said is not None:
            raise ElasticsearchDenied(f"{doing}: {said}; {READ_AT_START}") from err
        raise ElasticsearchDown(f"{doing}: Elasticsearch does not answer ({type(err).__name__})") from err
    except ApiError as err:
        status = err.meta.status
        # A shard that is not allocated yet answers 404-like "no such shard" as 503; a missing index stays 404.
        kind = refusal(status, str(err)) or ElasticsearchRefused
        raise kind(f"{doing}: Elasticsearch answered {status}: {err.message}{_hint(kind, status)}") from err
    except TransportError as err:
        raise ElasticsearchDown(f"{doing}: {err.message}") from err


def refusal(status: int, said: str) -> type[PagewireError] | None:
    """What an answer of this status means, if it is not about the request itself.

    Args:
        said: Elasticsearch's type of error and its reason.
    """
    if status == 401 or (status == 403 and "security_exception" in said):
        return ElasticsearchDenied
    if status == 403:
        # A block on everything, or on an index that all sites share (`pagewire.receipts`), is everybody's trouble.
        return IndexBlocked if _SITE_BLOCKED.search(said) else ElasticsearchDown
    if status == 400 and "maximum" in said and "shards open" in said:
        return ElasticsearchFull
    return ElasticsearchDown if status in TRANSIENT else None


def _hint(kind: type[PagewireError], status: int) -> str:
    if kind is not ElasticsearchDenied:
        return ""
    if status == 403:
        return "; `pagewire topics --acls` lists the privileges that our key or user needs"
    asked = (
        "is PAGEWIRE_ELASTICSEARCH_API_KEY (or PAGEWIRE_ELASTICSEARCH_USER and its password) right, and still valid?"
    )
    return f"; {asked} {READ_AGAIN}"
