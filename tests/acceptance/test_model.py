"""Answers written by a model, through the real topics; the model is tests/scripted_llm.py over real HTTP."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from pipelines.query.rephrase import OUTPUT_TOKENS
from tests.acceptance.system import Instance, Started, events
from tests.acceptance.test_story import ask, put
from tests.engine_fixture import Servers
from tests.scripted_llm import MODEL, Reply, ScriptedLLM

pytestmark = pytest.mark.engine


class Model:
    """Decides what the scripted model says next."""

    def __init__(self) -> None:
        self.reply = Reply(["ok"])
        self.seen: list[dict[str, Any]] = []

    def __call__(self, body: dict[str, Any]) -> Reply:
        self.seen.append(body)
        if body["max_tokens"] == OUTPUT_TOKENS:  # the rephrase stage
            return Reply(["What does a boat cost per hour?"])
        return self.reply


@contextmanager
def served(model: Model) -> Iterator[str]:
    """The scripted server on a loop of its own; gives its base URL."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = ScriptedLLM(model)
    try:
        asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(10)
        yield server.url
        asyncio.run_coroutine_threadsafe(server.__aexit__(), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def modelled(
    engine: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Model, httpx.Client, Instance, Started]]:
    model = Model()
    with served(model) as url:
        settings = {"PAGEWIRE_LLM_MODEL": MODEL, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"}
        instance = Instance(tmp_path_factory.mktemp("model"), engine, **settings)
        with instance.started("up") as up, instance.client(up.url) as site:
            put(site, "boats", "<p>A rowing boat costs 7 euros an hour. The pier opens at ten.</p>", title="Boats")
            yield model, site, instance, up


def test_markers_become_checked_citations(modelled: tuple[Model, httpx.Client, Instance, Started]) -> None:
    model, site, _, _ = modelled
    # Cut inside a marker, and one number that is no source.
    model.reply = Reply(["A boat costs ", "7 euros an hour [", "1]. ", "It is blue [9]."])
    answer = ask(site, "And what does one of these cost per hour?")
    assert answer["answer"] == "A boat costs 7 euros an hour. It is blue."
    assert answer["rephrased"] == "What does a boat cost per hour?"
    assert answer["extractive"] is False
    assert [(s["page_id"], s["cited"]) for s in answer["sources"] if s["cited"]] == [("boats", True)]
    assert answer["usage"]["completion_tokens"] == 7
    prompt = str(model.seen[-1]["messages"])
    assert "A rowing boat costs 7 euros an hour." in prompt
    assert "What does a boat cost per hour?" in prompt


def test_a_model_that_breaks_down_half_way_is_replaced_by_quotes(
    modelled: tuple[Model, httpx.Client, Instance, Started],
) -> None:
    model, site, _, _ = modelled
    model.reply = Reply(["Boats cost "], cut=True)
    request = site.stream(
        "POST", "/chat", json={"question": "What does a boat cost?"}, headers={"Accept": "text/event-stream"}
    )
    with request as response:
        got = list(events(response))
    kinds = [event for _, event, _ in got]
    assert kinds.index("restart") > kinds.index("token")
    final = got[-2][2]
    assert final["extractive"] is True
    assert "7 euros" in final["text"]
    after = kinds.index("restart")
    assert "".join(data["text"] for _, event, data in got[after:] if event == "token") == final["text"]
