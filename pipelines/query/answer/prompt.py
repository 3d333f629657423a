"""Prompt: the messages from which a model writes the cited answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from pipelines.query.rephrase.rewrite import conversation
from pipelines.query.search.widen import fit
from prompts.loader import ChatMessage, Example, Prompt, fence
from schemas.query import Retrieved, Source

OUTPUT_TOKENS = 800  # of an answer; our answers are short, and a model that runs on is stopped


@dataclass(frozen=True)
class Chat:
    """The model's input. It may only cite `sources`."""

    messages: tuple[ChatMessage, ...]
    sources: tuple[Source, ...]


def chat(
    prompt: Prompt,
    retrieved: Retrieved,
    *,
    site: str,
    language: str,
    today: date,
    budget: int,
    history_messages: int,
    notes: str = "",
    terms: str = "",
    examples: Sequence[Example] | None = None,
) -> Chat:
    """The prompt `answer` with the retrieved sources.

    Args:
        site: the website's title, as visitors know it.
        language: name of the visitor's language, in English.
        budget: characters of source text; lower-ranked sources are dropped, the last one is cut at a sentence end.
        notes: earlier findings of the strategy.
        terms: the site's terms in the visitor's language.
        examples: worked answers, the nearest last; default: all of the prompt's.
    """
    request = retrieved.request
    sources = fit(retrieved.sources, budget)
    token = fence(request.request_id)
    values = {
        "site": site,
        "language": language,
        "today": today.isoformat(),
        "fence": token,
        "sources": fenced(sources, token),
        "conversation": conversation(request.history, history_messages),
        "question": retrieved.question,
        "asked": request.question,
        "notes": notes,
        "terms": terms,
    }
    return Chat(prompt.messages(values, request.lang, examples), sources)


def fenced(sources: Sequence[Source], token: str) -> str:
    """The numbered sources, each between marks that no page can forge (`prompts.loader.fence`)."""
    return "\n".join(passage(token, source.n, source.title, source.text, source.heading) for source in sources)


def passage(token: str, n: int, title: str, text: str, heading: str = "") -> str:
    head = "\n".join(filter(None, [f"Title: {' '.join(title.split())}", heading]))
    return f'<source-{token} n="{n}">\n{head}\n\n{text}\n</source-{token}>'
