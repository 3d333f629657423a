"""Judging over the wire: the model is tests/scripted_llm.py, which speaks OpenAI's format over real HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx

from gateway.app import create_app
from pipelines.evaluate.evaluator import AsyncEvaluator
from pipelines.evaluate.judged.judge import EvaluationJudge, JudgingBudget
from pipelines.evaluate.judged.registry import named
from pipelines.evaluate.judged.report import judged
from pipelines.evaluate.run import Run
from tests.edge import ADMIN, bearer, edge_settings
from tests.fakes.ports import FakeAnswers, FakePorts
from tests.scripted_llm import MODEL, Reply, ScriptedLLM
from tests.unit.evaluate.runs import dataset, run
from tests.unit.gateway.test_gateway_evaluation_runs import DATASET, RUN, answer, over
from wiring.evaluating import judge_model
from wiring.settings import Settings


async def test_a_run_is_judged_by_a_model_behind_the_usual_settings(tmp_path: Path) -> None:
    """Of four answers one gets 5 between code fences, one 3, one words and then 4, and one is refused by the server."""
    made = dataset(6)  # 0 1 3 4 can be answered
    path = run(tmp_path / "r.ndjson", made).path

    def script(body: dict[str, Any]) -> Reply:
        asked = body["messages"][1]["content"]
        again = len(body["messages"]) > 2
        if "What does 0 cost?" in asked:
            return Reply(["```json\n", json.dumps({"reason": "all there", "score": 5}), "\n```"])
        if "What does 1 cost?" in asked:
            return Reply([json.dumps({"reason": "half", "score": 3})])
        if "What does 3 cost?" in asked:
            return Reply([json.dumps({"reason": "fine", "score": 4})] if again else ["Good answer: 4 of 5."])
        return Reply(status=400, error={"message": "no"})

    measures = named(["score"])
    async with ScriptedLLM(script) as server:
        settings = Settings(llm_model=MODEL, openai_base_url=server.url)
        async with judge_model(settings, MODEL) as model:
            budget = JudgingBudget(calls=100, tokens=100_000)
            with Run.begin(path, Run.read(path).head) as going:
                judges = [EvaluationJudge(model, MODEL, budget, "fence", pause=0.01)]
                why = await AsyncEvaluator(measures, judges).judge(made.cases, going)
    group = judged(made, Run.read(path), measures, MODEL).parts[0].groups["all"]
    assert (why, group.judged, group.of) == ("", 3, 4)
    assert round(group.figures["judge right"].mean, 3) == 0.667
    assert round(group.figures["judge score"].mean, 3) == 0.8
    assert [verdict.unjudged for verdict in going.verdicts.values() if verdict.unjudged] == ["model-refused"]
    assert (budget.asked, len(server.requests)) == (5, 5)
    assert 3 * 18 + 18 <= budget.used < 1_000  # the server counts 18 for each answer, and nothing for the refusal
    assert all(body["temperature"] == 0 for body in server.requests)


async def test_a_gateway_that_runs_an_evaluation_has_its_answers_judged_until_the_budget_is_spent(
    tmp_path: Path,
) -> None:
    """The judge is tests/scripted_llm.py, a fake, over real HTTP; the answers are scripted in the gateway's process."""
    order = {
        "content": DATASET,
        "corrections": False,
        "base": {"hits": 5, "neighbours": 0},
        "vary": {"neighbours": [0, 1]},
    }
    async with ScriptedLLM(Reply([json.dumps({"reason": "fine", "score": 4})])) as server:
        settings = edge_settings(tmp_path).model_copy(update={"llm_model": MODEL, "openai_base_url": server.url})
        ports = FakePorts(answers=FakeAnswers(answer))
        app = create_app(settings, ports.ports)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(
            base_url="http://gateway.test", headers=bearer(ADMIN), transport=transport
        ) as site:
            begun = await site.post(RUN, json=order | {"judge": ["score"], "judge_calls": 1})
            assert begun.status_code == 202, begun.text
            last = await over(site)
            first, second = last["run"]["arms"]
            judged_arm, unjudged_arm = [
                (await site.get(f"/v1/admin/sites/town/evaluations/{arm['run']}")).json() for arm in (first, second)
            ]
    assert (last["state"], last["run"]["spent"], last["run"]["judge_calls"]) == ("done", "judge_calls", 1)
    assert len(server.requests) == 1
    assert "It costs 18 euros." in server.requests[0]["messages"][1]["content"]
    assert judged_arm["judge"] == MODEL
    assert judged_arm["judged"]["all"]["judge score"]["mean"] == 0.8
    assert unjudged_arm["judged"] == {}
