"""Answers written by a model, through the real topics; the model is tests/scripted_llm.py over real HTTP."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import monotonic
from typing import Any

import httpx
import pytest
import yaml

from adapters.llm.written import TOKEN_CHARS
from pipelines.query.answer.prompt import OUTPUT_TOKENS as ANSWER_TOKENS
from pipelines.query.rephrase.rewrite import OUTPUT_TOKENS
from tests.acceptance.system import Instance, Started, eventually, streamed
from tests.acceptance.test_story import ask, put
from tests.engine_fixture import Servers
from tests.scripted_llm import MODEL, Reply, ScriptedLLM

pytestmark = pytest.mark.engine


class Model:
    """Decides what the scripted model says next."""

    server: ScriptedLLM
    rephrasing: list[dict[str, str]]  # the last prompt of the rephrase stage

    def __init__(self) -> None:
        self.reply: Reply | Sequence[Reply] = Reply(["ok"])
        self.seen: list[dict[str, Any]] = []

    def __call__(self, body: dict[str, Any]) -> Reply:
        self.seen.append(body)
        if body["max_tokens"] == OUTPUT_TOKENS:  # the rephrase stage
            self.rephrasing = body["messages"]
            return Reply(["What does a boat cost per hour?"])
        if isinstance(self.reply, Reply):
            return self.reply
        first, *rest = self.reply
        self.reply = rest or first
        return first


@contextmanager
def served(model: Model) -> Iterator[ScriptedLLM]:
    """The scripted server on a loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = ScriptedLLM(model)
    try:
        asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(10)
        yield server
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
    with served(model) as server:
        model.server = server
        settings = {"PAGEWIRE_LLM_MODEL": MODEL, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "none"}
        settings["PAGEWIRE_GATE"] = "false"  # a site of one page; this is about the model
        instance = Instance(tmp_path_factory.mktemp("model"), engine, sites=2, **settings)
        config = yaml.safe_load((instance.home / "pagewire.yaml").read_text("utf-8"))
        config["sites"] = {name: {**site, "log_prompts": True} for name, site in config["sites"].items()}
        (instance.home / "pagewire.yaml").write_text(yaml.safe_dump(config, allow_unicode=True), "utf-8")
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
    assert answer["usage"]["completion_tokens"] == 14  # of both calls
    prompt = str(model.seen[-1]["messages"])
    assert "A rowing boat costs 7 euros an hour." in prompt
    assert "What does a boat cost per hour?" in prompt


def test_an_operator_sees_what_models_read_and_wrote_until_its_visitor_deletes_it(
    modelled: tuple[Model, httpx.Client, Instance, Started],
) -> None:
    model, site, instance, up = modelled
    model.reply = Reply(["A boat costs 7 euros an hour [1]. ", "It costs 9 euros on Sundays [1]."])
    mine = "What does a boat cost? I am anna@mail.example."
    answer = site.post("/chat", json={"question": mine}).json()
    assert answer["answer"].startswith("A boat costs 7 euros an hour. It costs 9 euros on Sundays. *(")
    sent = [model.rephrasing, model.seen[-1]["messages"]]
    assert "anna@mail.example" in str(sent[0])
    assert "anna@mail.example" in str(sent[1])
    path = f"{up.url}/v1/admin/sites/{instance.site}/questions/{answer['request_id']}"
    eventually(lambda: site.get(path).status_code == 200)
    outcome = site.get(path).json()["outcome"]
    assert [(call["step"], call["model"]) for call in outcome["calls"]] == [("rephrase", MODEL), ("answer", MODEL)]
    for call, messages in zip(outcome["calls"], sent, strict=True):
        as_sent = [message["content"].replace("anna@mail.example", "[e-mail]") for message in messages]
        assert [message["text"] for message in call["messages"]] == as_sent
    assert outcome["calls"][1]["reply"] == "A boat costs 7 euros an hour [1]. It costs 9 euros on Sundays [1]."
    assert outcome["doubted"] == [
        {
            "sentence": "It costs 9 euros on Sundays.",
            "kind": "figure",
            "said": "9 euros",
            "cited": [1],
            "marked": True,
        }
    ]
    command = json.loads(instance.run("questions", instance.site, answer["request_id"]).stdout)
    assert command["outcome"]["calls"] == outcome["calls"]
    assert site.delete(f"/conversations/{answer['conversation_id']}").status_code == 204
    erased = site.get(path).json()
    assert erased["erased"]
    assert not {"calls", "doubted"} & erased["outcome"].keys()
    assert "boat costs" not in json.dumps(erased)


