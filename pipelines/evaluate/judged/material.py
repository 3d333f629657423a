"""What a judge reads of a case and its answer, between marks that no page can write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipelines.evaluate.dataset import Case
from pipelines.evaluate.measures import Passage

SOURCE_CHARS = 24_000  # of all sources of an answer together: about 6,000 tokens


def asked(case: Case) -> str:
    """The question, after what the visitor asked before it."""
    return "\n".join((*case.history, case.question))


def numbered(lines: Iterable[str]) -> str:
    """A line each, from 1 on."""
    return "\n".join(f"{n}: {' '.join(line.split())}" for n, line in enumerate(lines, 1))


def fenced(name: str, texts: Iterable[str], fence: str) -> str:
    """Texts, numbered from 1 on."""
    return "\n".join(f'<{name}-{fence} n="{n}">\n{text}\n</{name}-{fence}>' for n, text in enumerate(texts, 1))


def readable(sources: Sequence[Passage]) -> list[Passage]:
    """As many as a judge reads, in their order: the cited ones go before the others where it is too much."""
    left, kept = SOURCE_CHARS, set()
    for place, source in sorted(enumerate(sources), key=lambda each: not each[1].cited):
        if source.text and len(source.text) <= left:
            left -= len(source.text)
            kept.add(place)
    return [source for place, source in enumerate(sources) if place in kept]
