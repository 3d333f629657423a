"""What chat programs write around a person's question, and what they ask for themselves.

Open WebUI, LibreChat and others have the model write a title for each conversation, tags, what might be asked next.
No person asks that of the website, so it is answered from the prompt alone. Their prompts are known by how they begin,
as their public sources had them in 2026; what we do not know is a question.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from pipelines.conversations.turns import first_title
from schemas.completion import RequestMessage
from schemas.query import MAX_QUESTION

_TASK = "### Task:"  # Open WebUI's prompts
# What a prompt of Open WebUI wants under which key. Where we have nothing to say it goes on without.
_WANTED: dict[str, object] = {"tags": [], "follow_ups": [], "queries": [], "prompt": "", "text": ""}
_TITLE = (
    "Provide a concise, 5-word-or-less title for the conversation",  # LibreChat
    "Analyze this conversation and provide:",  # LibreChat, in JSON
    "Write a concise title for this conversation in the detected language",  # LibreChat, earlier
    "You are a professional conversation summarizer. Generate a concise title",  # LobeChat
    "你是一名擅长会话的助理，你需要将用户的会话总结为",  # LobeChat and Cherry Studio, earlier
    "Summarize the given session as a 10-word title",  # Cherry Studio
    "You are an assistant skilled in conversation. You need to summarize the user's conversation into a title",
    "Please generate a four to five word title summarizing our conversation",  # NextChat
    "Based on the chat history, give this conversation a name.",  # Chatbox
    "You are a chat thread titling assistant.",  # Hugging Face's Chat UI
    "- you will generate a short title based on the first message",  # Vercel's chat template
    "Given the following... please reply with a title for the chat",  # Continue
)
_OTHERS = {
    "Summarize the discussion briefly in 200 words or less": "",  # NextChat, which goes on without a summary
    "You're an assistant who's good at extracting key takeaways from conversations": "",  # LobeChat's summary
    "Your task is to reflect the speaker's likely facial expression": "",  # Open WebUI
    "Available Tools:": '{"tool_calls": []}',  # Open WebUI: which of its tools to call
}
_SAID = re.compile(r"^(?:(?:user|human)(?: message)?[ \t]*:|```\n)[ \t]*(\S.*)$", re.IGNORECASE | re.MULTILINE)


def errand(messages: Sequence[RequestMessage], *, as_json: bool) -> str | None:
    """What to answer to a program that asks for itself; None: a person asks.

    Args:
        as_json: an object is asked for by `response_format`.
    """
    last = messages[-1].text.strip()
    if last.startswith(_TASK) and "<chat_history>" in last:
        return _task(*last.split("<chat_history>", 1))
    system = messages[0].text.strip() if messages[0].role in ("system", "developer") else ""
    for prompt in (last, system):
        if prompt.startswith(_TITLE):
            title = _title(messages, last, alone=prompt == last)
            return _json("title", title) if as_json else title
        for beginning, answer in _OTHERS.items():
            if prompt.startswith(beginning):
                return answer
    return None


def asked(text: str) -> str:
    """The question in the prompt that Open WebUI writes around it when files or web pages go with it."""
    if not (text.startswith(_TASK) and "</context>" in text):
        return text
    rest = text.rpartition("</context>")[2]
    _, marked, query = rest.partition("<user_query>")
    return (query.partition("</user_query>")[0] if marked else rest).strip() or text


def _task(instructions: str, history: str) -> str:
    if '"title"' in instructions:
        return _json("title", _first_said(history))
    for key, nothing in _WANTED.items():
        if f'"{key}"' in instructions:
            return _json(key, nothing)
    return _first_said(history)


def _title(messages: Sequence[RequestMessage], prompt: str, *, alone: bool) -> str:
    """The conversation's first question. `alone`: the prompt has the instructions and what was said."""
    earlier = [message.text for message in messages[:-1] if message.role == "user"]
    if earlier:
        return _short(earlier[0])
    said = prompt.partition("\n\n")[2] if alone else prompt
    return _first_said(said) or ("" if said.startswith(("[", "{")) else _short(said))


def _first_said(conversation: str) -> str:
    """The first words of the user in a conversation that is written down."""
    said = _SAID.search(conversation[:MAX_QUESTION])
    return _short(said[1].strip(' "')) if said else ""


def _short(said: str) -> str:
    return first_title(said[:MAX_QUESTION])  # a prompt may have megabytes


def _json(key: str, value: object) -> str:
    return json.dumps({key: value}, ensure_ascii=False)