def test_a_model_that_breaks_down_half_way_is_replaced_by_quotes(
    modelled: tuple[Model, httpx.Client, Instance, Started],
) -> None:
    model, site, _, _ = modelled
    model.reply = Reply(["Boats cost 7 euros. ", "They are "], cut=True)
    got = streamed(site, "What does a boat cost?")
    kinds = [event for event, _ in got]
    assert kinds.index("restart") > kinds.index("token")
    final = got[-2][1]
    assert final["extractive"] is True
    assert "7 euros" in final["text"]
    after = kinds.index("restart")
    assert "".join(data["text"] for event, data in got[after:] if event == "token") == final["text"]


def test_a_stop_hangs_up_on_the_model_and_keeps_what_there_is(
    modelled: tuple[Model, httpx.Client, Instance, Started],
) -> None:
    model, site, _, _ = modelled
    model.reply = Reply(["A boat costs 7 euros an hour [1]. ", *["Word. "] * 100_000], delay=0.02)
    got = streamed(site, "What does a boat cost?", stop_after=3)
    assert [event for event, _ in got[-2:]] == ["answer", "done"]
    final = got[-2][1]
    assert final["stopped"] is True
    assert final["text"].startswith("A boat costs 7 euros an hour. Word.")
    assert final["text"] == "".join(data["text"] for event, data in got if event == "token")
    assert [c["n"] for c in final["citations"]] == [1]
    eventually(model.server.hung_up.is_set)


def test_a_client_that_does_not_stream_and_hangs_up_has_stopped_the_model_as_well(
    modelled: tuple[Model, httpx.Client, Instance, Started],
) -> None:
    model, site, instance, up = modelled
    order = {"model": instance.site, "messages": [{"role": "user", "content": "What does a boat cost?"}]}
    for url, body in ((f"{up.url}/v1/chat/completions", order), ("/chat", {"question": "What does a boat cost?"})):
        model.server.hung_up.clear()
        model.reply = Reply(["A boat costs 7 euros an hour [1]. ", *["Word. "] * 100_000], delay=0.1)
        asked = len(model.seen)
        with pytest.raises(httpx.ReadTimeout):
            site.post(url, json=body, timeout=3)
        eventually(model.server.hung_up.is_set)
        assert [each["max_tokens"] for each in model.seen[asked:]] in ([OUTPUT_TOKENS], [OUTPUT_TOKENS, ANSWER_TOKENS])


def test_a_model_that_runs_on_is_stopped_and_holds_nobody_up(
    modelled: tuple[Model, httpx.Client, Instance, Started],
) -> None:
    model, site, instance, up = modelled
    model.server.hung_up.clear()
    model.reply = Reply(
        ["The pier opens at ten, and a boat costs 7 euros an hour, as many people know [1]. "] * 100_000
    )
    asked, waited = ThreadPoolExecutor(1), []
    with instance.client(up.url, instance.sites[1]) as other:
        answer = asked.submit(ask, site, "What does a boat cost?")
        while not (answer.done() and waited):
            began = monotonic()
            assert ask(other, "hello")["mode"] == "courtesy"
            waited.append(monotonic() - began)
    told = answer.result()
    assert str(told["answer"]).endswith("as many people know. …")
    assert (told["cut"], told["extractive"]) == (True, False)
    assert len(str(told["answer"])) < TOKEN_CHARS * ANSWER_TOKENS + 10
    eventually(model.server.hung_up.is_set)
    assert max(waited) < 5  # it is hardly ever one; beside such an answer others waited for ten


