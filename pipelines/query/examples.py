"""Examples: the worked examples that are most like the question at hand go into a prompt.

    prompts/examples/KIND.*.yaml, a site's own ─┐
    operators', added live, near enough alone ──┴─▶ vectors, kept ─▶ no question twice ─▶ SHOTS of them, nearest last

KIND is `rephrase` or `answer`; what differs between them stands in KINDS. Whatever fails here costs a few well-chosen
examples, never an answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from time import monotonic

import numpy as np
import structlog
from cachetools import LRUCache

from pipelines.query.answer.prompt import passage
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.rephrase.rewrite import conversation
from pipelines.query.search.ports import SearchEmbedder, SearchEmbedders
from pipelines.runtime.embedder import Matrix32
from pipelines.runtime.errors import PagewireError
from prompts.loader import Example, fence
from schemas.example import ExampleKind, LikeExample, LikeExamples, WorkedExample
from schemas.query import HISTORY_MESSAGES, Question
from text.words import stems, words

log = structlog.get_logger(__name__)

REFRESH = 10.0  # seconds until an operator's new example is used
PATIENCE = 3.0  # seconds that choosing may take
COMPARE_PATIENCE = 10.0  # seconds that an operator waits for the examples like a new one
KEPT_VECTORS = 4_000  # of examples; 6 MB with the bundled embedder
SITES = 1_000  # whose examples are kept in mind
BATCH = 16  # examples embedded at a time
READ = 1_000  # characters of an example, and of a question, that are compared

_NOTHING_SAID = "(none)"
_ENDS = ".!?。！？…"  # of a sentence


# Operators' examples of a site, of both kinds, the oldest first. Raises: Retryable.
ExamplesOf = Callable[[str], Awaitable[list[WorkedExample]]]


@dataclass(frozen=True)
class ExampleStyle:
    """What differs between examples of rewritings and of answers.

    Args:
        shots: examples in a prompt.
        other: tells examples apart of which a prompt needs both sorts.
        shown: an operator's example as the prompt's variables, and what the model should have said.
    """

    shots: int
    other: Callable[[Example], bool]
    shown: Callable[[WorkedExample, str], tuple[dict[str, str], str]]


def _left_alone(example: Example) -> bool:
    return stems(example.variables.get("question", "")) == stems(example.output)


def _rewriting(one: WorkedExample, token: str) -> tuple[dict[str, str], str]:
    return {"question": one.question}, one.output


def _answer(one: WorkedExample, token: str) -> tuple[dict[str, str], str]:
    given, output = [(source.title, source.text) for source in one.sources], one.output
    if not given:
        # Shown without a source it would teach the model to answer from memory.
        given = [(one.question, one.output)]
        output = "\n".join(_marked(line) if line.strip() else line for line in output.split("\n"))
    sources = "\n".join(passage(token, n, title, text) for n, (title, text) in enumerate(given, start=1))
    return {"question": one.question, "asked": one.question, "sources": sources, "notes": ""}, output


def _marked(line: str) -> str:
    """With a citation before what ends its last sentence."""
    said = line.rstrip()
    words = said.rstrip(_ENDS)
    return f"{words} [1]{said[len(words) :]}"


KINDS: Mapping[ExampleKind, ExampleStyle] = {
    # A model that sees only rewritten questions rewrites every question.
    "rephrase": ExampleStyle(5, _left_alone, _rewriting),
    # A model that sees only answers finds one where there is none.
    "answer": ExampleStyle(4, lambda example: example.declines, _answer),
}


class Examples:
    """Picks examples for questions. One per process."""

    def __init__(self, site_prompts: SitePrompts, kept: ExamplesOf, models: SearchEmbedders) -> None:
        self._prompts = site_prompts
        self._kept = kept
        self._models = models
        # Site -> when read, what. No TTLCache: where reading fails, what was read before is used on.
        self._live: LRUCache[str, tuple[float, list[WorkedExample]]] = LRUCache(SITES)
        self._vectors = ExampleVectors()

    async def pick(self, kind: ExampleKind, request: Question, lang: str, question: str = "") -> Sequence[Example]:
        """Examples in the language (else in English), the one most like the question last.

        Args:
            lang: of what the model is to write.
            question: understandable by itself; default: the request's, with what was said before it.
        """
        chosen = list(await self._chosen(kind, request, lang, question))
        if kind == "answer" and request.trial is not None and request.trial.order is not None:
            Random(request.trial.order).shuffle(chosen)  # noqa: S311 - the same order for the same seed, no secret
        return chosen

    async def _chosen(self, kind: ExampleKind, request: Question, lang: str, question: str) -> Sequence[Example]:
        shots = KINDS[kind].shots
        if kind == "answer" and (most := request.under.examples) is not None:
            shots = most
        filed = self._prompts.asked(request, kind).examples_in(lang)
        if kind == "answer" and request.trial is not None and request.trial.shot_choice == "fixed":
            return filed[:shots]
        try:
            async with asyncio.timeout(PATIENCE):
                short = request.trial is not None and request.trial.short  # operators' examples are whole sentences
                live = [] if short else self._shown(kind, request, await self._of_site(request.site), lang)
                if not live and len(filed) <= shots:
                    return filed
                ranked = await self._ranked(request, question, filed, live)
        except (PagewireError, TimeoutError) as err:
            log.warning("examples are not chosen by likeness", kind=kind, error=repr(err))
            ranked = list(filed)
        return _mixed(ranked, KINDS[kind], shots)[::-1]

    async def _of_site(self, site: str) -> list[WorkedExample]:
        read_at, live = self._live.get(site, (-REFRESH, []))
        if monotonic() - read_at < REFRESH:
            return live
        try:
            live = await self._kept(site)
        except PagewireError as err:
            log.warning("the site's own examples cannot be read", code=err.code, error=str(err))
        self._live[site] = monotonic(), live  # also after a failure: every question would wait for it
        return live

    def _shown(self, kind: ExampleKind, request: Question, live: Iterable[WorkedExample], lang: str) -> list[Example]:
        language, token = lang.partition("-")[0], fence(request.request_id)
        examples = []
        for one in live:
            if one.kind == kind and one.lang.partition("-")[0] == language:
                variables, output = KINDS[kind].shown(one, token)
                variables["conversation"] = conversation(one.history, HISTORY_MESSAGES)
                examples.append(
                    Example(title=one.id, variables=variables, output=output, declines=one.declines, verbatim=True)
                )
        return examples

    async def _ranked(
        self, request: Question, question: str, filed: Sequence[Example], live: Sequence[Example]
    ) -> list[Example]:
        """The nearest first: of our files all, of the operators' those that are about the like; no question twice."""
        model = await self._models.for_site(request.site)
        pool = [*filed, *live]
        texts = [_compared(e.variables.get("conversation", ""), e.variables.get("question", "")) for e in pool]
        matrix = np.stack(await self._vectors.of(model, texts))
        said = "" if question else conversation(request.history[-1:], 2)
        likeness = (matrix @ await model.query(_compared(said, question or request.question))).tolist()
        # Below its floor an operator's example is about something else.
        floors = [-np.inf] * len(filed) + [model.profile.example_floor] * len(live)
        each = zip(pool, texts, likeness, floors, strict=True)
        newest = {tuple(words(text)): (example, like, floor) for example, text, like, floor in each}
        best = sorted(newest.values(), key=lambda one: -one[1])
        return [example for example, like, floor in best if like >= floor]


