"""Examples: picks the worked examples that are most like a question, for a prompt.

    prompts/examples/KIND.*.yaml, a site's own ───────────┐
    operators' (added live; only those above the floor) ──┴─▶ cached vectors ─▶ no duplicates ─▶ shots, nearest last

KIND is `rephrase` or `answer`; KINDS has the differences. If choosing fails, the answer is written with the first
examples of the files.
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
KEPT_VECTORS = 4_000  # cached vectors of examples; 6 MB with the bundled embedder
SITES = 1_000  # sites whose examples are cached
BATCH = 16  # examples embedded at a time
READ = 1_000  # characters of an example and of a question to compare

_NO_CONVERSATION = "(none)"
_ENDS = ".!?。！？…"  # of a sentence


# Site -> operators' examples of both kinds, the oldest first. Raises: Retryable.
ExamplesOf = Callable[[str], Awaitable[list[WorkedExample]]]


@dataclass(frozen=True)
class ExampleStyle:
    """The differences between examples of rewritings and of answers.

    Args:
        shots: examples in a prompt.
        contrast: whether an example is of the rarer sort; a prompt needs both sorts.
        shown: (example, fence) -> (the prompt's variables, the model's output).
    """

    shots: int
    contrast: Callable[[Example], bool]
    shown: Callable[[WorkedExample, str], tuple[dict[str, str], str]]


def _left_alone(example: Example) -> bool:
    return stems(example.variables.get("question", "")) == stems(example.output)


def _rewriting(one: WorkedExample, token: str) -> tuple[dict[str, str], str]:
    return {"question": one.question}, one.output


def _answer(one: WorkedExample, token: str) -> tuple[dict[str, str], str]:
    given, output = [(source.title, source.text) for source in one.sources], one.output
    if not given:
        # An answer without a source would teach the model to answer from memory.
        given = [(one.question, one.output)]
        output = "\n".join(_marked(line) if line.strip() else line for line in output.split("\n"))
    sources = "\n".join(passage(token, n, title, text) for n, (title, text) in enumerate(given, start=1))
    return {"question": one.question, "asked": one.question, "sources": sources, "notes": ""}, output


def _marked(line: str) -> str:
    """The line with a citation before the full stop of its last sentence."""
    text = line.rstrip()
    words = text.rstrip(_ENDS)
    return f"{words} [1]{text[len(words) :]}"


KINDS: Mapping[ExampleKind, ExampleStyle] = {
    # After examples of rewritten questions only, a model rewrites every question.
    "rephrase": ExampleStyle(5, _left_alone, _rewriting),
    # After examples of answers only, a model answers where the sources have no answer.
    "answer": ExampleStyle(4, lambda example: example.declines, _answer),
}


class Examples:
    """Picks examples for questions. One per process."""

    def __init__(self, site_prompts: SitePrompts, kept: ExamplesOf, models: SearchEmbedders) -> None:
        self._prompts = site_prompts
        self._kept = kept
        self._models = models
        # Site -> (time of reading, examples). No TTLCache: if reading fails, the earlier examples stay in use.
        self._live: LRUCache[str, tuple[float, list[WorkedExample]]] = LRUCache(SITES)
        self._vectors = ExampleVectors()

    async def pick(self, kind: ExampleKind, request: Question, lang: str, question: str = "") -> Sequence[Example]:
        """Examples in the language (else in English), the one most like the question last.

        Args:
            lang: of the model's output.
            question: a self-contained question; default: the request's, together with its history.
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
        self._live[site] = monotonic(), live  # also after a failure, so that not every question waits
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
        """All examples of files and the operators' similar ones, the nearest first, each question once."""
        model = await self._models.for_site(request.site)
        pool = [*filed, *live]
        texts = [_compared(e.variables.get("conversation", ""), e.variables.get("question", "")) for e in pool]
        matrix = np.stack(await self._vectors.of(model, texts))
        earlier = "" if question else conversation(request.history[-1:], 2)
        likeness = (matrix @ await model.query(_compared(earlier, question or request.question))).tolist()
        # Below the embedder's floor an operator's example is about another subject.
        floors = [-np.inf] * len(filed) + [model.profile.example_floor] * len(live)
        each = zip(pool, texts, likeness, floors, strict=True)
        newest = {tuple(words(text)): (example, like, floor) for example, text, like, floor in each}
        best = sorted(newest.values(), key=lambda one: -one[1])
        return [example for example, like, floor in best if like >= floor]


class ExampleVectors:
    """A cache of vectors."""

    def __init__(self) -> None:
        self._kept: LRUCache[tuple[str, str], Matrix32] = LRUCache(KEPT_VECTORS)  # model, text -> its vector

    async def of(self, model: SearchEmbedder, texts: Sequence[str]) -> list[Matrix32]:
        """The vectors of these texts. Only uncached texts are embedded."""
        found = {text: self._kept.get((model.fingerprint, text)) for text in texts}
        missing = [text for text, vector in found.items() if vector is None]
        # Each batch is cached at once: after a timeout the next question finds these vectors.
        for batch in (missing[i : i + BATCH] for i in range(0, len(missing), BATCH)):
            # Copied, since a view of a row would keep the whole batch in memory.
            made = {text: row.copy() for text, row in zip(batch, await model.passages(batch), strict=True)}
            self._kept.update({(model.fingerprint, text): vector for text, vector in made.items()})
            found |= made
        return [vector for vector in map(found.get, texts) if vector is not None]


class ExampleComparison:
    """Finds the examples of its site that are like a new one, before an operator adds it. One per process."""

    def __init__(self, kept: ExamplesOf, models: SearchEmbedders) -> None:
        self._kept = kept
        self._models = models
        self._vectors = ExampleVectors()

    async def like(self, new: WorkedExample) -> LikeExamples:
        """The examples of its kind and language with the same words, or near enough to be used for its question.

        Without an embedder only the words are compared. Raises: Retryable: the examples cannot be read.
        """
        language = new.lang.partition("-")[0]
        others = [
            one for one in await self._kept(new.site) if one.kind == new.kind and one.lang.partition("-")[0] == language
        ]
        asked, texts = _comparable(new), [_comparable(one) for one in others]
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


def _comparable(one: WorkedExample) -> str:
    return _compared(conversation(one.history, 2 * len(one.history)), one.question)


def _compared(earlier: str, question: str) -> str:
    """The text to embed. The question is first, since embedders weigh the beginning most.

    The placeholder of an empty conversation is left out: it would make all questions without one alike.
    """
    return (question if earlier in ("", _NO_CONVERSATION) else f"{question}\n{earlier}")[:READ]


def _mixed(ranked: Sequence[Example], kind: ExampleStyle, shots: int) -> list[Example]:
    """The best examples, with at least one of each sort if there is room for two."""
    best = list(ranked[:shots])
    for wanted in (True, False) if shots > 1 else ():
        if not any(kind.contrast(example) is wanted for example in best):
            other = next((each for each in ranked[shots:] if kind.contrast(each) is wanted), None)
            if other is not None:
                best[-1] = other
    return best
