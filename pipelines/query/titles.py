"""Titles of conversations, by a model: what was asked, in a few words and in the visitor's language."""

from __future__ import annotations

import asyncio
import html
import re
import unicodedata

import structlog

from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.ports import ChatModels
from pipelines.runtime.errors import PagewireError
from prompts.loader import fence
from text.markdown import plain
from text.sentences import cut

log = structlog.get_logger(__name__)

PATIENCE = 15.0  # seconds; no visitor waits, but a call takes a place of `llm_at_once`
OUTPUT_TOKENS = 60
TITLE_CHARS = 60
ASKED_CHARS = 1_000  # of the question, that are read
ANSWER_CHARS = 500  # of the answer
ESSAY = 3  # a text of more than so many times TITLE_CHARS is no title

_QUOTES = "\"'`“”„‟‘’‚«»‹›「」『』 "
_END = ".。:;,…" + _QUOTES
_TURNS_AROUND = re.compile("[\u202a-\u202e\u2066-\u2069]")  # a title must not reverse what stands beside it


class ModelTitles:
    """Titles by a site's model; a pipelines.conversations.titles.TitleWriter. One per process."""

    def __init__(self, models: ChatModels, site_prompts: SitePrompts) -> None:
        self._models = models
        self._prompts = site_prompts

    async def write(self, site: str, lang: str, question: str, answer: str) -> str | None:
        """None: the model gives none, or one that is none."""
        own = self._prompts.of(site)
        values = {
            "language": own.phrases.name(lang),
            "fence": fence(question),
            "question": cut(question, ASKED_CHARS),
            "answer": cut(answer, ANSWER_CHARS),
        }
        try:
            async with asyncio.timeout(PATIENCE):
                messages = own.prompts["title"].messages(values, lang)
                said = await self._models.of(site, "title").complete(messages, max_tokens=OUTPUT_TOKENS)
        except (PagewireError, TimeoutError) as err:
            log.info("the model gives no title", error=repr(err))
            return None
        return None if said.cut else title_of(said.text)


def title_of(said: str) -> str | None:
    """What a model said as a title: one line, without markup, quotes and a full stop, of at most `TITLE_CHARS`.

    None: it is empty, holds tags, or is an essay.
    """
    line = plain(html.unescape(next((line for line in said.splitlines() if line.strip()), "")))
    line = "".join(each for each in _TURNS_AROUND.sub("", line) if unicodedata.category(each) != "Cc")
    line = " ".join(line.split()).strip(_QUOTES).rstrip(_END)
    if not any(each.isalnum() for each in line) or "<" in line or len(line) > ESSAY * TITLE_CHARS:
        return None
    if len(line) <= TITLE_CHARS:
        return line
    words = line[:TITLE_CHARS].rpartition(" ")[0]  # a language without spaces is cut where it is
    return f"{(words or line[: TITLE_CHARS - 1]).rstrip(_END)}…"
