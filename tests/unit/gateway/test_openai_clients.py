"""What real clients of OpenAI's API send, and how each is answered.

`openai_requests.jsonl`: bodies with a version were recorded from the client itself, those with `(source, YEAR)` are
written after what its public source sends, in our words but for how a prompt begins. Each says what is asked of the
site (`asked`), answered at once (`answer`) or refused (`error`: status, code, parameter).
"""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from docs.http_page import document
from gateway.app import create_app
from gateway.chat.chat import BODY_LIMIT
from gateway.edge.rates import TIMES
from gateway.openai.refusals import is_openai
from gateway.openai.templates import errand
from schemas.answer import Answered, Done, Token, Usage
from schemas.completion import RequestMessage
from tests.edge import ADMIN, assert_problem, bearer, edge_settings
from tests.fakes.ports import FakePorts

REQUESTS = [json.loads(line) for line in Path(__file__).with_name("openai_requests.jsonl").read_text().splitlines()]
COMPLETE = "/v1/chat/completions"
OURS = ("tuple", "Tuple", "Part", "pattern", "pydantic", "Input should match")  # words about our code
QUESTION = {"role": "user", "content": "When?"}


@pytest.fixture(autouse=True)
def answer(fakes: FakePorts) -> None:
    said = Answered(text="At nine.", citations=(), sources=(), extractive=False, usage=Usage(prompt_tokens=3))
    fakes.answers.script = lambda _: [Token(text="At "), Token(text="nine."), said, Done()]


def said_in(response: httpx.Response, *, usage: bool) -> str:
    """The text of an answer, whole or streamed, as OpenAI's own types have it."""
    assert response.status_code == 200, response.text
    if response.headers["content-type"] == "application/json":
        whole = ChatCompletion.model_validate(response.json())
        assert (whole.object, whole.choices[0].finish_reason) == ("chat.completion", "stop")
        return whole.choices[0].message.content or ""
    *data, end = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert end == "[DONE]"
    documents = [json.loads(line) for line in data]
    chunks = [ChatCompletionChunk.model_validate(document) for document in documents]
    assert {(chunk.id, chunk.created, chunk.object) for chunk in chunks} == {
        (chunks[0].id, chunks[0].created, "chat.completion.chunk")
    }
    if usage:
        last = chunks.pop()
        assert (last.choices, last.usage is not None) == ([], True)
    assert all(chunk.usage is None for chunk in chunks)
    # Present in every chunk and null in all but the last, as OpenAI sends it.
    assert [document["choices"][0]["finish_reason"] for document in documents[: len(chunks)]] == [
        *[None] * (len(chunks) - 1),
        "stop",
    ]
    assert not [document for document in documents[: len(chunks)] if None in document["choices"][0]["delta"].values()]
    assert chunks[0].choices[0].delta.role == "assistant"
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


def error_in(response: httpx.Response) -> tuple[int, str, str | None]:
    """Status, code and parameter of a refusal in OpenAI's shape."""
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-request-id"] == response.headers["x-trace-id"]
    body = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert not [word for word in OURS if word in body["error"]["message"]]
    return response.status_code, body["error"]["code"], body["error"]["param"]


