"""Translate: what we say ourselves, for visitors whose language we have no sentence in.

    sentence ─▶ protected: ⟦1⟧ for links, addresses, numbers, {names}, the site's terms ─▶ model
                            ─▶ every mark there, once ─▶ put back ─▶ said
                            └▶ not so ─▶ the sentence as it was

What the site's glossary has a name for in that language is said by that name, and else never translated.
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
KEPT = 500  # translations; there are some ten sentences a language
GROWTH = 3  # a translation is at most so many times as long, plus ROOM
ROOM = 60  # characters

# Links whole: their text is a page's title. Then addresses, placeholders, code, numbers.
_FIXED = re.compile(
    r"(?<!\\)!?\[(?:\\.|[^\[\]\\\n])*+\]\((?:<[^<>\n]*>|(?:[^()\n]|\([^()\n]*\))*+)\)|<?https?://[^\s>]+>?|\{[a-z_]+\}|`[^`\n]+`|\d[\d.,:]*\d|\d"
)
_MARK = re.compile(r"⟦\s*(\d+)\s*⟧")


def protected(text: str, glossary: Glossary, lang: str) -> tuple[str, list[str]]:
    """The text with marks, and what each of them stands for in the language."""
    terms = sorted((term for term in glossary if term), key=len, reverse=True)
    named = "|".join(rf"(?<!\w){re.escape(term)}(?!\w)" for term in terms)
    pattern = re.compile(f"{_FIXED.pattern}|{named}" if named else _FIXED.pattern)
    kept: list[str] = []

    def mark(match: re.Match[str]) -> str:
        kept.append(called(match.group(), glossary, lang))
        return f"⟦{len(kept)}⟧"

    return pattern.sub(mark, text.replace("⟦", "(").replace("⟧", ")")), kept


def restored(translation: str, kept: list[str]) -> str | None:
    """With what the marks stand for; None where one is missing, doubled or made up."""
    seen = Counter(int(number) for number in _MARK.findall(translation))
    if seen != Counter(range(1, len(kept) + 1)):
        return None
    return _MARK.sub(lambda match: kept[int(match[1]) - 1], translation)


class Translator:
    """Says our sentences in other languages. One per process."""

    def __init__(self, models: ChatModels, prompt: Prompt) -> None:
        self._models = models
        self._prompt = prompt
        # Marked text, language -> translation with its marks
        self._known: LRUCache[tuple[str, str], str] = LRUCache(KEPT)

    async def into(self, lang: str, language: str, text: str, glossary: Glossary, *, site: str) -> str:
        """The text in another language; as it is where that cannot be had, or cannot be trusted.

        Args:
            language: its name in English.
        """
        marked, kept = protected(text, glossary, lang)
        said = self._known.get((marked, lang))
        if said is None:
            said = await self._translated(marked, language, self._models.of(site, "translate"))
            whole = None if said is None else restored(said, kept)
            if said is None or whole is None or not _sound(said, marked):
                log.warning("not translated", language=language, failed="model" if said is None else "check")
                return text
            self._known[marked, lang] = said
        return restored(said, kept) or text

    async def _translated(self, marked: str, language: str, model: ChatModel) -> str | None:
        values = {"language": language, "fence": fence(marked), "text": marked}
        try:
            async with asyncio.timeout(PATIENCE):
                completion = await model.complete(self._prompt.messages(values, "en"), max_tokens=OUTPUT_TOKENS)
        except (PagewireError, TimeoutError) as err:
            log.warning("the model does not translate", error=repr(err))
            return None
        return None if completion.cut else html.unescape(completion.text).strip()


def _sound(translation: str, marked: str) -> bool:
    """Whether it can be a translation: neither empty nor an essay, as many paragraphs, no tags."""
    fits = 0 < len(translation) <= GROWTH * len(marked) + ROOM
    return fits and translation.count("\n\n") == marked.count("\n\n") and "<" not in _MARK.sub("", translation)