SAID = "A boat costs 7 euros an hour"
CALLING = {"tool_calls": [{"index": 0, "function": {"arguments": "x"}}]}
WRITES_ON: list[tuple[Reply, str]] = [
    (Reply([f"{SAID} [1]. ", "x" * 5_000_000]), f"{SAID}. x"),
    (Reply([f"{SAID} [1]. "], deltas=[{"content": ""}] * 1_000_000), f"{SAID}. …"),
    (Reply(["<think>", *["Boats, boats. " * 1_000] * 1_000]), "7 euros"),  # the pages are quoted
    (Reply(deltas=[CALLING] * 1_000_000), "7 euros"),
    (Reply(["A boat costs"], flood=b"x" * 65_536), "7 euros"),
    (
        Reply(["A boat \ud83d", "\udea3 costs 7\0 euros\ud83d an hour [1]."]),
        "A boat \U0001f6a3 costs 7 euros\ufffd an hour.",
    ),
    (Reply(["A boat costs 7&nbsp;euros [[1]](/boats)."]), "A boat costs 7\u00a0euros."),
]


def test_whatever_a_model_sends_there_is_an_answer_and_the_conversation_goes_on(
    modelled: tuple[Model, httpx.Client, Instance, Started],
) -> None:
    model, site, _, _ = modelled
    conversation: dict[str, object] = {}
    for reply, expected in WRITES_ON:
        model.reply = reply
        told = site.post("/chat", json={"question": "What does a boat cost?", **conversation})
        assert told.status_code == 200, told.text
        assert expected in told.json()["answer"]
        conversation = {"conversation_id": told.json()["conversation_id"]}
    kept = site.get(f"/conversations/{conversation['conversation_id']}").json()
    assert [turn["state"] for turn in kept["turns"]] == ["answered"] * len(WRITES_ON)


def test_a_busy_model_is_waited_for_as_long_as_it_says(
    modelled: tuple[Model, httpx.Client, Instance, Started],
) -> None:
    model, site, _, _ = modelled
    model.reply = [Reply(status=429, headers={"Retry-After": "0.1"}), Reply(["Seven euros [1]."])]
    got = streamed(site, "What does a boat cost?")
    assert "restart" not in [event for event, _ in got]
    assert got[-2][1]["text"] == "Seven euros."
    assert [step["kind"] for step in got[-2][1]["trace"]] == ["error", "model"]


def test_what_the_providers_filter_refuses_is_said_plainly(
    modelled: tuple[Model, httpx.Client, Instance, Started],
) -> None:
    model, site, _, _ = modelled
    model.reply = Reply(status=400, error={"message": "no", "code": "content_filter"})
    got = streamed(site, "What does a boat cost?")
    assert [event for event, _ in got][-2:] == ["error", "done"]
    assert got[-2][1] == {
        "code": "content-filtered",
        "message": "I cannot answer this question. Please put it in other words.",
    }


def test_what_the_model_writes_as_html_reaches_the_client_as_text(
    modelled: tuple[Model, httpx.Client, Instance, Started],
) -> None:
    model, site, _, _ = modelled
    attack = '<img src=x onerror="alert(document)"><script>alert(window)</script>'
    model.reply = Reply([attack, " [a](javascript:alert(window)) [1]."])
    final = streamed(site, "What does a boat cost?")[-2][1]
    assert final["text"] == f"{attack} a."


def test_a_question_is_rewritten_with_what_was_said_and_with_examples_added_live(
    modelled: tuple[Model, httpx.Client, Instance, Started],
) -> None:
    model, site, instance, up = modelled
    model.reply = Reply(["Seven euros [1]."])
    first = site.post("/chat", json={"question": "What does a rowing boat cost?"}).json()
    following = {"question": "And what about a second boat?", "conversation_id": first["conversation_id"]}
    assert site.post("/chat", json=following).status_code == 200
    asked = model.rephrasing[-1]["content"]
    assert "visitor: What does a rowing boat cost?\nassistant: Seven euros." in asked
    assert "And what about a second boat?" in asked
    rewritten = "What does a second rowing boat cost?"
    examples = f"{up.url}/v1/admin/sites/{instance.site}/examples"
    other = {"question": "And what about a second boat?", "output": rewritten}
    assert site.post(examples, json=other).status_code == 201
    good = {"kind": "answer", "question": "What does a boat cost per day?", "output": "Ahoy! It costs 40 euros."}
    assert site.post(examples, json=good).status_code == 201

    def used() -> bool:
        site.post("/chat", json={"question": "What about a second boat, then?"})
        # The nearest comes last.
        answered = model.seen[-1]["messages"][-2] == {"role": "assistant", "content": "Ahoy! It costs 40 euros [1]."}
        return answered and model.rephrasing[-2] == {"role": "assistant", "content": rewritten}

    eventually(used, every=1.0)
