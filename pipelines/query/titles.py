"""Titles of conversations: a model names the subject in a few words, in the visitor's language."""

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

PATIENCE = 15.0  # seconds; no visitor waits, but a call occupies one of those that the process may have open
OUTPUT_TOKENS = 60
TITLE_CHARS = 60
ASKED_CHARS = 1_000  # characters of the question that the model reads
ANSWER_CHARS = 500  # characters of the answer that the model reads
ESSAY = 3  # times TITLE_CHARS; a longer text is no title

_QUOTES = "\"'`“”„‟‘’‚«»‹›「」『』 "
_END = ".。:;,…" + _QUOTES
_TURNS_AROUND = re.compile("[\u202a-\u202e\u2066-\u2069]")  # a title must not reverse the text next to it


class ModelTitles:
    """Titles by a site's model; a pipelines.conversations.titles.TitleWriter. One per process."""

    def __init__(self, models: ChatModels, site_prompts: SitePrompts) -> None:
        self._models = models
        self._prompts = site_prompts

    async def write(self, site: str, lang: str, question: str, answer: str) -> str | None:
        """A title; None if the model fails, or writes something else."""
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
    """A model's text as a title: one line without markup, quotes and full stop, of at most `TITLE_CHARS`.

    None if it is empty, has tags, or is far too long.
    """
    line = plain(html.unescape(next((line for line in said.splitlines() if line.strip()), "")))
    line = "".join(each for each in _TURNS_AROUND.sub("", line) if unicodedata.category(each) != "Cc")
    line = " ".join(line.split()).strip(_QUOTES).rstrip(_END)
    if not any(each.isalnum() for each in line) or "<" in line or len(line) > ESSAY * TITLE_CHARS:
        return None
    if len(line) <= TITLE_CHARS:
        return line
    words = line[:TITLE_CHARS].rpartition(" ")[0]  # without spaces it is cut inside a word
    return f"{(words or line[: TITLE_CHARS - 1]).rstrip(_END)}…"
