"""The connection, and the translation of Elasticsearch's errors."""

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
# 429: a full queue or a disk-full block; 5xx: no master, or a shard that is not allocated yet. All are temporary.
TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
_SITE_BLOCKED = re.compile(r"index \[pagewire-[^\[\]]*\] blocked")


class ElasticsearchDown(Retryable):
    """Elasticsearch cannot be reached or is busy."""

    code = "elasticsearch-unavailable"


class ElasticsearchDenied(ElasticsearchDown):
    """Elasticsearch refuses our key or password, or a privilege is missing, or we do not trust its certificate."""

    code = "elasticsearch-denied"


class ElasticsearchFull(Retryable):
    """The cluster has its maximum of shards, so a site without an index gets none."""

    code = "elasticsearch-full"
    kind = Kind.SITE


class IndexBlocked(Retryable):
    """A site's index refuses writes, because of a block that an operator has set."""

    code = "index-blocked"
    kind = Kind.SITE


class ElasticsearchRefused(Permanent):
    """Elasticsearch refuses a request or document for good."""

    code = "elasticsearch-refused"
    kind = Kind.UNKNOWN


class DocumentRefused(ElasticsearchRefused):
    """Elasticsearch refuses a document for good, but accepted others of the same request."""

    kind = Kind.RECORD


class OrjsonLines(OrjsonSerializer, NdjsonSerializer):
    """For bulks and multi-searches. Serializes numpy vectors directly, ten times as fast."""


class TracedElasticsearch(AsyncElasticsearch):
    """Makes spans of requests where tracing is switched on (pipelines.runtime.tracing).

    They replace the client's own spans, which have ids in URLs and, in errors, parts of searches. Those go to
    OpenTelemetry's global provider, which Pagewire does not set.
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
        send = partial(
            super().perform_request,
            method,
            path,
            params=params,
            body=body,
            endpoint_id=endpoint_id,
            path_parts=path_parts,
        )
        if not tracing.is_on():
            return await send(headers=headers)
        index = (path_parts or {}).get("index", "")
        with tracing.database(endpoint_id or method, index if isinstance(index, str) else "", method) as request:
            try:
                answer = await send(headers={**(headers or {}), **tracing.http_headers()})
            except ApiError as err:
                request.answered(err.meta.status, err.meta.node.host, err.meta.node.port)
                raise
            request.answered(answer.meta.status, answer.meta.node.host, answer.meta.node.port)
            return answer


def connect(url: str, settings: ElasticSettings) -> AsyncElasticsearch:
    """A client that does not retry a node, since callers retry.

    Args:
        url: One URL, or those of several nodes with commas between them.

    Raises:
        SettingsError: the authority's file is missing now.
    """
    urls = [one.strip() for one in url.split(",")]
    return TracedElasticsearch(
        urls,
        transport_class=_signing(settings),
        request_timeout=REQUEST_TIMEOUT,
        # An unreachable node's request goes to the next one, to each node once. So a write may happen twice, which is
        # safe, since all writes are idempotent.
        max_retries=len(urls) - 1,
        retry_on_timeout=False,
        retry_on_status=(),
        **_tls(urls, settings),
        serializers={serializer.mimetype: serializer for serializer in (OrjsonSerializer(), OrjsonLines())},
    )


def _signing(settings: ElasticSettings) -> type[AsyncTransport]:
    """A transport that reads the credentials for each request, since a key's file may change."""

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
    if key:  # before user and password
        return f"ApiKey {key.get_secret_value()}"
    if user and password:
        return f"Basic {b64encode(f'{user}:{password.get_secret_value()}'.encode()).decode()}"
    return None


def _tls(urls: Sequence[str], settings: ElasticSettings) -> dict[str, Any]:
    if not any(url.startswith("https:") for url in urls):
        return {}
    try:
        return {"ssl_context": settings.elasticsearch_tls.context()}
    except ValueError as err:  # the file was readable at the start
        raise SettingsError(str(err)) from None


@contextmanager
def explained(doing: str) -> Iterator[None]:
    """Turn the client's exceptions into ours.

    Raises:
        The errors of `refusal`; their messages begin with `doing`.
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
        # For a shard that is not allocated yet, the status is 503; for a missing index it is 404.
        kind = refusal(status, str(err)) or ElasticsearchRefused
        raise kind(f"{doing}: Elasticsearch answered {status}: {err.message}{_hint(kind, status)}") from err
    except TransportError as err:
        raise ElasticsearchDown(f"{doing}: {err.message}") from err


def refusal(status: int, said: str) -> type[PagewireError] | None:
    """The error for a status; None: the request itself is at fault.

    Args:
        said: the type of Elasticsearch's error and its reason.
    """
    if status == 401 or (status == 403 and "security_exception" in said):
        return ElasticsearchDenied
    if status == 403:
        # A block on all indexes, or on one for all sites (`pagewire.receipts`), affects every site.
        return IndexBlocked if _SITE_BLOCKED.search(said) else ElasticsearchDown
    if status == 400 and "maximum" in said and "shards open" in said:
        return ElasticsearchFull
    return ElasticsearchDown if status in TRANSIENT else None


def _hint(kind: type[PagewireError], status: int) -> str:
    if kind is not ElasticsearchDenied:
        return ""
    if status == 403:
        return "; `pagewire topics --acls` lists the privileges that our key or user needs"
    check = (
        "is PAGEWIRE_ELASTICSEARCH_API_KEY (or PAGEWIRE_ELASTICSEARCH_USER and its password) right, and still valid?"
    )
    return f"; {check} {READ_AGAIN}"