class ExampleVectors:
    """Vectors of what was compared, kept."""

    def __init__(self) -> None:
        self._kept: LRUCache[tuple[str, str], Matrix32] = LRUCache(KEPT_VECTORS)  # model, text -> its vector

    async def of(self, model: SearchEmbedder, texts: Sequence[str]) -> list[Matrix32]:
        """Only of those that are not known is the model asked."""
        found = {text: self._kept.get((model.fingerprint, text)) for text in texts}
        missing = [text for text, vector in found.items() if vector is None]
        # Batch by batch: what is known when the time is over need not be made for the next question.
        for batch in (missing[i : i + BATCH] for i in range(0, len(missing), BATCH)):
            # A row of a batch would keep the whole batch in memory.
            made = {text: row.copy() for text, row in zip(batch, await model.passages(batch), strict=True)}
            self._kept.update({(model.fingerprint, text): vector for text, vector in made.items()})
            found |= made
        return [vector for vector in map(found.get, texts) if vector is not None]


class ExampleComparison:
    """Says which examples of its site a new one is like, before it is added. One per process."""

    def __init__(self, kept: ExamplesOf, models: SearchEmbedders) -> None:
        self._kept = kept
        self._models = models
        self._vectors = ExampleVectors()

    async def like(self, new: WorkedExample) -> LikeExamples:
        """Those of its kind and language that would be used for its question, and those that ask in the same words.

        Raises: Retryable: the examples cannot be read. Without a model the words alone are compared.
        """
        language = new.lang.partition("-")[0]
        others = [
            one for one in await self._kept(new.site) if one.kind == new.kind and one.lang.partition("-")[0] == language
        ]
        asked, texts = _said(new), [_said(one) for one in others]
        least: float | None = None
        cosines: list[float | None] = [None] * len(others)
        try:
            async with asyncio.timeout(COMPARE_PATIENCE):
                model = await self._models.for_site(new.site)
                matrix = await self._vectors.of(model, texts)
                if matrix:
                    cosines = (np.stack(matrix) @ await model.query(asked)).tolist()
                least = model.profile.example_floor
        except (PagewireError, TimeoutError) as err:
            log.warning("examples are compared by their words alone", error=repr(err))
        found = [
            LikeExample(
                example=one,
                cosine=None if cosine is None else round(cosine, 4),
                same=tuple(words(text)) == tuple(words(asked)),
                replaced=one.id == new.id,
            )
            for one, text, cosine in zip(others, texts, cosines, strict=True)
        ]
        floor = np.inf if least is None else least
        near = [one for one in found if one.same or (one.cosine is not None and one.cosine >= floor)]
        return LikeExamples(like=tuple(sorted(near, key=lambda one: (-(one.cosine or 0), not one.same))), least=least)


def _said(one: WorkedExample) -> str:
    return _compared(conversation(one.history, 2 * len(one.history)), one.question)


def _compared(said: str, question: str) -> str:
    """The question first: it counts most, and models look most at the beginning.

    The words for an empty conversation would make all questions without one alike.
    """
    return (question if said in ("", _NOTHING_SAID) else f"{question}\n{said}")[:READ]


def _mixed(ranked: Sequence[Example], kind: ExampleStyle, shots: int) -> list[Example]:
    """The best, but always one of each sort where there is room for two."""
    best = list(ranked[:shots])
    for wanted in (True, False) if shots > 1 else ():
        if not any(kind.other(example) is wanted for example in best):
            other = next((each for each in ranked[shots:] if kind.other(each) is wanted), None)
            if other is not None:
                best[-1] = other
    return best
