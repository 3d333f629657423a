"""What answering needs of searching, and of whoever can tell whether a passage bears a sentence out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from schemas.answer import Usage
from schemas.query import Question, Retrieved, Source


@dataclass(frozen=True)
class Claim:
    """A sentence of an answer, and the passages that it cites."""

    sentence: str
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class Verdicts:
    """For each claim the chance, 0..1, that its passages bear it out; None: no verdict. `failed`: why there is none."""

    chances: tuple[float | None, ...]
    usage: Usage | None = None
    failed: str = ""


# Tells whether passages (the premises) support sentences (the hypotheses): all sentences of one answer at once. It may
# raise anything; its caller limits its time.
Entails = Callable[[Sequence[Claim], Question], Awaitable[Verdicts]]


class Finder(Protocol):
    """Looks into the site's pages with a visitor's rights."""

    async def find(self, retrieved: Retrieved, query: str) -> tuple[Source, ...]:
        """The passages for another question than the one that was retrieved for, numbered from 1.

        Raises: UnknownSite, Retryable.
        """

    async def page(self, retrieved: Retrieved, name: str) -> tuple[Source, ...]:
        """The text of the page that fits the name best, numbered from 1; nothing if none does.

        Raises: UnknownSite, Retryable.
        """
