"""Trials over HTTP: how a question is asked under several settings, and what is told of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import httpx
import pytest
from fastapi import FastAPI

from gateway.chat.sse import frame
from pipelines.runtime.errors import Retryable
from pipelines.runtime.settings import StrategyName
from prompts.loader import written
from schemas.answer import Answered, Failed, PromptMessage, TrialFindings, Usage
from schemas.http import StageStatus
from schemas.query import Gate, Question, Trial, Tuned
from schemas.rebuild import RebuildOrder
from schemas.trial import TrialStrategy
from tests.edge import CHAT_ANYWHERE, EVERYTHING_TOWN, STAFF_TOWN, assert_problem, bearer
from tests.fakes.ports import FakePorts, Step, plain_answer
from wiring.settings import KeySettings, Settings

TRIALS = "/v1/admin/sites/town/trials"
OPENS = {"question": "When does the library open?"}
GATE = Gate(distance=0.2, entropy=0, subject=0.5, by_figures=0, score=0.9, threshold=0.4)
FINDINGS = TrialFindings(became="answered", gate=GATE, prompt=(PromptMessage(role="user", text="When?"),))


def telling(question: Question) -> Sequence[Step]:
    """As a worker answers a trial."""
    *before, answer, done = plain_answer(question)
    assert isinstance(answer, Answered)
    return [*before, answer.model_copy(update={"trial": FINDINGS}), done]


async def report(client: httpx.AsyncClient, **order: Any) -> dict[str, Any]:
    response = await client.post(TRIALS, json=OPENS | order)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


async def test_a_trial_may_leave_out_what_was_made_live(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.answers.script = telling
    await report(client, trials=[{"hits": 4}, {"hits": 4, "filed": True}])
    assert [(question.trial, question.tuned) for question in fakes.answers.asked] == [
        (Trial(hits=4), None),
        (Trial(hits=4), Tuned()),
    ]


async def test_a_question_is_asked_under_each_of_the_settings(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.answers.script = telling
    said = {"question": "Is there a library?", "answer": "Yes."}
    told = await report(client, trials=[{}, {"strategy": "quote", "lang": "DE"}, {"history": [said], "examples": 0}])
    assert (told["site"], told["question"]) == ("town", OPENS["question"])
    plain, quoted, followed = fakes.answers.asked
    assert (plain.trial, plain.lang, plain.history) == (Trial(), "en", ())
    assert (quoted.trial, quoted.lang) == (Trial(strategy="quote"), "de")
    assert (followed.trial, [turn.answer for turn in followed.history]) == (Trial(examples=0), ["Yes."])
    assert len({question.conversation_id for question in fakes.answers.asked}) == 3
    assert [each["settings"]["strategy"] for each in told["trials"]] == [None, "quote", None]
    for each in told["trials"]:
        assert each["answer"]["answer"] == "The library opens at nine."
        assert each["findings"]["gate"]["score"] == 0.9
        assert each["findings"]["prompt"] == [{"role": "user", "text": "When?"}]
        assert (each["error"], 0 <= each["first_token_ms"] <= each["ms"]) == (None, True)


async def test_of_several_samples_the_answer_is_the_one_they_agree_on(
    client: httpx.AsyncClient, fakes: FakePorts
) -> None:
    said = iter(["18 euros", "90 euros", "unknown", "18 euros", "18 euro"])

    def script(question: Question) -> Sequence[Step]:
        *before, answer, done = telling(question)
        assert isinstance(answer, Answered)
        usage = Usage(prompt_tokens=10, completion_tokens=2)
        return [*before, answer.model_copy(update={"text": next(said), "usage": usage}), done]

    fakes.answers.script = script
    told = await report(client, trials=[{"samples": 5, "temperature": 0.7, "short": True}])
    [answer] = [each["answer"] for each in told["trials"]]
    assert (answer["answer"], answer["usage"]["prompt_tokens"]) == ("18 euros", 50)
    assert len({question.request_id for question in fakes.answers.asked}) == 5
    assert {question.trial for question in fakes.answers.asked} == {Trial(temperature=0.7, short=True)}


async def test_no_conversation_keeps_it_and_no_stage_logs_it(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    await report(client)
    [asked] = fakes.answers.asked
    assert asked.trial is not None
    assert asked.logged_as is None
    assert fakes.conversations.kept == {}


async def test_each_fails_for_itself(client: httpx.AsyncClient, fakes: FakePorts, app: FastAPI) -> None:
    def script(question: Question) -> Sequence[Step]:
        assert question.trial is not None
        match question.trial.examples:
            case 0:
                return [Retryable("no broker")]
            case 1:
                return [Failed(code="model-denied", message="Not now.")]
            case _:
                return telling(question)

    fakes.answers.script = script
    told = await report(client, trials=[{"examples": 0}, {"examples": 1}, {"examples": 2}])
    away, denied, fine = told["trials"]
    assert (away["answer"], away["findings"], away["first_token_ms"]) == (None, None, None)
    assert away["error"]["message"] == "no broker"
    assert denied["error"] == {"code": "model-denied", "message": "Not now."}
    assert (fine["error"], fine["answer"]["grade"]) == (None, 0)
    fakes.answers.script = lambda _: [RuntimeError("a mistake of ours")]
    [broken] = (await report(client))["trials"]
    assert broken["error"]["code"] == "internal"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """With models, a short patience, and groups of the webmaster's key."""
    webmaster = next(key for key in settings.keys if key.name == "webmaster")
    keys: list[KeySettings] = [key for key in settings.keys if key is not webmaster]
    keys.append(webmaster.model_copy(update={"groups": ("staff", "board")}))
    models = {"llm_model": "usual", "steps": {"answer": {"model": "large"}, "rephrase": {"model": "small"}}}
    made = Settings.model_validate(settings.model_dump() | models | {"llm_timeout": 0.2})
    return made.model_copy(update={"keys": tuple(keys), "admin_key": settings.admin_key})


