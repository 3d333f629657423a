"""NLWeb's `/ask`, held against nlweb-rest-api.md: parameters, fields of a result, modes; and our limits and groups."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from gateway.app import create_app
from gateway.edge.rates import ADDRESS_FACTOR, TIMES
from schemas.answer import Failed
from schemas.http import SearchHit
from schemas.nlweb import MAX_PREV, NlwebQuery
from schemas.query import MAX_QUESTION, Question
from tests.edge import INGEST_TOWN, PAGE_ORIGIN, STAFF_TOWN, Wire, assert_problem, bearer, edge_settings, until
from tests.fakes.ports import FakePorts
from tests.unit.gateway.test_mcp import cited
from wiring.settings import ChatSettings, SiteSettings

URL = "/v1/sites/town/ask"
RESULT = {"url", "name", "site", "score", "description", "schema_object"}


def hit(page_id: str, ord: int = 0, lang: str = "en") -> SearchHit:
    return SearchHit(
        page_id=page_id, lang=lang, title=f"About {page_id}", url=f"https://town.example/{page_id}", field="content",
        ord=ord, text=f"Passage {ord} of {page_id}.", score=1 - ord / 10, revision=1,
    )  # fmt: skip


def messages(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.headers["content-type"].startswith("text/event-stream"), answer.text
    blocks = [block for block in answer.text.split("\n\n") if block]
    assert all(block.startswith(("data: ", ":")) for block in blocks)
    return [json.loads(block.removeprefix("data: ")) for block in blocks if block.startswith("data: ")]


def with_another(question: Question) -> list[Any]:
    """A script: an answer that cites one of two pages."""
    answer, done = cited(question)
    near = answer.sources[0].model_copy(update={"n": 3, "page_id": "near", "title": "Near", "cited": False})
    return [answer.model_copy(update={"sources": (*answer.sources, near)}), done]


async def test_list_is_the_search_each_page_once(stranger: httpx.AsyncClient, fakes: FakePorts) -> None:
    titled = hit("fees").model_copy(update={"field": "title", "text": "Fees", "score": 0.9})
    others = [*(hit(f"p{n}") for n in range(11)), hit("named").model_copy(update={"field": "name"})]
    fakes.search.found = [titled, hit("fees"), hit("fees", 1), hit("fees", lang="de"), *others]
    answer = (await stranger.get(URL, params={"query": " fees ", "streaming": "0"})).json()
    assert set(answer) == {"query_id", "results"}
    assert answer["query_id"]
    assert len(answer["results"]) == 10
    first, second = answer["results"][:2]
    assert set(first) == RESULT
    assert (first["url"], first["name"], first["site"]) == ("https://town.example/fees", "About fees", "town")
    assert (first["description"], first["score"]) == ("Passage 0 of fees.", 0.9)
    assert first["schema_object"]["@type"] == "WebPage"
    assert first["schema_object"]["inLanguage"] == "en"
    assert second["schema_object"]["inLanguage"] == "de"
    assert fakes.answers.asked == []
    streamed = messages(await stranger.post(URL, json={"query": "fees", "query_id": "q-1"}))
    assert [one["message_type"] for one in streamed] == ["api_version", "result_batch", "complete"]
    assert streamed[1]["results"] == answer["results"]
    assert {one["query_id"] for one in streamed} == {"q-1"}


@pytest.mark.parametrize("mode", ["summarize", "generate"])
async def test_an_answer_is_the_chats(stranger: httpx.AsyncClient, fakes: FakePorts, mode: str) -> None:
    fakes.answers.script = with_another
    order = {
        "query": "And on Sundays?",
        "mode": mode,
        "prev": "When does it open?,  What does it cost?",
        "query_id": "q",
    }
    headers = {"User-Agent": "assistant/1"}
    streamed = messages(await stranger.get(URL, params=order, headers=headers))
    whole = (await stranger.post(URL, json=order | {"streaming": False}, headers=headers)).json()
    kind = {"summarize": "summary", "generate": "nlws"}[mode]
    assert [one["message_type"] for one in streamed] == ["api_version", "result_batch", kind, "complete"]
    said = {name: value for name, value in streamed[2].items() if name not in ("message_type", "query_id")}
    assert whole == {"query_id": "q", "results": streamed[1]["results"], kind: said}
    text = whole[kind]["message" if mode == "summarize" else "answer"]
    assert text == "It costs ten euros. Bring a photo."
    names = ["Fees", "Near"] if mode == "summarize" else ["Fees"]  # `generate`: those that the answer cites
    assert [result["name"] for result in whole["results"]] == names
    for question in fakes.answers.asked:
        assert (question.via, question.client, question.groups) == ("nlweb", "assistant/1", ())
        assert [turn.question for turn in question.history] == ["When does it open?", "What does it cost?"]
        assert question.logged_as is not None


@pytest.mark.parametrize("mode", ["summarize", "generate"])
async def test_the_result_of_a_tool_is_no_page(stranger: httpx.AsyncClient, fakes: FakePorts, mode: str) -> None:
    def worked_out(question: Question) -> list[Any]:
        answer, done = cited(question)
        made = answer.sources[0].model_copy(update={"n": 3, "page_id": "get_fee", "url": "", "kind": "tool"})
        return [answer.model_copy(update={"sources": (*answer.sources, made)}), done]

    fakes.answers.script = worked_out
    answer = await stranger.get(URL, params={"query": "What does it cost?", "mode": mode, "streaming": "0"})
    assert [result["schema_object"]["identifier"] for result in answer.json()["results"]] == ["fees"]


async def test_a_query_that_stands_for_itself_needs_no_history(stranger: httpx.AsyncClient, fakes: FakePorts) -> None:
    order = {"query": "And dogs?", "decontextualized_query": "May dogs swim?", "prev": ["x"], "mode": "generate"}
    await stranger.post(URL, json=order | {"streaming": 0})
    [question] = fakes.answers.asked
    assert (question.question, question.history) == ("May dogs swim?", ())


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("", ()),
        ("a, b ,,c", ("a", "b", "c")),
        (["a, b"], ("a", "b")),
        ("[a,b]", ("a", "b")),
        (["Is it open, too?", "b"], ("Is it open, too?", "b")),
        ("x," * 1_000, ("x",) * (MAX_PREV - 1)),
    ],
)
def test_earlier_queries_are_cut_at_commas(given: Any, read: tuple[str, ...]) -> None:
    assert NlwebQuery.model_validate({"query": "q", "prev": given}).prev == read


async def test_groups_are_those_of_the_key(stranger: httpx.AsyncClient, fakes: FakePorts) -> None:
    for mode in ("list", "generate"):
        order = {"query": "Wages?", "mode": mode, "streaming": False}
        await stranger.post(URL, json=order)
        await stranger.post(URL, json=order, headers=bearer(STAFF_TOWN))
    assert fakes.search.groups == [(), ("staff", "board")]
    assert [question.groups for question in fakes.answers.asked] == [(), ("staff", "board")]


async def test_what_comes_to_the_door(stranger: httpx.AsyncClient) -> None:
    asked: list[tuple[str, dict[str, str], dict[str, Any], int, str]] = [
        (URL, {"Origin": "https://evil.example"}, {}, 403, "origin-not-allowed"),
        (URL, bearer("unknown"), {}, 401, "unauthorized"),
        (URL, bearer(INGEST_TOWN), {}, 403, "forbidden"),
        (URL.replace("town", "other"), {}, {}, 403, "agents-off"),
        (URL.replace("town", "nowhere"), {}, {}, 404, "unknown-site"),
        (URL, {}, {"query": " "}, 422, "invalid"),
        (URL, {}, {"query": "x" * (MAX_QUESTION + 1)}, 422, "invalid"),
        (URL, {}, {"mode": "delete"}, 422, "invalid"),
        (URL, {}, {"streaming": "maybe"}, 422, "invalid"),
        (URL, {}, {"query_id": "x" * 201}, 422, "invalid"),
    ]
    for url, headers, more, status, code in asked:
        order = {"query": "Fees?"} | more
        assert_problem(await stranger.post(url, json=order, headers=headers), status, code)
        assert_problem(await stranger.get(url, params=order, headers=headers), status, code)
    assert_problem(await stranger.post(URL, json={"query": "x", "prev": [1]}), 422, "invalid")
    assert_problem(await stranger.post(URL, content=b"{"), 400, "bad-json")
    assert_problem(await stranger.post(URL, json={"query": "x", "more": "y" * 70_000}), 413, "too-large")
    allowed = await stranger.get(URL, params={"query": "x", "unknown": "1"}, headers={"Origin": PAGE_ORIGIN})
    assert allowed.headers["access-control-allow-origin"] == PAGE_ORIGIN


async def test_the_limits_are_those_of_visitors(fakes: FakePorts, tmp_path: Path) -> None:
    app = create_app(edge_settings(tmp_path, visitor_rate="1/day"), fakes.ports)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway.test") as client:
        for mode in ("generate", "list"):
            order = {"query": "Fees?", "mode": mode, "streaming": False}
            told = [await client.post(URL, json=order) for _ in range(ADDRESS_FACTOR + 1)]
            assert [one.status_code for one in told] == [200] * ADDRESS_FACTOR + [429]
            assert_problem(told[-1], 429, "too-many-requests")
        for _ in range(TIMES["nlweb"] * ADDRESS_FACTOR):
            told.append(await client.post(URL, json={}))
        assert (told[-2].status_code, told[-1].status_code) == (429, 429)


async def test_a_chat_that_is_off_lists_pages_and_answers_nothing(fakes: FakePorts, tmp_path: Path) -> None:
    town = SiteSettings(agents=frozenset({"nlweb"}), chat=ChatSettings(enabled=False))
    app = create_app(edge_settings(tmp_path, sites={"town": town}), fakes.ports)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway.test") as client:
        assert (await client.post(URL, json={"query": "Fees?"})).status_code == 200
        assert_problem(await client.post(URL, json={"query": "Fees?", "mode": "generate"}), 403, "chat-off")


async def test_an_answer_that_fails_says_so(stranger: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.answers.script = lambda question: [Failed(code="timeout", message="Too late.")]
    order = {"query": "Fees?", "mode": "generate"}
    [begin, error] = messages(await stranger.post(URL, json=order))
    assert (begin["message_type"], error["error"]) == ("api_version", "Too late.")
    assert_problem(await stranger.post(URL, json=order | {"streaming": False}), 504, "timeout")


@pytest.mark.parametrize("streaming", [True, False])
async def test_who_hangs_up_stops_the_answer(app: FastAPI, fakes: FakePorts, streaming: bool) -> None:
    fakes.answers.script = lambda question: [60.0, *cited(question)]
    body = json.dumps({"query": "Fees?", "mode": "generate", "streaming": streaming}).encode()
    headers = {"Content-Type": "application/json", "Host": "gateway.test"}
    async with Wire().call(app, "POST", URL, headers, body) as wire:
        await until(lambda: fakes.answers.following)
        wire.hang_up()
        await until(lambda: any(each.is_set() for each in fakes.answers.stopped.values()))
    assert fakes.answers.following == 0
