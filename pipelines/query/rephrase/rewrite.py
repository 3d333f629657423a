"""Rephrase: one question that can be searched and answered without its conversation.

question + history ─▶ values ─▶ model ─▶ parsed ─▶ rewritten
                             └ no model, or it fails ─▶ as it is, and what it may lean on (follow_up)
"""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from pipelines.query.flow import Flow
from pipelines.query.live.glossary import terms_back
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.ports import ChatModels, ExamplePicker
from pipelines.query.settings import QuerySettings
from pipelines.runtime.errors import PagewireError
from prompts.loader import fence
from schemas.query import HISTORY_MESSAGES, MAX_HISTORY, MAX_QUESTION, Question, SearchMode, Turn, Usage
from text.sentences import cut
from text.words import count_words

logger = structlog.get_logger(__name__)

PATIENCE = 10.0  # seconds a rewriting may take: without it the answer is a little worse, but it comes
OF_SILENCE = 3  # parts of the seconds that a model may be silent: a rewriting may take one of them, where that is more
OUTPUT_TOKENS = 200  # what a rewriting may cost
MAX_REPHRASED = 600  # characters: longer is an answer or a list, not a question
GROWTH = 4  # times the original plus room for what the conversation adds; more is an answer

_LABEL = re.compile(r"^(?:[*_#>\s-]*)(?:[\w' ]{0,24}(?:question|query|frage)[*_]*\s*:)\s*", re.IGNORECASE)
_QUOTES = "\"'“”„‘’«»`*_ \t"


@dataclass(frozen=True)
class Rewriter:
    """What questions are rewritten with."""

    models: ChatModels
    examples: ExamplePicker
    silence: float = 0.0  # seconds that a model may be silent, as the settings say

    def patience(self, request: Question) -> float:
        """Seconds for this question: more where the settings know a slow model, and half of what is left at most."""
        left = (request.deadline - datetime.now(UTC)).total_seconds()
        return max(PATIENCE, min(self.silence / OF_SILENCE, left / 2))


def search_mode(question: str, short_words: int) -> SearchMode:
    """A question of fewer than `short_words` words is looked up by its words as they stand."""
    return "keyword" if count_words(question) < short_words else "semantic"


def recent(history: Sequence[Turn], messages: int, chars: int = MAX_HISTORY) -> list[tuple[str, str]]:
    """The role and the text of the newest messages, oldest first: at most `messages`, together at most `chars`
    characters. The oldest that is kept may be cut at its end.
    """
    said = [message for turn in history for message in (("visitor", turn.question), ("assistant", turn.answer))]
    kept: list[tuple[str, str]] = []
    left = chars
    for role, text in reversed(said[-messages:] if messages else []):
        piece = cut(text, left)
        if piece:
            kept.append((role, piece))
        left -= len(piece)
        if piece != text:
            break
    return kept[::-1]


def conversation(history: Sequence[Turn], messages: int) -> str:
    """The recent messages, as a prompt shows them."""
    return "\n".join(f"{role}: {text}" for role, text in recent(history, messages)) or "(none)"


def values(request: Question, *, site: str, language: str, history_messages: int, terms: str = "") -> dict[str, str]:
    """What the prompt `rephrase` wants to know.

    Args:
        site: the website's title, as visitors know it.
        language: name of the site's language, in English.
        terms: what the question calls things, and what the site calls them.
    """
    return {
        "site": site,
        "language": language,
        "fence": fence(request.request_id),
        "conversation": conversation(request.history, history_messages),
        "question": request.question,
        "terms": terms,
    }


def parsed(output: str, original: str) -> str:
    """The question in what the model wrote; the original where there is none to be trusted."""
    lines = [line for raw in output.splitlines() if (line := _unwrapped(raw))]
    if len(lines) > 1 and lines[0].endswith(":"):  # "Here is the rewritten question:"
        lines = lines[1:]
    if len(lines) != 1:
        return original
    limit = min(MAX_REPHRASED, GROWTH * len(original) + MAX_REPHRASED // 3, MAX_QUESTION)
    question = lines[0]
    fits = len(question) <= limit and count_words(question) > 0 and "<" not in question
    return question if fits else original


def _unwrapped(line: str) -> str:
    """Without the label, quotes and characters that models put around a question."""
    visible = "".join(ch if ch.isprintable() else " " for ch in html.unescape(line))
    return " ".join(_LABEL.sub("", visible.strip()).strip(_QUOTES).split())


async def rewrite(
    request: Question, settings: QuerySettings, flow: Flow, site_prompts: SitePrompts, rewriter: Rewriter | None
) -> tuple[str | None, Usage]:
    """The question as the model puts it, None without a rewriter, or when it fails; and what was spent on it.

    Raises: BadTrialPrompt.
    """
    if rewriter is None:
        return None, Usage()
    site, prompt_set = settings.site(request.site), site_prompts.of(request.site)
    repeats, lang = flow.rephrase == "repeat", site.languages[0]
    prompt = site_prompts.asked(request, "rephrase" if repeats else "expand")
    asks = values(
        request,
        site=site.title or request.site,
        language=prompt_set.phrases.name(lang),
        history_messages=HISTORY_MESSAGES,
        terms=terms_back(prompt_set.searched_by(site), request.question),
    )
    seconds = rewriter.patience(request)
    try:
        async with asyncio.timeout(seconds):
            # Examples of repeated questions would teach it to repeat.
            shots = await rewriter.examples.pick("rephrase", request, lang) if repeats else None
            messages = prompt.messages(asks, lang, shots)
            model = rewriter.models.of(request.site, "rephrase", request.request_id)
            completion = await model.complete(messages, max_tokens=OUTPUT_TOKENS)
    except TimeoutError:
        logger.warning("not rephrased", code="timeout", seconds=round(seconds))
        return None, Usage()
    except PagewireError as err:
        logger.warning("not rephrased", code=err.code, error=str(err))
        return None, Usage()
    if completion.cut:  # half a question asks for something else
        logger.warning("not rephrased", code="cut", tokens=OUTPUT_TOKENS)
        return None, completion.usage
    return parsed(completion.text, request.question), completion.usage
