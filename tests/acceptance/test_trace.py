"""One trace id leads from the HTTP request through every stage's log to the citation, to each process's spans,
and from what is counted back to it.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from prometheus_client.openmetrics import parser as families

from tests.acceptance.collector import Collector, collecting
from tests.acceptance.system import Instance, Started
from tests.acceptance.test_story import put
from tests.engine_fixture import Servers

pytestmark = pytest.mark.engine

STAGES = ("rephrase", "retrieve", "answer")


def logged(process: Started, trace: str) -> list[dict[str, Any]]:
    """The lines of a process that carry the trace."""
    lines = [json.loads(line) for line in process.log.read_text(encoding="utf-8").splitlines() if line[:1] == "{"]
    return [line for line in lines if line.get("trace_id") == trace]


def tree(collector: Collector, trace: str) -> dict[tuple[str, str], tuple[str, str] | None]:
    """Service and name of each span of a trace, and of the span it is a part of."""
    known = {span.id: (span.service, span.name) for span in collector.of(trace)}
    return {(span.service, span.name): known.get(span.parent) for span in collector.of(trace)}


def test_a_question_can_be_followed_through_all_processes(engine: Servers, tmp_path: Path) -> None:
    trace, saved = uuid4().hex, uuid4().hex
    secret = "zebra crossing"  # of the question: never in a log, never in a span
    with ExitStack() as stack:
        collector = stack.enter_context(collecting())
        tracing = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        logs = {"PAGEWIRE_LOG_LEVEL": "info", "PAGEWIRE_LOG_JSON": "true"}
        instance = Instance(tmp_path, engine, PAGEWIRE_GATE="false", **logs, **tracing)
        with ExitStack() as running:
            started = {name: running.enter_context(instance.started("worker", name)) for name in ("ingest", *STAGES)}
            started["gateway"] = running.enter_context(instance.started("gateway"))
            site = running.enter_context(instance.client(started["gateway"].url))
            site.headers["traceparent"] = f"00-{saved}-{'1' * 16}-01"
            put(site, "crossing", "<p>The zebra crossing at the mill is lit at night.</p>", title="Streets")
            answer = site.post(
                "/chat",
                json={"question": f"Where is the {secret} lit at night?"},
                headers={"traceparent": f"00-{trace}-{'1' * 16}-01"},
            )
            assert answer.status_code == 200, answer.text
            assert answer.headers["x-trace-id"] == trace
            accept = {"Accept": "application/openmetrics-text"}
            scraped = httpx.get(f"{started['gateway'].url}/metrics", headers=accept)
            said = {name: logged(started[name], trace) for name in ("gateway", *STAGES)}
    assert [line["event"] for line in said["gateway"]] == ["request"]
    for name, event in zip(STAGES, ("rephrased", "retrieved", "answered"), strict=True):
        assert [line["event"] for line in said[name]] == [event]
        assert said[name][0]["stage"] == name
        assert said[name][0]["topic"].startswith(instance.site)
    assert said["answer"][0]["cited"] == ["crossing"]
    assert all(secret not in process.log.read_text(encoding="utf-8") for process in started.values())
    asked = tree(collector, trace)
    steps = [("pagewire-gateway", "POST /v1/sites/{site}/chat")]
    for topic, service in zip(("requests", "rephrased", "retrieved"), STAGES, strict=True):
        name = f"{instance.site}-query.{topic}"
        steps += [(steps[-1][0], f"send {name}"), (f"pagewire-{service}", f"process {name}")]
    assert [asked[step] for step in steps] == [None, *steps[:-1]]
    assert {asked[step] for step in asked if step[1].startswith(("msearch", "search"))} <= {steps[0], *steps[2::2]}
    assert any(step == ("pagewire-retrieve", "embeddings lite") for step in asked)
    kept = tree(collector, saved)
    for topic in ("cms.changes", "ingest.chunks", "ingest.embeddings", "ingest.receipts"):
        assert kept["pagewire-worker", f"process {instance.site}-{topic}"] is not None
    assert any(step[1] == "bulk" for step in kept)
    assert scraped.headers["content-type"].startswith("application/openmetrics-text")
    list(families.text_string_to_metric_families(scraped.text))  # as a scraper reads it, strictly
    asked_for = [line for line in scraped.text.splitlines() if 'route="/v1/sites/{site}/chat"' in line]
    assert any(f',trace_id="{trace}"}}' in line for line in asked_for if "_bucket" in line)
    assert not [body for body in collector.bodies if b"zebra" in body or answer.json()["request_id"].encode() in body]
