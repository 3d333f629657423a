"""Examples: the worked examples that are most like the question at hand go into its prompt.

    prompts/examples/rephrase.*.yaml ─┐
    operators' own, added live ───────┴─▶ vectors, kept ─▶ nearest to the question ─▶ SHOTS examples, nearest last

Whatever fails here costs a few well-chosen examples, never an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import monotonic
from typing import Protocol

import numpy as np
import structlog
from cachetools import LRUCache

from pipelines.query.rephrase.rewrite import conversation
from pipelines.query.site_prompts import SitePrompts
from pipelines.runtime.embedder import Embedder, Matrix32, SiteEmbedders
from pipelines.runtime.errors import PagewireError
from prompts.loader import Example
from schemas.example import RephraseExample
from schemas.query import Question
from text.words import stems

log = structlog.get_logger(__name__)

SHOTS = 5
REFRESH = 10.0  # seconds until an operator's new example is used
KEPT_VECTORS = 4_000  # of examples; 6 MB with the bundled embedder
READ = 1_000  # characters of an example, and of a question, that are compared


class ExampleStore(Protocol):
    """Operators' examples (adapters.elastic.examples)."""

    async def of_site(self, site: str) -> list[RephraseExample]:
        """Raises: Retryable."""
        ...


class Examples:
    """Picks examples for questions. One per process.

    Args:
        history_messages: of a conversation shown in a prompt.
    """

    def __init__(
        self, site_prompts: SitePrompts, store: ExampleStore, models: SiteEmbedders, history_messages: int
    ) -> None:
        self._prompts = site_prompts
        self._store = store
        self._models = models
        self._history_messages = history_messages
        # Site -> when read, what. No TTLCache: where reading fails, what was read before is used on.
        self._live: dict[str, tuple[float, list[RephraseExample]]] = {}
        self._vectors: LRUCache[tuple[str, str], Matrix32] = LRUCache(KEPT_VECTORS)  # model, text -> its vector

    async def pick(self, request: Question, lang: str) -> Sequence[Example]:
        """At most SHOTS examples in the language (else in English), the one most like the question last.

        Args:
            lang: the site's.
        """
        prompt = self._prompts.of(request.site).prompts["rephrase"]
        pool = [*prompt.examples_in(lang), *self._shown(await self._of_site(request.site), lang)]
        if len(pool) <= SHOTS:
            return pool
        try:
            ranked = await self._ranked(request, pool)
        except PagewireError as err:
            log.warning("examples are not chosen by likeness", code=err.code, error=str(err))
            ranked = pool
        return _mixed(ranked)[::-1]

    async def _of_site(self, site: str) -> list[RephraseExample]:
        read_at, live = self._live.get(site, (-REFRESH, []))
        if monotonic() - read_at < REFRESH:
            return live
        try:
            live = await self._store.of_site(site)
        except PagewireError as err:
            log.warning("the site's own examples cannot be read", code=err.code, error=str(err))
        self._live[site] = monotonic(), live  # also after a failure: every question would wait for it
        return live

    def _shown(self, live: Iterable[RephraseExample], lang: str) -> list[Example]:
        language = lang.partition("-")[0]
        return [
            Example(
                title=one.id,
                variables={
                    "conversation": conversation(one.history, self._history_messages),
                    "question": one.question,
                },
                output=one.output,
            )
            for one in live
            if one.lang.partition("-")[0] == language
        ]

    async def _ranked(self, request: Question, pool: Sequence[Example]) -> list[Example]:
        model = await self._models.for_site(request.site)
        texts = [_compared(e.variables.get("conversation", ""), e.variables.get("question", "")) for e in pool]
        matrix = np.stack(await self._embedded(model, texts))
        asked = _compared(conversation(request.history[-1:], 2), request.question)
        likeness = matrix @ await model.query(asked)
        return [pool[i] for i in np.argsort(-likeness, kind="stable")]

    async def _embedded(self, model: Embedder, texts: Sequence[str]) -> list[Matrix32]:
        """Their vectors; only of those that are not known is the model asked."""
        known = {text: self._vectors.get((model.fingerprint, text)) for text in texts}
        missing = [text for text, vector in known.items() if vector is None]
        made = await model.passages(missing) if missing else ()
        # A row of a batch would keep the whole batch in memory.
        fresh = {text: vector.copy() for text, vector in zip(missing, made, strict=True)}
        self._vectors.update({(model.fingerprint, text): vector for text, vector in fresh.items()})
        found = {text: vector for text, vector in known.items() if vector is not None} | fresh
        return [found[text] for text in texts]


def _compared(said: str, question: str) -> str:
    """The question first: it counts most, and models look most at the beginning."""
    return f"{question}\n{said}"[:READ]


def _mixed(ranked: Sequence[Example]) -> list[Example]:
    """The best, but always one whose question is left alone and one whose question is not.

    A model that sees only rewritten questions rewrites every question.
    """
    best = list(ranked[:SHOTS])
    for wanted in (True, False):
        if not any(_left_alone(example) is wanted for example in best):
            other = next((example for example in ranked[SHOTS:] if _left_alone(example) is wanted), None)
            if other is not None:
                best[-1] = other
    return best


def _left_alone(example: Example) -> bool:
    return stems(example.variables.get("question", "")) == stems(example.output)