async def test_who_takes_too_long_is_not_waited_for(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.answers.script = lambda question: [60.0] if question.lang == "de" else telling(question)
    told = await report(client, trials=[{"lang": "de"}, {"lang": "en"}])
    assert [each["error"] and each["error"]["code"] for each in told["trials"]] == ["timeout", None]
    assert fakes.answers.following == 0


async def test_groups_are_those_of_the_key(stranger: httpx.AsyncClient, fakes: FakePorts) -> None:
    stranger.headers.update(bearer(EVERYTHING_TOWN))
    await report(stranger, trials=[{}, {"groups": ["staff"]}, {"groups": []}])
    assert [question.groups for question in fakes.answers.asked] == [("staff", "board"), ("staff",), ()]
    refused = await stranger.post(TRIALS, json=OPENS | {"trials": [{}, {"groups": ["mayor"]}]})
    assert_problem(refused, 403, "forbidden")
    assert len(fakes.answers.asked) == 3


async def test_models_are_those_of_the_settings(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    await report(client, trials=[{"model": "large", "temperature": 0.72}, {"model": "small"}])
    trials = [question.trial for question in fakes.answers.asked]
    assert trials == [Trial(model="large", temperature=0.7), Trial(model="small")]
    refused = assert_problem(await client.post(TRIALS, json=OPENS | {"trials": [{"model": "dear"}]}), 422, "invalid")
    assert refused["detail"].endswith("usual, large, small")


async def built(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    """Generation 2 is live, 3 and 4 are verified, 5 is being built."""
    for _ in range(4):
        await fakes.rebuilds.start("town", RebuildOrder.model_validate({"from": "changes"}))
    await fakes.rebuilds.promote("town", 2)
    fakes.rebuilds.kept[5] = fakes.rebuilds.kept[5].model_copy(update={"state": "building"})


def searching(question: Question) -> Sequence[Step]:
    """As a worker answers a trial of an index."""
    *before, answer, done = telling(question)
    assert isinstance(answer, Answered)
    assert question.trial is not None
    findings = FINDINGS.model_copy(update={"index": question.trial.index})
    return [*before, answer.model_copy(update={"trial": findings}), done]


@pytest.mark.parametrize(
    ("index", "searched"),
    [
        ("live", None),
        ("candidate", "pagewire-town-000004"),
        ("pagewire-town-000003", "pagewire-town-000003"),
        ("pagewire-town-000005", "pagewire-town-000005"),
        ("pagewire-town-000002", None),  # live by its name
    ],
)
async def test_another_index_is_tried(
    client: httpx.AsyncClient, fakes: FakePorts, index: str, searched: str | None
) -> None:
    await built(client, fakes)
    fakes.answers.script = searching
    told = await report(client, trials=[{}, {"index": index}])
    assert [question.trial for question in fakes.answers.asked] == [Trial(), Trial(index=searched)]
    assert [each["findings"]["index"] for each in told["trials"]] == [None, searched]


@pytest.mark.parametrize(
    ("index", "reason"),
    [
        ("candidate", "site town has no candidate: no rebuilt index was verified since"),
        ("pagewire-other-000002", "site town has no index pagewire-other-000002; there are: pagewire-town-000002"),
    ],
)
async def test_an_index_that_is_not_there_is_refused(
    client: httpx.AsyncClient, fakes: FakePorts, index: str, reason: str
) -> None:
    await fakes.rebuilds.start("town", RebuildOrder.model_validate({"from": "changes"}))
    await fakes.rebuilds.promote("town", 2)
    response = await client.post(TRIALS, json=OPENS | {"trials": [{}, {"index": index}]})
    assert assert_problem(response, 404, "no-such-index")["detail"] == reason
    assert fakes.answers.asked == []


async def test_a_worker_that_searched_the_live_index_is_not_believed(
    client: httpx.AsyncClient, fakes: FakePorts
) -> None:
    await built(client, fakes)
    for script in (telling, plain_answer):  # before there were indexes to try, and before there were trials
        fakes.answers.script = script
        [told] = (await report(client, trials=[{"index": "candidate"}]))["trials"]
        assert (told["answer"], told["findings"], told["error"]["code"]) == (None, None, "index-not-tried")


async def test_another_prompt_is_tried(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    prompt = written("answer").replace("one to four sentences", "one sentence")
    await report(client, trials=[{"prompt": prompt}])
    assert [question.trial for question in fakes.answers.asked] == [Trial(prompt=prompt)]


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        (written("answer").replace("{question}", "{answer}"), "variable missing: answer"),
        ("Answer in rhymes.", "must have front matter, a line `---`, and the segments"),
        (f"a: &a {'x' * 2_000}\n---\nb: *a", "anchors, aliases and tags cannot be used"),
        ("[" * 20_000, "more than 8 levels"),
    ],
)
async def test_a_prompt_that_is_none_is_refused(
    client: httpx.AsyncClient, fakes: FakePorts, prompt: str, reason: str
) -> None:
    refused = assert_problem(await client.post(TRIALS, json=OPENS | {"trials": [{"prompt": prompt}]}), 422, "invalid")
    assert refused["detail"] == f"prompt: answer.yaml: {reason}"
    assert fakes.answers.asked == []


async def test_without_a_model_there_is_no_prompt_to_try(
    client: httpx.AsyncClient, fakes: FakePorts, app: FastAPI
) -> None:
    app.state.edge = replace(app.state.edge, settings=app.state.edge.settings.model_copy(update={"llm_model": None}))
    assert_problem(await client.post(TRIALS, json=OPENS | {"trials": [{"prompt": written("answer")}]}), 422, "invalid")


async def test_the_search_and_the_thinking_are_tried(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    wanted = {"hits": 3, "order": 7, "think": True, "rerank": False, "gate_threshold": 0.4, "sure_threshold": 0.6}
    await report(client, trials=[wanted])
    assert [question.trial for question in fakes.answers.asked] == [Trial.model_validate(wanted)]


def behind(stage: str, lane: Literal["save", "bulk"] | None, lag: int) -> StageStatus:
    return StageStatus(stage=stage, lane=lane, topic="t", lag=lag, rate=0, members=1, dead_letters=0)


async def test_what_can_be_tried_is_told(client: httpx.AsyncClient, fakes: FakePorts, app: FastAPI) -> None:
    await built(client, fakes)
    stages = (behind("chunk", "save", 2), behind("index", "bulk", 40), behind("answer", None, 9))
    fakes.status.found = fakes.status.found.model_copy(update={"stages": stages})
    told = (await client.get(TRIALS)).json()
    assert told["ingest_lag"] == 42
    assert (told["models"], told["reranker"], told["strategy"]) == (["usual", "large", "small"], False, "plain")
    assert (told["live"], "pagewire-town-000004" in told["indexes"]) == ("pagewire-town-000002", True)
    edge = app.state.edge

    async def told_with(**changes: Any) -> dict[str, Any]:
        app.state.edge = replace(edge, settings=edge.settings.model_copy(update=changes))
        answer: dict[str, Any] = (await client.get(TRIALS)).json()
        return answer

    assert (await told_with(llm_timeout=9.0))["system"] == told["system"]
    for changes in ({"hits": 4}, {"llm_model": "newer"}, {"neighbours": 0}):
        assert (await told_with(**changes))["system"] != told["system"]
    quoting = await told_with(llm_model=None, reranker="onnx:/weights")
    assert (quoting["models"], quoting["reranker"], quoting["strategy"]) == ([], True, "quote")
    app.state.edge = edge
    await fakes.rebuilds.promote("town", 3)
    assert (await client.get(TRIALS)).json()["system"] != told["system"]


@pytest.mark.parametrize(
    "field", [{"index": "candidate"}, {"prompt": "x"}, {"trial": {"index": "x"}}, {"hits": 1}, {"think": True}]
)
async def test_visitors_try_nothing_out(client: httpx.AsyncClient, fakes: FakePorts, field: dict[str, Any]) -> None:
    assert_problem(await client.post("/v1/sites/town/chat", json=OPENS | field), 422, "invalid")
    assert fakes.answers.asked == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"question": " "},
        {"trials": []},
        {"trials": [{}] * 4},
        {"trials": [{"strategy": "magic"}]},
        {"trials": [{"temperature": 2.5}]},
        {"trials": [{"examples": 9}]},
        {"trials": [{"colour": "red"}]},
        {"trials": [{"index": "pagewire-*"}]},
        {"trials": [{"index": "../town"}]},
        {"trials": [{"prompt": "x" * 20_001}]},
        {"trials": [{"hits": 0}]},
        {"trials": [{"hits": 101}]},
        {"trials": [{"order": -1}]},
        {"trials": [{"gate_threshold": 1}]},
        {"trials": [{"sure_threshold": 0}]},
        {"trials": [{"rerank": True}]},  # none is configured
        {"trials": [{"history": [{"question": "?", "answer": "!"}] * 11}]},
    ],
)
async def test_what_cannot_be_tried_is_said(client: httpx.AsyncClient, fakes: FakePorts, wrong: dict[str, Any]) -> None:
    assert_problem(await client.post(TRIALS, json=OPENS | wrong), 422, "invalid")
    assert fakes.answers.asked == []


@pytest.mark.parametrize("key", [CHAT_ANYWHERE, STAFF_TOWN])
async def test_only_operators_may(client: httpx.AsyncClient, key: str) -> None:
    assert_problem(await client.post(TRIALS, json=OPENS, headers=bearer(key)), 403, "forbidden")


async def test_a_chat_that_is_off_is_off(client: httpx.AsyncClient, fakes: FakePorts, app: FastAPI) -> None:
    sites = app.state.edge.settings.sites
    sites["town"] = sites["town"].model_copy(update={"chat": sites["town"].chat.model_copy(update={"enabled": False})})
    assert_problem(await client.post(TRIALS, json=OPENS), 403, "chat-off")
    assert fakes.answers.asked == []


def test_what_is_told_of_a_trial_is_in_no_stream() -> None:
    answered = Answered(text="At nine.", citations=(), sources=(), extractive=True, trial=FINDINGS)
    assert b"trial" not in frame(answered, "1") + frame(answered, "1", steps="none")


def test_every_strategy_can_be_tried() -> None:
    assert set(get_args(TrialStrategy)) == {*get_args(StrategyName), "quote"}
