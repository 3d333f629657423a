"""Answers by a real language model behind a real model server: the wire, not the wisdom of 135 million parameters.

    visitor ─▶ `pagewire up` ─OpenAI's wire format─▶ `transformers serve` ─▶ SmolLM2-135M-Instruct

What the model says is its own affair: it may be wrong, uncited, or about something else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from bench.visitors import cases as visitors
from bench.visitors import part_of
from infra.engine.state import any_free
from tests.acceptance.system import PAGEWIRE, Instance, eventually, streamed
from tests.acceptance.test_story import put
from tests.engine_fixture import Servers

pytestmark = [pytest.mark.model, pytest.mark.engine]

START_TIMEOUT = 240.0  # seconds; CI machines are shared


@pytest.fixture(scope="module")
def model_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Its address, `/v1` included, and the name of its one model."""
    home = tmp_path_factory.mktemp("model")
    weights = home / "weights"
    # One thread: more of them get in each other's way beside Kafka and Elasticsearch.
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(home), "OMP_NUM_THREADS": "1"}
    subprocess.run(
        [sys.executable, "-m", "tests.model.weights", str(weights)], check=True, env=environment, timeout=800
    )
    port = any_free(set())
    serve = [Path(sys.executable).with_name("transformers"), "serve", "--host", "127.0.0.1", "--port", str(port)]
    log = home / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*serve, "--device", "cpu", "--dtype", "float32", str(weights)], stdout=out, stderr=out, env=environment
        )
        try:
            eventually(lambda: process.poll() is not None or _answers(port), timeout=START_TIMEOUT)
            assert process.poll() is None, log.read_text()
            yield f"http://127.0.0.1:{port}/v1", str(weights)
        finally:
            process.terminate()
            process.wait(60)


def _answers(port: int) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200
    return False


@pytest.fixture(scope="module")
def modelled(
    engine: Servers, model_server: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[httpx.Client, str]]:
    url, name = model_server
    settings = {"PAGEWIRE_LLM_MODEL": name, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"}
    settings |= {"PAGEWIRE_GATE": "false", "PAGEWIRE_LLM_TIMEOUT": "120"}  # a site of one page; a slow machine
    instance = Instance(tmp_path_factory.mktemp("real-model"), engine, **settings)
    with instance.started("up") as up, instance.client(up.url) as site:
        site.timeout = httpx.Timeout(300)
        put(site, "library", "<p>A library card costs 12 euros a year. The library is closed on Mondays.</p>")
        yield site, f"{up.url}/v1"


def written(answer: dict[str, Any]) -> bool:
    """Whether the model's own words were shown, or were found to be borne out by no source: so small a model invents.

    For nothing else may the pages be quoted here.
    """
    return not answer["extractive"] or "model-unfounded" in [step["said"] for step in answer["trace"]]


def test_an_answer_streams_from_the_model_to_the_visitor(modelled: tuple[httpx.Client, str]) -> None:
    site, _ = modelled
    got = streamed(site, "How much does a library card cost?")
    names = [event for event, _ in got]
    assert names[-2:] == ["answer", "done"], got[-2:]
    final = got[-2][1]
    assert written(final), final
    last = max((n for n, name in enumerate(names) if name == "restart"), default=0)
    # A sentence at a time, and all that it says may be one.
    assert final["text"] == "".join(str(data["text"]) for event, data in got[last:] if event == "token") != ""
    assert [source["page_id"] for source in final["sources"]] == ["library"]
    assert final["usage"]["prompt_tokens"] > 50
    assert final["usage"]["completion_tokens"] > 1


def test_a_follow_up_is_rephrased_by_the_model(modelled: tuple[httpx.Client, str]) -> None:
    site, _ = modelled
    first = site.post("/chat", json={"question": "When is the library closed?"}).json()
    second = site.post(
        "/chat", json={"question": "And how much is a card there?", "conversation_id": first["conversation_id"]}
    ).json()
    assert second["answer"]
    assert second["rephrased"]
    assert written(second), second


def test_a_stop_ends_the_answer_and_the_next_question_is_answered(modelled: tuple[httpx.Client, str]) -> None:
    site, _ = modelled
    got = streamed(site, "What about the library?", stop_after=1)
    assert got[-2][0] == "answer"
    # It comes a sentence at a time: where that was all, there is nothing left to stop.
    assert got[-2][1]["stopped"] or [name for name, _ in got].count("token") == 1
    answer = streamed(site, "When is the library closed?")[-2][1]
    assert written(answer), answer


def test_the_openai_client_on_both_sides(modelled: tuple[httpx.Client, str]) -> None:
    site, base_url = modelled
    with openai.OpenAI(base_url=base_url, api_key="key-of-the-acceptance-ring", timeout=300) as client:
        stream = client.chat.completions.create(
            model=site.base_url.path.strip("/").rpartition("/")[2],
            messages=[{"role": "user", "content": "When is the library closed?"}],
            stream=True,
        )
        pieces = [chunk.choices[0].delta.content for chunk in stream if chunk.choices]
    assert "".join(piece for piece in pieces if piece)


def test_cases_of_the_gold_set_are_evaluated_with_a_model(modelled: tuple[httpx.Client, str], tmp_path: Path) -> None:
    """That it runs, not what so small a model knows: of the library it has the few words of these tests."""
    site, base_url = modelled
    every = [case for case in part_of(visitors(), "tune") if case.lang == "en" and not case.history]
    cases = [case for case in every if case.pages == ("library",)][:2]
    dataset, key = tmp_path / "gold.ndjson", tmp_path / "key"
    dataset.write_text("".join(f"{case.model_dump_json(exclude_defaults=True)}\n" for case in cases), "utf-8")
    key.write_text("key-of-the-acceptance-ring")
    name = site.base_url.path.strip("/").rpartition("/")[2]
    gateway = base_url.removesuffix("/v1")
    done = subprocess.run(
        [
            PAGEWIRE,
            "eval",
            "run",
            name,
            "--dataset",
            dataset,
            "--url",
            gateway,
            "--key",
            key,
            "--at-once",
            "1",
            "--json",
        ],
        env={name: value for name, value in os.environ.items() if not name.startswith(("PAGEWIRE_", "OPENAI_"))}
        | {"PAGEWIRE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)["report"]
    assert told["groups"]["all"]["right"]["cases"] == len(cases) == 2
    assert told["tokens"]["prompt"] > 50
    assert told["tokens"]["completion"] > 1
