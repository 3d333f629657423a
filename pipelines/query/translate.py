"""Translate: our fixed sentences, for visitors in whose language we have none.

    sentence ─▶ protected: ⟦1⟧ for links, addresses, numbers, {names}, the site's terms ─▶ model
                            ─▶ every mark is there once ─▶ restored: marks replaced ─▶ translation
                            └▶ else ─▶ the original sentence

A term of the site's glossary is replaced by its name in the language; without one it stays as it is.
"""

from __future__ import annotations

import asyncio
import html
import re
from collections import Counter

import structlog
from cachetools import LRUCache

from pipelines.query.live.glossary import Glossary, called
from pipelines.query.ports import ChatModel, ChatModels
from pipelines.runtime.errors import PagewireError
from prompts.loader import Prompt, fence

log = structlog.get_logger(__name__)

PATIENCE = 8.0  # seconds
OUTPUT_TOKENS = 600
KEPT = 500  # cached translations; a language has about ten sentences
GROWTH = 3  # a translation is at most so many times as long as the sentence, plus ROOM
ROOM = 60  # characters

# Whole links, since their text is a page's title; addresses, placeholders, code, numbers.
_FIXED = re.compile(
    r"(?<!\\)!?\[(?:\\.|[^\[\]\\\n])*+\]\((?:<[^<>\n]*>|(?:[^()\n]|\([^()\n]*\))*+)\)|<?https?://[^\s>]+>?|\{[a-z_]+\}|`[^`\n]+`|\d[\d.,:]*\d|\d"
)
_MARK = re.compile(r"⟦\s*(\d+)\s*⟧")


def protected(text: str, glossary: Glossary, lang: str) -> tuple[str, list[str]]:
    """The text with marks, and the text of each mark in the language."""
    terms = sorted((term for term in glossary if term), key=len, reverse=True)
    named = "|".join(rf"(?<!\w){re.escape(term)}(?!\w)" for term in terms)
    pattern = re.compile(f"{_FIXED.pattern}|{named}" if named else _FIXED.pattern)
    kept: list[str] = []

    def mark(match: re.Match[str]) -> str:
        kept.append(called(match.group(), glossary, lang))
        return f"⟦{len(kept)}⟧"

    return pattern.sub(mark, text.replace("⟦", "(").replace("⟧", ")")), kept


def restored(translation: str, kept: list[str]) -> str | None:
    """The translation with the texts of the marks; None if a mark is missing, doubled or made up."""
    seen = Counter(int(number) for number in _MARK.findall(translation))
    if seen != Counter(range(1, len(kept) + 1)):
        return None
    return _MARK.sub(lambda match: kept[int(match[1]) - 1], translation)


class Translator:
    """Translates our sentences. One per process."""

    def __init__(self, models: ChatModels, prompt: Prompt) -> None:
        self._models = models
        self._prompt = prompt
        # Marked text, language -> translation with its marks
        self._cache: LRUCache[tuple[str, str], str] = LRUCache(KEPT)

    async def into(self, lang: str, language: str, text: str, glossary: Glossary, *, site: str) -> str:
        """The text in another language; unchanged if the model fails or the translation does not pass the checks.

        Args:
            language: its name in English.
        """
        marked, kept = protected(text, glossary, lang)
        translation = self._cache.get((marked, lang))
        if translation is None:
            translation = await self._translated(marked, language, self._models.of(site, "translate"))
            whole = None if translation is None else restored(translation, kept)
            if translation is None or whole is None or not _plausible(translation, marked):
                log.warning("not translated", language=language, failed="model" if translation is None else "check")
                return text
            self._cache[marked, lang] = translation
        return restored(translation, kept) or text

    async def _translated(self, marked: str, language: str, model: ChatModel) -> str | None:
        values = {"language": language, "fence": fence(marked), "text": marked}
        try:
            async with asyncio.timeout(PATIENCE):
                completion = await model.complete(self._prompt.messages(values, "en"), max_tokens=OUTPUT_TOKENS)
        except (PagewireError, TimeoutError) as err:
            log.warning("the model does not translate", error=repr(err))
            return None
        return None if completion.cut else html.unescape(completion.text).strip()


def _plausible(translation: str, marked: str) -> bool:
    """Whether it looks like a translation: neither empty nor much longer, as many paragraphs, no tags."""
    fits = 0 < len(translation) <= GROWTH * len(marked) + ROOM
    return fits and translation.count("\n\n") == marked.count("\n\n") and "<" not in _MARK.sub("", translation)
