"""Canned: what a visitor reads when the gate lets no answer through. Nothing is invented.

The answer's model is not asked; the translator may be, to say the sentence in a language that we have no words in.
Strategies that search for themselves run whatever the gate says, and end here when they, too, find nothing.

grade 2..5 ─▶ a sentence in the visitor's language ─▶ the pages that come closest ─▶ how to reach somebody
courtesy ──▶ a sentence in the visitor's language
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from prompts.phrases import Phrases
from schemas.query import Grade, Retrieved, Source

CANDIDATES = 3  # pages
NAMES = {2: "unclear", 3: "several", 4: "not-answered", 5: "nothing-found"}

_SPECIAL = re.compile(r"([\\\[\]`*_<>])")


def refused(grade: Grade) -> bool:
    """Whether the gate says that there is nothing to answer from."""
    return grade in NAMES


def reply(retrieved: Retrieved, phrases: Phrases, contact: str = "", found: Sequence[Source] | None = None) -> str:
    """Markdown: what is missing, and links to the nearest pages.

    Args:
        contact: the site's own text how to reach somebody.
        found: the sources that there are by now; default: those that the gate knew.
    """
    lang = retrieved.request.lang
    sources = retrieved.sources if found is None else found
    name = NAMES.get(retrieved.grade, "nothing-found")
    if sources and (not refused(retrieved.grade) or sources != retrieved.sources):
        name = "not-answered"
    said = phrases.say(name, lang)
    pages = [f"- [{title}](<{url}>)" for title, url in candidates(sources)]
    nearest = "\n".join([phrases.say("see-pages", lang), "", *pages]) if pages else ""
    return "\n\n".join(part for part in (said, nearest, contact) if part)


def candidates(sources: Iterable[Source]) -> list[tuple[str, str]]:
    """Title, as Markdown, and address of the pages that come closest, each once."""
    pages = {source.url: " ".join(source.title.split()) or source.url for source in sources if _linkable(source.url)}
    return [(_SPECIAL.sub(r"\\\1", title), url) for url, title in pages.items()][:CANDIDATES]


def _linkable(url: str) -> bool:
    return url.startswith(("https://", "http://", "/")) and not re.search(r"[<>\s]", url)
