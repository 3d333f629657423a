"""One trace id leads from the HTTP request through every stage's log to the citation."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.acceptance.system import Instance, Started
from tests.acceptance.test_story import put
from tests.engine_fixture import Servers

pytestmark = pytest.mark.engine

STAGES = ("rephrase", "retrieve", "answer")


def logged(process: Started, trace: str) -> list[dict[str, Any]]:
    """The lines of a process that carry the trace."""
    lines = [json.loads(line) for line in process.log.read_text(encoding="utf-8").splitlines() if line[:1] == "{"]
    return [line for line in lines if line.get("trace_id") == trace]


def test_a_question_can_be_followed_through_all_processes(engine: Servers, tmp_path: Path) -> None:
    instance = Instance(tmp_path, engine, PAGEWIRE_LOG_LEVEL="info", PAGEWIRE_LOG_JSON="true", PAGEWIRE_GATE="false")
    trace = uuid4().hex
    secret = "zebra crossing"  # of the question: never in a log
    with ExitStack() as stack:
        started = {name: stack.enter_context(instance.started("worker", name)) for name in ("ingest", *STAGES)}
        started["gateway"] = stack.enter_context(instance.started("gateway"))
        site = stack.enter_context(instance.client(started["gateway"].url))
        put(site, "crossing", "<p>The zebra crossing at the mill is lit at night.</p>", title="Streets")
        answer = site.post(
            "/chat",
            json={"question": f"Where is the {secret} lit at night?"},
            headers={"traceparent": f"00-{trace}-{'1' * 16}-01"},
        )
        assert answer.status_code == 200, answer.text
        assert answer.headers["x-trace-id"] == trace
        said = {name: logged(started[name], trace) for name in ("gateway", *STAGES)}
    assert [line["event"] for line in said["gateway"]] == ["request"]
    for name, event in zip(STAGES, ("rephrased", "retrieved", "answered"), strict=True):
        assert [line["event"] for line in said[name]] == [event]
        assert said[name][0]["stage"] == name
        assert said[name][0]["topic"].startswith(instance.site)
    assert said["answer"][0]["cited"] == ["crossing"]
    assert all(secret not in process.log.read_text(encoding="utf-8") for process in started.values())