async def test_what_real_clients_send_is_answered(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    for sent in REQUESTS:  # in one test: a gateway for each would take a minute
        name = f"{sent['clients'][0]}: {sent['what']}"
        response = await client.post(sent["path"], json=sent["body"])
        if "error" in sent:
            assert error_in(response) == tuple(sent["error"]), name
        else:
            options = sent["body"].get("stream_options") or {}
            text = said_in(response, usage=options.get("include_usage", False))
            assert text == sent.get("answer", "At nine."), name
        asked = [question.question for question in fakes.answers.asked]
        assert asked == ([sent["asked"]] if "asked" in sent else []), name
        fakes.answers.asked.clear()


async def test_null_is_the_default_of_every_field(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    names = "stream stream_options n response_format tool_choice function_call lang tools stop temperature user"
    order = {"model": "town", "messages": [QUESTION], **dict.fromkeys(names.split())}
    assert said_in(await client.post(COMPLETE, json=order), usage=False) == "At nine."
    order |= {"stream": True, "stream_options": {"include_usage": None}}
    assert said_in(await client.post(COMPLETE, json=order), usage=False) == "At nine."
    assert len(fakes.answers.asked) == 2


async def test_one_mistake_has_one_message_in_openais_words(client: httpx.AsyncClient) -> None:
    wrong = "Invalid value for"
    for body, param, message in (
        ({"messages": None}, "messages", f"{wrong} 'messages': Input should be a valid array."),
        ({"messages": []}, "messages", f"{wrong} 'messages'."),
        ({"messages": [QUESTION] * 1001}, "messages", f"{wrong} 'messages'."),
        ({"messages": ["When?"]}, "messages[0]", f"{wrong} 'messages[0]'."),
        (
            {"messages": [{"role": "user", "content": {"text": "When?"}}]},
            "messages[0].content",
            f"{wrong} 'messages[0].content': Input should be a valid string.",
        ),
        ({"messages": [{"content": "When?"}]}, "messages[0].role", "Missing required parameter: 'messages[0].role'."),
        ({"lang": "?!"}, "lang", f"{wrong} 'lang'."),
        ({"model": None, "stream": "perhaps"}, "model", f"{wrong} 'model': Input should be a valid string."),
    ):
        response = await client.post(COMPLETE, content=json.dumps({"model": "town", "messages": [QUESTION]} | body))
        assert error_in(response) == (400, "invalid", param)
        assert message in (None, response.json()["error"]["message"])


async def test_a_model_that_there_is_not_is_not_found(client: httpx.AsyncClient) -> None:
    for model in ("gpt-4.1", "meta-llama/Llama-3.1-8B", "GPT-4o", "town ", "x" * 5000, ""):
        responses = [await client.post(COMPLETE, json={"model": model, "messages": [QUESTION]})]
        if model:
            responses.append(await client.get(f"/v1/models/{model}"))
        for response in responses:
            assert error_in(response) == (404, "model_not_found", "model")
            assert len(response.content) < 300


async def test_openais_other_routes_say_what_there_is(client: httpx.AsyncClient, app: FastAPI) -> None:
    for method, path, status in (
        ("POST", "/v1/responses", 404),
        ("GET", "/v1/responses/resp_1", 404),
        ("POST", "/v1/completions", 404),
        ("POST", "/v1/embeddings", 404),
        ("POST", "/v1/audio/speech", 404),
        ("POST", "/chat/completions", 404),  # the base URL lacks /v1
        ("GET", COMPLETE, 405),
        ("POST", "/v1/models", 405),
    ):
        response = await client.request(method, path)
        assert error_in(response)[0] == status
        assert f"Invalid URL ({method} {path})" in response.json()["error"]["message"]
        assert "POST /v1/chat/completions" in response.json()["error"]["message"]
        assert ("allow" in response.headers) == (status == 405)
    with_slash = await client.post(f"{COMPLETE}/", json={"model": "town", "messages": [QUESTION]})
    assert said_in(with_slash, usage=False) == "At nine."


async def test_our_own_routes_keep_their_own_shape(client: httpx.AsyncClient) -> None:
    paths = document()["paths"]
    assert len(paths) > 50
    for path, operations in paths.items():
        assert {is_openai(path)} == {"openai" in each["tags"] for each in operations.values()}, path
    assert_problem(await client.post("/v1/sites/town/responses"), 404, "not-found")
    assert_problem(await client.get("/v1/sites/town/chat"), 405, "method-not-allowed")


async def test_errands_cost_a_visitor_nothing(tmp_path: Path, fakes: FakePorts) -> None:
    sent_at_once = [sent for sent in REQUESTS if "answer" in sent]
    # So that errands and questions are no more completions than a visitor may have.
    rate = len(sent_at_once) // TIMES["completion"] + 2
    app = create_app(edge_settings(tmp_path, sites={"town": {}}, visitor_rate=f"{rate}/day"), fakes.ports)
    headers = bearer(app.state.edge.tokens.issue("town").token)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://gateway.test", headers=headers
    ) as visitor:
        for sent in sent_at_once:
            said_in(await visitor.post(COMPLETE, json=sent["body"]), usage=False)
        assert fakes.answers.asked == []
        order = {"model": "town", "messages": [QUESTION]}
        for _ in range(rate):
            assert said_in(await visitor.post(COMPLETE, json=order), usage=False) == "At nine."
        assert error_in(await visitor.post(COMPLETE, json=order)) == (429, "too-many-requests", None)


def message(role: str, text: str) -> RequestMessage:
    return RequestMessage.model_validate({"role": role, "content": text})


def test_words_of_a_template_are_no_errand_where_they_stand_by_chance() -> None:
    for messages in (
        # An earlier message of the person, not of the program.
        [message("user", "Analyze this conversation and provide: nothing"), message("user", "When?")],
        [message("user", "What does <chat_history> mean?")],
        [message("user", "### Task: when is the pool open?")],
        [message("user", "Can you give this conversation a name?")],
        [message("system", "You are the town's assistant."), message("user", "Available tools: which are there?")],
    ):
        assert errand(messages, as_json=False) is None


async def test_pictures_fit_into_a_programs_body(stranger: httpx.AsyncClient, app: FastAPI) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * (BODY_LIMIT + 1)}}
    order = {
        "model": "town",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "When?"}, picture]}],
    }
    program = await stranger.post(COMPLETE, json=order, headers=bearer(ADMIN))
    assert said_in(program, usage=False) == "At nine."
    visitor = await stranger.post(COMPLETE, json=order, headers=bearer(app.state.edge.tokens.issue("town").token))
    assert error_in(visitor) == (413, "too-large", None)
