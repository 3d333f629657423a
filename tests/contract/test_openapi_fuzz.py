"""Whatever the OpenAPI document allows, and what it does not: no route falls over, and each answers as it says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import uvicorn
from hypothesis import HealthCheck, given, settings

from gateway.app import create_app
from tests.contract.test_openapi import ROUTES
from tests.edge import ADMIN, bearer, edge_settings
from tests.fakes.ports import FakeIntake, FakePorts, FakeRebuilds
from tests.signing import SECRET, signed

pytestmark = pytest.mark.fuzz

EXAMPLES = 15  # per operation


class _Served(uvicorn.Server):
    def install_signal_handlers(self) -> None:
        pass


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The gateway over its fakes, in a thread: schemathesis asks as a blocking client does."""
    web = {
        "kind": "sitemap",
        "url": "https://www.town.example",
        "indexnow_key": "0123456789",
        "websub": "https://chat.example.org",
    }
    sites = {
        "town": {
            "languages": ["en"],
            "agents": ["pages", "mcp", "nlweb"],
            "connectors": {"blog": {"kind": "push", "secret": SECRET}, "web": web},
        },
        "other": {"languages": ["fr"]},
    }
    fakes = FakePorts(pages=FakeIntake({"town": "en", "other": "fr"}), rebuilds=FakeRebuilds())
    app = create_app(edge_settings(tmp_path_factory.mktemp("fuzz"), sites=sites), fakes.ports)
    server = _Served(uvicorn.Config(app, port=0, access_log=False, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        thread.join(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def one_line(value: Any) -> bytes:
    """A body of NDJSON, of what stands for one of its lines in the document."""
    return value if isinstance(value, bytes) else json.dumps(value, default=str).encode() + b"\n"


@pytest.fixture(scope="module")
def document(url: str) -> Any:
    import schemathesis

    schemathesis.serializer("application/x-ndjson")(lambda ctx, value: one_line(value))
    return schemathesis.openapi.from_url(f"{url}/openapi.json")


@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize(("method", "path"), sorted(ROUTES))
def test_every_route_answers_as_the_document_says(document: Any, url: str, method: str, path: str, mode: str) -> None:
    """`positive`: what the document allows; `negative`: what it does not."""
    from hypothesis.errors import Unsatisfiable
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

    operation = document[path][method.upper()]

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), database=None, derandomize=True)
    @given(case=operation.as_strategy(generation_mode=GenerationMode(mode)))
    def ask(case: Any) -> None:
        if "site" in case.path_parameters and case.path_parameters["site"] != "":
            case.path_parameters["site"] = "town"  # else all of it would be unknown sites
        headers = bearer(ADMIN)
        if path.endswith("/webhooks/{connector}"):
            case.path_parameters["connector"] = "blog"
        elif path.endswith(("/indexnow", "/websub")):
            case.path_parameters["connector"] = "web"
        response = case.call(base_url=url, headers=headers, timeout=20)
        case.validate_response(
            response, checks=(not_a_server_error, content_type_conformance, response_schema_conformance)
        )

    try:
        ask()
    except Unsatisfiable:
        assert mode == "negative"  # a route without any parameter cannot be asked wrongly


def test_the_webhook_takes_whatever_is_signed(document: Any, url: str) -> None:
    @settings(max_examples=60, suppress_health_check=list(HealthCheck), database=None, derandomize=True)
    @given(case=document["/v1/sites/{site}/webhooks/{connector}"]["POST"].as_strategy())
    def ask(case: Any) -> None:
        body = one_line(case.body) if isinstance(case.body, dict) else b""
        answer = httpx.post(f"{url}/v1/sites/town/webhooks/blog", content=body, headers=signed(body), timeout=20)
        assert answer.status_code == 200, answer.text
        result = answer.json()
        assert result["accepted"] + result["rejected"] + result["superseded"] == bool(body)

    ask()
