"""What Elasticsearch's refusals mean: which pass, so that the stage tries again, and which never will."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme
from elastic_transport import ApiResponseMeta, ConnectionTimeout, HttpHeaders, NodeConfig, TlsError, TransportError
from elastic_transport import ConnectionError as TransportConnectionError
from elasticsearch import ApiError
from elasticsearch.exceptions import HTTP_EXCEPTIONS
from pydantic import ValidationError

from adapters.elastic.client import (
    DocumentRefused,
    ElasticsearchDenied,
    ElasticsearchDown,
    ElasticsearchFull,
    ElasticsearchRefused,
    IndexBlocked,
    connect,
    explained,
    refusal,
)
from adapters.elastic.settings import ElasticSettings
from pipelines.runtime.errors import Kind, PagewireError, Permanent, Retryable

# As a server writes them. The first: the disk is full up to its flood stage; the second: somebody closed the index to
# writes; the third: a role without the right.
FLOOD = "index [town] blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark];"
READ_ONLY = "index [town] blocked by: [FORBIDDEN/8/index write (api)];"
NO_RIGHT = "action [indices:data/write/index] is unauthorized for user [pagewire] on indices [town]"


def refused(status: int, kind: str, reason: str = "") -> ApiError:
    """The exception of the real client for such an answer."""
    meta = ApiResponseMeta(status, "1.1", HttpHeaders(), 0.1, NodeConfig("http", "localhost", 9200))
    error: dict[str, Any] = {"type": kind, "reason": reason}
    body = {"error": {"root_cause": [error], **error}, "status": status}
    return HTTP_EXCEPTIONS.get(status, ApiError)(message=kind, meta=meta, body=body)


@pytest.mark.parametrize(
    "error",
    [
        refused(403, "cluster_block_exception", READ_ONLY),
        refused(429, "cluster_block_exception", FLOOD),
        refused(408, "timeout"),
        refused(429, "es_rejected_execution_exception", "queue full"),
        refused(500, "exception"),
        refused(502, "bad gateway"),
        refused(503, "no_shard_available_action_exception"),
        refused(504, "gateway timeout"),
        TransportConnectionError("away"),
        ConnectionTimeout("late"),
        TransportError("no node"),
    ],
    ids=lambda error: f"{error.meta.status} {error.message}" if isinstance(error, ApiError) else type(error).__name__,
)
def test_what_passes_is_tried_again(error: Exception) -> None:
    assert issubclass(ElasticsearchDown, Retryable)
    with pytest.raises(ElasticsearchDown, match="writing: "), explained("writing"):
        raise error


@pytest.mark.parametrize(
    "error",
    [
        refused(400, "mapper_parsing_exception", "failed to parse"),
        refused(404, "index_not_found_exception", "no such index [town]"),
        refused(409, "version_conflict_engine_exception"),
        refused(413, "content too long"),
    ],
    ids=lambda error: f"{error.meta.status} {error.message}",
)
def test_what_never_passes_is_not(error: ApiError) -> None:
    assert issubclass(ElasticsearchRefused, Permanent)
    said = f"writing: Elasticsearch answered {error.meta.status}"
    with pytest.raises(ElasticsearchRefused, match=said), explained("writing"):
        raise error


SHARDS = (
    "validation_exception: this action would add [1] shards, but this cluster currently has [1000]/[1000] maximum "
    "normal shards open"
)
BLOCK = "cluster_block_exception: index [{}] blocked by: [FORBIDDEN/8/index write (api)];"


@pytest.mark.parametrize(
    ("status", "said", "means", "kind"),
    [
        (401, "security_exception: unable to authenticate", ElasticsearchDenied, Kind.SERVICE),
        (403, f"security_exception: {NO_RIGHT}", ElasticsearchDenied, Kind.SERVICE),
        (429, f"cluster_block_exception: {FLOOD}", ElasticsearchDown, Kind.SERVICE),
        (
            403,
            "cluster_block_exception: blocked by: [FORBIDDEN/6/cluster read-only (api)];",
            ElasticsearchDown,
            "service",
        ),
        (403, BLOCK.format("pagewire.receipts"), ElasticsearchDown, Kind.SERVICE),
        (403, BLOCK.format("pagewire-town-000001"), IndexBlocked, Kind.SITE),
        (400, SHARDS, ElasticsearchFull, Kind.SITE),
        (503, "no master", ElasticsearchDown, Kind.SERVICE),
    ],
)
def test_whose_trouble_a_refusal_is(status: int, said: str, means: type[PagewireError], kind: Kind) -> None:
    found = refusal(status, said)
    assert (found, found and found.kind) == (means, kind)
    assert issubclass(means, Retryable)  # the edge: 503, and a save does without a look at the index
    with pytest.raises(means), explained("writing"):
        raise refused(status, *said.split(": ", 1))


def test_only_what_is_refused_for_itself_is_a_bad_record() -> None:
    assert refusal(400, "document_parsing_exception: failed to parse") is None
    assert (ElasticsearchRefused.kind, DocumentRefused.kind) == (Kind.UNKNOWN, Kind.RECORD)


def test_a_refused_key_names_its_setting() -> None:
    with pytest.raises(ElasticsearchDenied) as refusal, explained("writing"):
        raise refused(401, "security_exception", "unable to authenticate")
    assert "PAGEWIRE_ELASTICSEARCH_API_KEY" in str(refusal.value)
    assert "restart" in str(refusal.value)


def test_an_unknown_authority_names_its_setting() -> None:
    cause = ssl.SSLCertVerificationError()
    cause.verify_code, cause.verify_message = 19, "self-signed certificate in certificate chain"
    said = r"writing: .*PAGEWIRE_ELASTICSEARCH_CA must be"
    with pytest.raises(ElasticsearchDenied, match=said) as refusal, explained("writing"):
        raise TlsError("handshake failed", errors=(cause,))
    assert refusal.value.kind is Kind.SERVICE


def test_a_missing_privilege_says_where_the_list_is() -> None:
    with pytest.raises(ElasticsearchDenied, match="`pagewire topics --acls`"), explained("writing"):
        raise refused(403, "security_exception", NO_RIGHT)


async def test_a_node_that_is_away_is_passed_over_and_one_alone_is_not_tried_again() -> None:
    for hosts, retries in ((["one", "three", "two"], 2), (["one"], 0)):
        url = ", ".join(f"https://{host}:9200" for host in hosts)
        client = connect(url, ElasticSettings(elasticsearch=url))
        try:
            assert sorted(node.host for node in client.transport.node_pool.all()) == hosts
            assert (client._max_retries, client._retry_on_status, client._retry_on_timeout) == (retries, (), False)
        finally:
            await client.close()


def test_an_authority_must_be_there_and_have_something_to_vouch_for(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    with pytest.raises(ValidationError, match=r"PAGEWIRE_ELASTICSEARCH_CA\): .*ca.pem cannot be read"):
        ElasticSettings(elasticsearch="https://one:9200", elasticsearch_ca=ca)
    trustme.CA().cert_pem.write_to_path(ca)
    with pytest.raises(ValidationError, match="PAGEWIRE_ELASTICSEARCH is no https"):
        ElasticSettings(elasticsearch="https://one:9200,http://two:9200", elasticsearch_ca=ca)
    settings = ElasticSettings(elasticsearch="https://one:9200", elasticsearch_ca=ca)
    context = settings.elasticsearch_tls.context()
    assert (len(context.get_ca_certs()), context.check_hostname) == (1, True)
