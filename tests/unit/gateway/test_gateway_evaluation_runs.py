"""Evaluations that a gateway runs: their cost, one at a time, stopped, broken off, and what is published of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from pipelines.operate import site_runs
from pipelines.operate.site_runs import LEASE
from pipelines.runtime.errors import Retryable
from schemas.answer import Answered, Done, QuestionRephrased, SourcesFound, TrialFindings
from schemas.query import Question
from tests.asking import source
from tests.edge import EDIT_TOWN, VIEW_TOWN, assert_problem, bearer, until
from tests.fakes.ports import FakePorts, Step

RUN = "/v1/admin/sites/town/evaluation-run"
LIBRARY = source(1, "A card costs 18 euros.").model_copy(update={"cited": True})
DATASET = """
name: prices
cases:
- {id: card, question: "What does a card cost?", lang: en, pages: p1, answers: 18 euros}
- {id: adults, question: "And for adults?", lang: en, history: ["What does a card cost?"], facts: [18 euros]}
- {id: dog, question: "What does a dog cost?", lang: en, answerable: false}
"""
ORDER: dict[str, Any] = {"content": DATASET, "corrections": False}
TWO = ORDER | {"vary": {"hits": [1, 5]}, "base": {"hits": 1}}


def answer(question: Question) -> Sequence[Step]:
    """Right with five hits, else with no citation."""
    assert question.trial is not None
    assert question.logged_as is None
    sources = (LIBRARY,) if question.trial.hits == 5 and "dog" not in question.question else ()
    return [
        QuestionRephrased(question=question.question, mode="semantic"),
        SourcesFound(grade=0, sources=sources),
        Answered(
            text="It costs 18 euros.",
            citations=(),
            sources=sources,
            extractive=True,
            trial=TrialFindings(became="answered"),
        ),
        Done(),
    ]


@pytest.fixture(autouse=True)
def scripted(fakes: FakePorts, monkeypatch: pytest.MonkeyPatch) -> None:
    fakes.answers.script = answer
    monkeypatch.setattr(site_runs, "BEAT", 0.001)


async def over(client: httpx.AsyncClient) -> dict[str, Any]:
    async with asyncio.timeout(20):
        while (last := (await client.get(RUN)).json())["state"] == "running":  # noqa: ASYNC110  # nothing tells when
            await asyncio.sleep(0)
    found: dict[str, Any] = last
    return found


async def test_what_it_costs_is_said_before_and_nothing_is_asked(
    client: httpx.AsyncClient, fakes: FakePorts, app: FastAPI
) -> None:
    plan = (await client.post(f"{RUN}:plan", json=TWO)).json()
    assert plan["arms"] == ["base", "hits 5"]
    assert (plan["cases"], plan["questions"], plan["calls"], plan["judge"]) == (3, 8, 0, "")  # no model is configured
    edge = app.state.edge
    app.state.edge = replace(edge, settings=edge.settings.model_copy(update={"llm_model": "m"}))
    plan = (await client.post(f"{RUN}:plan", json=TWO | {"judge": ["score", "rubrics"]})).json()
    # Of a model each question two calls, one of them rephrases it: 8 an arm; two calls of the judge a case.
    assert (plan["calls"], plan["judge"], plan["judge_calls"]) == (16, "m", 12)
    assert fakes.answers.asked == []
    assert (await client.get(RUN)).json()["state"] is None


async def test_arms_are_asked_in_the_background_and_published(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    begun = await client.post(RUN, json=TWO | {"note": "more hits"})
    assert (begun.status_code, begun.json()["state"]) == (202, "running")
    last = await over(client)
    run = last["run"]
    assert (last["state"], run["code"], run["spent"]) == ("done", "", "")
    base, five = run["arms"]
    assert (base["figures"]["right"], five["figures"]["right"]) == (pytest.approx(1 / 3), 1.0)
    assert base["verdict"] == five["verdict"] == ""  # of three cases nothing is shown
    listed = (await client.get("/v1/admin/sites/town/evaluations")).json()["runs"]
    assert {each["id"] for each in listed} == {base["run"], five["run"]}
    assert {each["note"] for each in listed} == {"more hits: base", "more hits: hits 5"}
    whole = (await client.get(f"/v1/admin/sites/town/evaluations/{five['run']}")).json()
    assert [each["case"] for each in whole["results"]] == ["card", "adults", "dog"]
    assert fakes.conversations.kept == {}
    follow_up = [question for question in fakes.answers.asked if question.question == "And for adults?"]
    assert [turn.question for turn in follow_up[0].history] == ["What does a card cost?"]


async def test_one_at_a_time_and_stopped_within_a_beat(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.answers.script = lambda question: [*answer(question)[:1], 60.0, *answer(question)[1:]]
    await client.post(RUN, json=TWO)
    await until(lambda: fakes.answers.asked)
    assert_problem(await client.post(RUN, json=ORDER), 409, "evaluation-running")
    assert (await client.delete(RUN)).status_code == 202
    last = await over(client)
    assert (last["state"], last["run"]["code"]) == ("failed", "stopped")
    assert (await client.get("/v1/admin/sites/town/evaluations")).json()["runs"] == []
    fakes.answers.script = answer
    await client.post(RUN, json=ORDER)
    assert (await over(client))["state"] == "done"


async def test_a_run_whose_gateway_died_is_shown_as_broken_off(
    client: httpx.AsyncClient, fakes: FakePorts, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_runs, "BEAT", 3600)
    fakes.answers.script = lambda question: [*answer(question)[:1], 60.0]
    await client.post(RUN, json=ORDER)
    await until(lambda: fakes.answers.asked)
    frozen = dict(fakes.states.kept)
    await app.state.edge.ports.evaluation_runs.aclose()
    fakes.states.kept = frozen  # it said nothing any more
    later = fakes.now() + LEASE + timedelta(seconds=1)
    edge = app.state.edge
    app.state.edge = replace(edge, ports=replace(edge.ports, now=lambda: later))
    last = (await client.get(RUN)).json()
    assert (last["state"], last["run"]["plan"]["cases"]) == ("broken-off", 3)


async def test_a_budget_ends_it_and_what_was_asked_is_published(
    client: httpx.AsyncClient, fakes: FakePorts, app: FastAPI
) -> None:
    edge = app.state.edge
    app.state.edge = replace(edge, settings=edge.settings.model_copy(update={"llm_model": "m"}))
    await client.post(RUN, json=TWO | {"calls": 2, "at_once": 1})
    last = await over(client)
    assert (last["state"], last["run"]["spent"]) == ("done", "calls")
    assert [each["asked"] for each in last["run"]["arms"]] == [1, 0]


async def test_a_system_that_is_away_fails_the_case_and_a_chat_that_is_off_the_run(
    client: httpx.AsyncClient, fakes: FakePorts
) -> None:
    fakes.answers.script = lambda question: [Retryable("no broker")]
    await client.post(RUN, json=ORDER)
    last = await over(client)
    assert (last["state"], last["run"]["arms"][0]["figures"]["right"]) == ("done", 0.0)
    assert (await client.put("/v1/admin/sites/town/chat", json={"on": False})).status_code == 200
    await client.post(RUN, json=ORDER)
    last = await over(client)
    assert (last["state"], last["run"]["code"]) == ("failed", "trial-refused")


async def test_what_cannot_be_ordered_is_refused_before_anything_is_asked(
    client: httpx.AsyncClient, fakes: FakePorts
) -> None:
    for wrong, code, said in (
        ({"content": "", "corrections": True}, "bad-dataset", "no case"),
        ({"content": "- {question: x, answr: y}"}, "bad-dataset", "answr"),
        ({"content": "a: &a [*a]"}, "bad-dataset", ""),
        ({"content": "", "dataset": "../secrets"}, "bad-dataset", "there is no dataset"),
        ({"vary": {"hits": list(range(1, 20)), "examples": [1]}}, "bad-grid", "no setting 'examples'"),
        ({"vary": {"hits": list(range(1, 14)), "neighbours": [0, 1]}}, "bad-grid", "27 arms"),
        ({"base": {"prompt": "/etc/passwd"}}, "bad-grid", "prompt"),
        ({"base": {"strategy": "react"}}, "wrong-use", "no model is configured"),
        ({"judge": ["truth"]}, "wrong-use", "no judged measure"),
        ({"judge": ["score"]}, "bad-grid", "no model is set to judge"),
    ):
        for path in (RUN, f"{RUN}:plan"):
            problem = assert_problem(await client.post(path, json=ORDER | wrong), 422, code)
            assert said in problem["detail"], problem
    assert fakes.answers.asked == []


async def test_editors_may_and_readers_only_look(stranger: httpx.AsyncClient) -> None:
    assert (await stranger.get(RUN, headers=bearer(VIEW_TOWN))).status_code == 200
    assert (await stranger.get("/v1/admin/sites/town/evaluation-datasets", headers=bearer(VIEW_TOWN))).json() == {
        "datasets": [],
        "corrections": 0,
    }
    for path in (RUN, f"{RUN}:plan"):
        assert_problem(await stranger.post(path, json=ORDER, headers=bearer(VIEW_TOWN)), 403, "forbidden")
    assert_problem(await stranger.delete(RUN, headers=bearer(VIEW_TOWN)), 403, "forbidden")
    assert (await stranger.post(f"{RUN}:plan", json=ORDER, headers=bearer(EDIT_TOWN))).status_code == 200
