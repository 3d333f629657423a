"""What a start says about the server of models."""

from __future__ import annotations

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.llm.openai_chat import server_problem
from tests.scripted_llm import ScriptedLLM
from wiring.settings import Settings


@pytest.mark.parametrize(
    ("status", "said"), [(200, None), (401, "refuses the key (OPENAI_API_KEY)"), (403, "refuses the key"), (500, None)]
)
async def test_a_key_that_is_refused_is_told(status: int, said: str | None) -> None:
    async def models(request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == "Bearer hush"
        return web.json_response({"object": "list", "data": []}, status=status)

    app = web.Application()
    app.router.add_get("/v1/models", models)
    async with TestServer(app) as server:
        base = str(server.make_url("/v1"))
        why = await server_problem(Settings.model_validate({"openai_base_url": base, "openai_api_key": "hush"}))
    assert (why is None) if said is None else (why is not None and base in why and said in why)


@pytest.mark.parametrize(
    ("body", "kind"), [("<html>", "text/html"), ("null", "application/json"), ("{", "application/json")]
)
async def test_a_server_with_another_list_or_none_is_no_reason_not_to_start(body: str, kind: str) -> None:
    async def models(_: web.Request) -> web.Response:
        return web.Response(text=body, content_type=kind)

    app = web.Application()
    app.router.add_get("/models", models)
    async with TestServer(app) as server:
        assert await server_problem(Settings(openai_base_url=str(server.make_url("/")))) is None


async def test_a_server_that_is_away_is_told_and_one_without_a_list_is_not() -> None:
    async with ScriptedLLM([]) as llm:
        settings = Settings(openai_base_url=llm.url)
        assert await server_problem(settings) is None
    assert await server_problem(settings) == f"nothing answers at {llm.url}/ (OPENAI_BASE_URL)"
