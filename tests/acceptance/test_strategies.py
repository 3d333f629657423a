"""Ways to an answer, chosen per site, through the real topics; the model is tests/scripted_llm.py over real HTTP."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from pipelines.query.rephrase.rewrite import OUTPUT_TOKENS
from tests.acceptance.system import PAGEWIRE, Instance, events, eventually
from tests.acceptance.test_model import served
from tests.acceptance.test_story import put
from tests.engine_fixture import Servers
from tests.scripted_llm import MODEL, Reply, ScriptedLLM

pytestmark = pytest.mark.engine

STRATEGIES = ("react", "tools", "retrieval-gate")


class Model:
    """Says the next line of the script; never rewrites a question."""

    server: ScriptedLLM

    def __init__(self) -> None:
        self.script: list[Reply] = []
        self.seen: list[dict[str, Any]] = []

    def __call__(self, body: dict[str, Any]) -> Reply:
        if body["max_tokens"] == OUTPUT_TOKENS and "You prepare questions" in body["messages"][0]["content"]:
            return Reply(["(no question)\n(two lines)"])
        self.seen.append(body)
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]


@pytest.fixture(scope="module")
def town(engine: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Model, dict[str, httpx.Client]]]:
    model = Model()
    with served(model) as server:  # type: ignore[arg-type]
        instance = Instance(
            tmp_path_factory.mktemp("strategies"),
            engine,
            sites=len(STRATEGIES),
            PAGEWIRE_LLM_MODEL=MODEL,
            OPENAI_BASE_URL=server.url,
            OPENAI_API_KEY="none",
            PAGEWIRE_LLM_TIMEOUT="5",  # a question may take three times as long
            PAGEWIRE_GATE="false",  # a site of two pages; this is about the model
        )
        chosen = dict(zip(STRATEGIES, instance.sites, strict=True))
        config = {"sites": {site: {"languages": ["en"], "strategy": name} for name, site in chosen.items()}}
        (instance.home / "pagewire.yaml").write_text(yaml.safe_dump(config))
        with instance.started("up") as up:
            clients = {name: instance.client(up.url, site) for name, site in chosen.items()}
            for client in clients.values():
                put(client, "boats", "<p>A rowing boat costs 7 euros an hour.</p>", title="Boats")
                put(client, "pier", "<p>The pier opens at ten and is closed on Mondays.</p>", title="Pier")
            yield model, clients
            for client in clients.values():
                client.close()


def ask(site: httpx.Client, question: str) -> list[tuple[str, dict[str, Any]]]:
    accept = {"Accept": "text/event-stream"}
    with site.stream("POST", "/chat", json={"question": question}, headers=accept) as response:
        return [(event, data) for _, event, data in events(response)]


def test_react_searches_by_itself_and_leaves_a_trace(town: tuple[Model, dict[str, httpx.Client]]) -> None:
    model, sites = town
    model.script = [
        Reply(
            ["When is it open?"], calls=[("search", '{"question": "When does the pier open?"}')], finish="tool_calls"
        ),
        Reply(["Enough"]),
        Reply(["A boat costs 7 euros [1]."]),
    ]
    got = ask(sites["react"], "What does a rowing boat cost?")
    final = got[-2][1]
    assert final["text"] == "A boat costs 7 euros."
    assert final["strategy"] == "react"
    assert [step["kind"] for step in final["trace"]] == ["model", "search", "model", "model"]
    assert {source["page_id"] for source in final["sources"]} == {"boats", "pier"}
    assert [source["page_id"] for source in final["sources"] if source["cited"]] == ["boats"]


def test_tools_are_called_over_the_wire(town: tuple[Model, dict[str, httpx.Client]]) -> None:
    model, sites = town
    hours = [{"days": ["tuesday", "saturday"], "opens": "10:00", "closes": "18:00"}]
    arguments = json.dumps({"hours": hours, "day": "2026-05-04"})
    model.script = [
        Reply(calls=[("opening_hours", arguments)], finish="tool_calls"),
        Reply(["Enough"]),
        Reply(["It is closed on that Monday [1]."]),
    ]
    model.seen.clear()
    final = ask(sites["tools"], "Is the pier open on 4 May 2026?")[-2][1]
    assert final["text"] == "It is closed on that Monday."
    said = "closed on Monday, 2026-05-04; opens next on Tuesday, 2026-05-05, at 10:00"
    assert [step["said"] for step in final["trace"] if step["kind"] == "tool"] == [said]
    assert said in model.seen[-1]["messages"][-1]["content"]
    offered = {tool["function"]["name"] for tool in model.seen[0]["tools"]}
    assert offered == {"search", "page", "date_calculator", "opening_hours"}


def test_a_greeting_costs_no_model(town: tuple[Model, dict[str, httpx.Client]]) -> None:
    model, sites = town
    model.seen.clear()
    final = ask(sites["retrieval-gate"], "Good morning to you all!")[-2][1]
    assert (final["strategy"], final["citations"], model.seen) == ("courtesy", [], [])


def test_small_talk_that_our_lists_do_not_know_needs_no_page(town: tuple[Model, dict[str, httpx.Client]]) -> None:
    model, sites = town
    model.script = [Reply(["NO"]), Reply(["Hello! Ask me about the town."])]
    final = ask(sites["retrieval-gate"], "Top of the morning, you lovely stranger!")[-2][1]
    assert (final["text"], final["citations"], final["extractive"]) == ("Hello! Ask me about the town.", [], False)


@pytest.mark.parametrize("stalls", [Reply(stall=True), Reply(["A boat costs "], stall=True)], ids=["at once", "later"])
def test_a_model_that_never_ends_is_replaced_by_quotes(
    town: tuple[Model, dict[str, httpx.Client]], stalls: Reply
) -> None:
    model, sites = town
    model.script = [Reply(calls=[("search", '{"question": "What does a rowing boat cost?"}')]), stalls]
    final = ask(sites["retrieval-gate"], "What does a rowing boat cost?")[-2][1]
    assert final["extractive"] is True
    assert "7 euros" in final["text"]
    assert [step["said"] for step in final["trace"] if step["kind"] == "error"] == ["model-silent"]


def test_a_question_is_tried_out_under_several_settings_and_not_logged(
    town: tuple[Model, dict[str, httpx.Client]],
) -> None:
    model, sites = town
    model.script = [Reply(["A boat costs 7 euros [1]."])]
    model.seen.clear()
    asked = "What does a rowing boat cost for a fortnight?"
    trials = [{"strategy": "plain", "temperature": 0.4, "examples": 0}, {"strategy": "quote"}]
    where = str(sites["react"].base_url).replace("/v1/", "/v1/admin/").rstrip("/")
    response = sites["react"].post(f"{where}/trials", json={"question": asked, "trials": trials})
    assert response.status_code == 200, response.text
    plain, quoted = response.json()["trials"]
    assert (plain["answer"]["answer"], plain["answer"]["strategy"]) == ("A boat costs 7 euros.", "plain")
    [body] = model.seen
    assert body["temperature"] == 0.4
    assert [each["text"] for each in plain["findings"]["prompt"]] == [each["content"] for each in body["messages"]]
    assert "A rowing boat costs 7 euros an hour." in plain["findings"]["prompt"][-1]["text"]
    assert len(plain["findings"]["prompt"]) == 2  # no example between what it is told and what it is asked
    assert (quoted["answer"]["extractive"], quoted["findings"]["became"]) == (True, "page")
    assert quoted["answer"]["trace"][0]["kind"] == "quote"
    assert 0 < plain["first_token_ms"] <= plain["ms"]
    # Whoever asks the same as a visitor is in the log; what was tried out before it is not.
    model.script = [Reply(["Enough"]), Reply(["A boat costs 7 euros [1]."])]
    assert ask(sites["react"], asked)[-2][1]["text"] == "A boat costs 7 euros."

    def logged() -> int:
        found = sites["react"].get(f"{where}/questions", params={"text": "fortnight"}).raise_for_status().json()
        return int(found["counts"]["asked"])

    eventually(logged, every=0.5)
    assert logged() == 1


def test_an_experiment_asks_each_arm_and_goes_on_where_it_stopped(
    town: tuple[Model, dict[str, httpx.Client]], tmp_path: Path
) -> None:
    model, sites = town
    model.script = [Reply(["A boat costs 7 euros [1]."])]
    model.seen.clear()
    url, site = re.fullmatch(r"(.+)/v1/sites/([^/]+)/?", str(sites["react"].base_url)).groups()  # type: ignore[union-attr]
    cases = [{"id": f"c{n}", "question": f"What does rowing boat {n} cost?", "facts": ["7 euros"]} for n in range(6)]
    (tmp_path / "boats.yaml").write_text(yaml.safe_dump({"name": "boats", "cases": cases}))
    grid = {"name": "boats", "site": site, "dataset": "boats.yaml", "base": {"strategy": "quote"}}
    (tmp_path / "grid.yaml").write_text(yaml.safe_dump(grid | {"vary": {"strategy": ["plain"], "hits": [1, 2]}}))
    (tmp_path / "key").write_text("key-of-the-acceptance-ring")

    def experiment(*options: str) -> subprocess.CompletedProcess[str]:
        command = [PAGEWIRE, "eval", "sweep", str(tmp_path / "grid.yaml"), "--url", url, "--key", tmp_path / "key"]
        environment = os.environ | {"PAGEWIRE_HOME": str(tmp_path / "home")}
        return subprocess.run([*command, *options], env=environment, capture_output=True, text=True, check=False)

    stopped = experiment("--most-calls", "22")  # six of the base are rephrased; eight others also answered
    assert stopped.returncode == 1, stopped.stderr
    assert len(model.seen) == 8, stopped.stderr
    done = experiment("--json")
    assert done.returncode == 0, done.stderr
    assert len(model.seen) == 12  # each question of each arm that a model answers, once
    told = json.loads(done.stdout)["report"]
    assert [(arm["name"], arm["asked"], arm["calls"]) for arm in told["arms"]] == [
        ("base", 6, 1),
        ("hits 1, strategy plain", 6, 2),
        ("hits 2, strategy plain", 6, 2),
    ]
    assert all(arm["figures"]["right"]["mean"] == 1 for arm in told["arms"])
    report = tmp_path / "home" / "experiments" / "boats" / "report.html"
    first = report.read_bytes()
    assert experiment().returncode == 0
    assert (report.read_bytes(), len(model.seen)) == (first, 12)


def test_a_strategy_that_is_made_live_counts_without_a_restart(town: tuple[Model, dict[str, httpx.Client]]) -> None:
    model, sites = town
    model.script = [Reply(["A boat costs 7 euros [1]."])]
    site = sites["retrieval-gate"]
    admin = str(site.base_url).replace("/v1/sites/", "/v1/admin/sites/").rstrip("/")
    settings, question = f"{admin}/texts/settings/answers", "What does a rowing boat cost?"

    def strategy() -> Any:
        return ask(site, question)[-2][1]["strategy"]

    assert strategy() == "retrieval-gate"
    made = site.put(settings, json={"text": "strategy: quote", "note": "no model"})
    assert made.status_code == 200, made.text
    eventually(lambda: strategy() == "quote")
    model.seen.clear()
    assert strategy() == "quote"
    assert model.seen == []
    tried = site.post(f"{admin}/trials", json={"question": question, "trials": [{}, {"filed": True}]}).json()["trials"]
    assert [each["answer"]["strategy"] for each in tried] == ["quote", "retrieval-gate"]
    assert site.put(settings, json={"text": "strategy: oracle"}).json()["code"] == "bad-text"
    assert site.post(f"{settings}/rollback").status_code == 200
    eventually(lambda: strategy() == "retrieval-gate")
