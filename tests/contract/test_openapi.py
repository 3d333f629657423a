"""The OpenAPI document tells the truth about the edge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.app import create_app
from gateway.edge.problems import field_problems
from tests.edge import edge_settings
from tests.fakes.ports import FakePorts

PAGE = "/v1/sites/{site}/pages/{page_id}"
REBUILDS = "/v1/admin/sites/{site}/rebuilds"
LETTER = "/v1/admin/dlq/{topic}/{partition}/{offset}"
ANSWER = "/v1/sites/{site}/answers/{request_id}"
CONVERSATIONS = "/v1/sites/{site}/conversations"
TEXT = "/v1/admin/sites/{site}/texts/{kind}/{name}"
PRIVACY = "/v1/admin/sites/{site}/privacy"
ROUTES = {
    ("put", PAGE),
    ("delete", PAGE),
    ("get", f"{PAGE}/receipt"),
    ("post", "/v1/sites/{site}/pages:bulk"),
    ("post", "/v1/sites/{site}/webhooks/{connector}"),
    ("post", "/v1/sites/{site}/connectors/{connector}/changed"),
    ("post", "/v1/sites/{site}/connectors/{connector}/indexnow"),
    ("get", "/v1/sites/{site}/connectors/{connector}/indexnow"),
    ("get", "/v1/sites/{site}/connectors/{connector}/websub"),
    ("post", "/v1/sites/{site}/connectors/{connector}/websub"),
    ("get", "/v1/sites/{site}/pages"),
    ("get", PAGE),
    ("get", "/v1/admin/sites/{site}/handovers"),
    ("post", "/v1/admin/sites/{site}/handovers/{reference}/redeliver"),
    ("delete", "/v1/admin/sites/{site}/handovers/{reference}"),
    ("post", "/v1/sites/{site}/handovers"),
    ("get", "/v1/sites/{site}/welcome"),
    ("get", "/v1/sites/{site}/llms.txt"),
    ("get", "/v1/sites/{site}/llms-full.txt"),
    ("post", "/v1/sites/{site}/mcp"),
    ("post", "/v1/admin/mcp"),
    ("get", "/v1/sites/{site}/ask"),
    ("post", "/v1/sites/{site}/ask"),
    ("post", "/v1/sites/{site}/chat"),
    ("get", f"{ANSWER}/events"),
    ("delete", ANSWER),
    ("post", f"{ANSWER}/feedback"),
    ("get", CONVERSATIONS),
    ("get", f"{CONVERSATIONS}/{{conversation_id}}"),
    ("patch", f"{CONVERSATIONS}/{{conversation_id}}"),
    ("delete", f"{CONVERSATIONS}/{{conversation_id}}"),
    ("delete", "/v1/sites/{site}/visitors/me"),
    ("post", f"{CONVERSATIONS}/{{conversation_id}}/undo"),
    ("post", f"{CONVERSATIONS}/{{conversation_id}}/regenerate"),
    ("post", "/v1/chat/completions"),
    ("get", "/v1/models"),
    ("get", "/v1/models/{model}"),
    ("get", "/v1/sites/{site}/search"),
    ("get", "/v1/sites/{site}/suggest"),
    ("get", "/v1/sites/{site}/next-questions"),
    ("get", "/v1/sites/{site}/results"),
    ("post", "/v1/sites/{site}/visitor-tokens"),
    ("get", "/v1/admin/status"),
    ("get", "/v1/admin/dlq"),
    ("post", "/v1/admin/dlq:redrive"),
    ("post", "/v1/admin/dlq:drop"),
    ("get", LETTER),
    ("delete", LETTER),
    ("post", f"{LETTER}/redrive"),
    ("get", REBUILDS),
    ("post", REBUILDS),
    ("post", f"{REBUILDS}:rollback"),
    ("get", f"{REBUILDS}/{{generation}}"),
    ("delete", f"{REBUILDS}/{{generation}}"),
    ("post", f"{REBUILDS}/{{generation}}/promote"),
    ("get", "/v1/admin/sites/{site}/audit"),
    ("post", "/v1/admin/sites/{site}/audit"),
    ("get", "/v1/admin/sites/{site}/labels"),
    ("get", "/v1/admin/sites/{site}/examples"),
    ("post", "/v1/admin/sites/{site}/examples"),
    ("post", "/v1/admin/sites/{site}/examples:like"),
    ("delete", "/v1/admin/sites/{site}/examples/{example}"),
    ("get", "/v1/admin/sites/{site}/corrections"),
    ("post", "/v1/admin/sites/{site}/corrections"),
    ("post", "/v1/admin/sites/{site}/corrections:try"),
    ("get", "/v1/admin/sites/{site}/corrections/{correction}"),
    ("put", "/v1/admin/sites/{site}/corrections/{correction}"),
    ("delete", "/v1/admin/sites/{site}/corrections/{correction}"),
    ("post", "/v1/admin/sites/{site}/corrections/{correction}/rollback"),
    ("post", "/v1/admin/sites/{site}/corrections/{correction}/versions/{version}/restore"),
    ("get", "/v1/admin/sites/{site}/cases"),
    ("get", "/v1/admin/sites/{site}/questions"),
    ("get", "/v1/admin/sites/{site}/questions/{request_id}"),
    ("get", "/v1/admin/sites/{site}/evaluations"),
    ("post", "/v1/admin/sites/{site}/evaluations"),
    ("get", "/v1/admin/sites/{site}/evaluations/{run}"),
    ("delete", "/v1/admin/sites/{site}/evaluations/{run}"),
    ("get", "/v1/admin/sites/{site}/gaps"),
    ("get", "/v1/admin/sites/{site}/pages"),
    ("get", "/v1/admin/sites/{site}/texts"),
    ("get", "/v1/admin/sites/{site}/chat"),
    ("put", "/v1/admin/sites/{site}/chat"),
    ("get", "/v1/admin/sites/{site}/audit-run"),
    ("post", "/v1/admin/sites/{site}/audit-run"),
    ("post", "/v1/admin/sites/{site}/rebuilds:stop"),
    ("delete", "/v1/admin/sites/{site}/questions/{request_id}/conversation"),
    ("get", TEXT),
    ("put", TEXT),
    ("delete", TEXT),
    ("post", f"{TEXT}/versions/{{version}}/restore"),
    ("post", f"{TEXT}/candidates"),
    ("post", f"{TEXT}/rollback"),
    ("get", PRIVACY),
    ("put", PRIVACY),
    ("delete", PRIVACY),
    ("post", f"{PRIVACY}/versions/{{version}}/restore"),
    ("post", f"{PRIVACY}/rollback"),
    ("get", "/v1/admin/sites/{site}/evaluation-datasets"),
    ("post", "/v1/admin/sites/{site}/evaluation-run:plan"),
    ("get", "/v1/admin/sites/{site}/evaluation-run"),
    ("post", "/v1/admin/sites/{site}/evaluation-run"),
    ("delete", "/v1/admin/sites/{site}/evaluation-run"),
    ("get", "/v1/admin/evaluations"),
    ("post", "/v1/admin/evaluations"),
    ("get", "/v1/admin/evaluations/{run}"),
    ("delete", "/v1/admin/evaluations/{run}"),
    ("get", "/v1/admin/sites/{site}/trials"),
    ("post", "/v1/admin/sites/{site}/trials"),
    ("post", "/v1/admin/sites/{site}/cases"),
    ("get", "/v1/admin/keys"),
    ("post", "/v1/admin/keys"),
    ("delete", "/v1/admin/keys/{key}"),
    ("get", "/v1/admin/audit-log"),
    ("get", "/v1/admin/chat"),
    ("get", "/healthz"),
    ("get", "/readyz"),
    ("get", "/metrics"),
}
OPEN = {
    "/v1/sites/{site}/connectors/{connector}/indexnow",
    "/v1/sites/{site}/connectors/{connector}/websub",
    "/v1/sites/{site}/visitor-tokens",
    "/v1/sites/{site}/welcome",
    "/v1/sites/{site}/results",
    "/healthz",
    "/readyz",
    "/metrics",
}


@pytest.fixture
def document(tmp_path: Path) -> dict[str, Any]:
    return create_app(edge_settings(tmp_path), FakePorts().ports).openapi()


def operations(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(method, path): op for path, item in document["paths"].items() for method, op in item.items()}


def patterns(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("pattern"), str):
            yield part["pattern"]
        for inner in part.values():
            yield from patterns(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from patterns(inner)


def test_what_every_pattern_allows_is_said_in_words(document: dict[str, Any]) -> None:
    found = set(patterns(document))
    assert len(found) > 10
    for pattern in found:
        said = field_problems([{"loc": ("x",), "type": "x", "msg": "no words", "ctx": {"pattern": pattern}}])[0].message
        assert said.startswith("must be "), pattern


def test_exactly_the_routes_of_the_contract(document: dict[str, Any]) -> None:
    assert set(operations(document)) == ROUTES


def test_every_operation_is_explained_and_says_how_it_refuses(document: dict[str, Any]) -> None:
    for where, operation in operations(document).items():
        assert operation["description"], where
        refusal = "application/json" if "openai" in operation["tags"] else "application/problem+json"
        assert list(operation["responses"]["default"]["content"]) == [refusal], where
        assert "422" not in operation["responses"], where


def test_every_closed_door_is_marked(document: dict[str, Any]) -> None:
    for where, operation in operations(document).items():
        assert ("security" in operation) == (where[1] not in OPEN), where


def test_the_scope_that_a_route_insists_on_is_told(document: dict[str, Any]) -> None:
    told = {
        where: op["security"][0].get("HTTPBearer") for where, op in operations(document).items() if "security" in op
    }
    assert told["put", PAGE] == ["ingest"]
    assert told["post", "/v1/chat/completions"] == ["chat"]
    assert told["get", "/v1/admin/sites/{site}/questions"] == ["view"]
    assert told["post", "/v1/admin/sites/{site}/examples"] == ["edit"]
    for (_, path), scopes in told.items():
        assert (scopes in (["admin"], ["edit"], ["view"])) == path.startswith("/v1/admin"), path


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    references = set(_references(document))
    assert {"PageDocument", "BulkLine", "ChatRequest", "AnswerEvent", "Receipt", "ProblemDocument"} <= references
    assert references <= set(document["components"]["schemas"])


def test_bodies_and_answers_have_their_schemas(document: dict[str, Any]) -> None:
    ops = operations(document)
    body = ops["put", PAGE]["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/PageDocument"}
    fields = document["components"]["schemas"]["PageDocument"]
    assert fields["additionalProperties"] is False
    assert set(ops["put", PAGE]["responses"]) == {"200", "202", "default"}
    chat = ops["post", "/v1/sites/{site}/chat"]["responses"]["200"]["content"]
    assert set(chat) == {"application/json", "text/event-stream"}


def _references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"].removeprefix("#/components/schemas/")] if isinstance(node.get("$ref"), str) else []
        return own + [ref for value in node.values() for ref in _references(value)]
    if isinstance(node, list):
        return [ref for value in node for ref in _references(value)]
    return []
