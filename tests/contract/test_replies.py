"""The streams in `replies/`, written after the public documentation of each model server: the answer that is read of
them, or the error."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.llm.openai_chat import OpenAIChat
from pipelines.query.ports import ContentFiltered, ContextTooLong, ModelCut, ModelError
from prompts.loader import ChatMessage, ToolCall
from tests.scripted_llm import Reply, ScriptedLLM
from wiring.settings import Settings

REPLIES = Path(__file__).with_name("replies")
SAID = "Open daily [1]."
FERRY, TODAY = ("search", '{"question":"ferry"}'), ("today", "{}")
# name -> prompt and completion tokens; the text is SAID
ANSWERS = {
    "openai": (120, 5),
    "azure": (50, 6),
    "azure-asynchronous-filter": (0, 0),
    "vllm-reasoning": (40, 20),
    "vllm-counts-on": (40, 5),
    "deepseek": (40, 9),
    "ollama": (40, 9),
    "llama-cpp": (40, 5),
    "openrouter": (40, 5),
    "mistral-thinks": (40, 9),
    "groq": (40, 5),
}
CALLS = {
    "openai-tool-calls": (ToolCall(*FERRY, "call_a"), ToolCall(*TODAY, "call_b")),
    "ollama-tool-calls": (ToolCall(*FERRY, "call_x"), ToolCall(*TODAY, "call_y")),
    "gemini-tool-call": (ToolCall(*FERRY, "", {"google": {"thought_signature": "c2ln"}}),),
}
ERRORS: dict[str, type[ModelError]] = {
    "openai-refusal": ContentFiltered,
    "azure-filtered": ContentFiltered,
    "vllm-breaks": ModelCut,
    "deepseek-busy": ModelCut,
    "llama-cpp-breaks": ModelCut,
    "llama-cpp-too-long": ContextTooLong,
    "openrouter-breaks": ModelCut,
    "lm-studio-breaks": ModelCut,
}


async def outcome(name: str) -> tuple[str, tuple[int, int], tuple[ToolCall, ...], bool] | type[ModelError]:
    """Text, tokens, calls, and whether the limit was reached; or the error."""
    async with ScriptedLLM(Reply(raw=(REPLIES / f"{name}.sse").read_bytes())) as server:
        model = OpenAIChat.named("scripted", Settings(openai_base_url=server.url))
        try:
            done = await model.complete([ChatMessage("user", "When is the pool open?")])
        except ModelError as err:
            return type(err)
        finally:
            await model.aclose()
    return done.text.strip(), (done.usage.prompt_tokens, done.usage.completion_tokens), done.calls, done.cut


@pytest.mark.parametrize("name", sorted(path.stem for path in REPLIES.iterdir()))
async def test_a_servers_stream_is_read(name: str) -> None:
    if name in ERRORS:
        assert await outcome(name) is ERRORS[name]
    elif name in CALLS:
        text, _, calls, cut = await outcome(name)  # type: ignore[misc]
        assert (text, calls, cut) == ("", CALLS[name], False)
    elif name == "openai-length":
        assert await outcome(name) == ("Open from nine", (80, 4), (), True)
    else:
        assert await outcome(name) == (SAID, ANSWERS[name], (), False)
