"""OpenAI's chat completions, in this process; with their real client: tests/integration/test_completions.py."""

from __future__ import annotations

import json

import httpx
import pytest

from gateway.fakes import FakePorts
from schemas.answer import Answered, Done, Token

CHAT = "/v1/sites/town/chat"


@pytest.mark.parametrize(("cut", "reason"), [(True, "length"), (False, "stop")])
async def test_an_answer_cut_by_the_models_token_limit_is_told_in_every_form(
    client: httpx.AsyncClient, fakes: FakePorts, cut: bool, reason: str
) -> None:
    answer = Answered(text="At …", citations=(), sources=(), extractive=False, cut=cut)
    fakes.answers.script = lambda _: [Token(text="At …"), answer, Done()]
    order = {"model": "town", "messages": [{"role": "user", "content": "When?"}]}

    whole = (await client.post("/v1/chat/completions", json=order)).json()
    assert (whole["choices"][0]["message"]["content"], whole["choices"][0]["finish_reason"]) == ("At …", reason)

    stream = (await client.post("/v1/chat/completions", json=order | {"stream": True})).text
    chunks = [json.loads(line.removeprefix("data: ")) for line in stream.split("\n\n") if line.startswith("data: {")]
    reasons = [chunk["choices"][0].get("finish_reason") for chunk in chunks]
    assert reasons == [None] * (len(chunks) - 1) + [reason]

    assert (await client.post(CHAT, json={"question": "When?"})).json()["cut"] is cut
