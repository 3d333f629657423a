"""The connection, and what Elasticsearch's errors mean to us."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from elastic_transport import ConnectionError as TransportConnectionError
from elastic_transport import ConnectionTimeout, TransportError
from elasticsearch import ApiError, AsyncElasticsearch, OrjsonSerializer
from elasticsearch.serializer import NdjsonSerializer

from adapters.elastic.settings import ElasticSettings
from pipelines.runtime.errors import Permanent, Retryable

REQUEST_TIMEOUT = 20.0  # seconds
# 429: queue full or a disk-full block, 5xx: no master, shard not yet allocated. All pass.
TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})


class ElasticsearchDown(Retryable):
    """Elasticsearch cannot be reached or is busy."""

    code = "elasticsearch-unavailable"


class ElasticsearchRefused(Permanent):
    """Elasticsearch will never take this request."""

    code = "elasticsearch-refused"


class OrjsonLines(OrjsonSerializer, NdjsonSerializer):
    """Bulks and several searches at once. Takes numpy vectors as they are, and is ten times as fast with them."""


def connect(url: str, settings: ElasticSettings) -> AsyncElasticsearch:
    """A client without retries of its own: who calls knows better when to try again."""
    key, user, password = (
        settings.elasticsearch_api_key,
        settings.elasticsearch_user,
        settings.elasticsearch_password,
    )
    return AsyncElasticsearch(
        url,
        api_key=key.get_secret_value() if key else None,
        # The client takes one of the two: the key wins.
        basic_auth=(user, password.get_secret_value()) if user and password and not key else None,
        request_timeout=REQUEST_TIMEOUT,
        max_retries=0,
        retry_on_timeout=False,
        serializers={serializer.mimetype: serializer for serializer in (OrjsonSerializer(), OrjsonLines())},
    )


@contextmanager
def explained(doing: str) -> Iterator[None]:
    """Turn the client's exceptions into ours.

    Raises:
        ElasticsearchDown, ElasticsearchRefused: saying what was being done.
    """
    try:
        yield
    except (TransportConnectionError, ConnectionTimeout) as err:
        raise ElasticsearchDown(f"{doing}: Elasticsearch does not answer ({type(err).__name__})") from err
    except ApiError as err:
        status = err.meta.status
        # A shard that is not allocated yet answers 404-like "no such shard" as 503; a missing index stays 404.
        kind = ElasticsearchDown if status in TRANSIENT or (status == 403 and "block" in str(err)) else None
        raise (kind or ElasticsearchRefused)(f"{doing}: Elasticsearch answered {status}: {err.message}") from err
    except TransportError as err:
        raise ElasticsearchDown(f"{doing}: {err.message}") from err
