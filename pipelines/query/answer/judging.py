"""Judging: a model checks whether the cited passages support a sentence that the rules (grounding) have passed.

    finished answer ─▶ all its sentences with citations, in one call ─▶ Entails
         refuted ─▶ the answer is restarted without these sentences
         late, away, unclear ─▶ the rules alone count

Visitors read the answer meanwhile: the judge delays its end by a few seconds at most, never its text.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import structlog

from pipelines.query.answer.grounding import Doubt
from pipelines.query.answer.prompt import fenced
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.ports import ChatModels
from pipelines.query.search.ports import Reranker
from pipelines.query.search.widen import fit
from prompts.loader import fence
from schemas.answer import Usage
from schemas.query import Question, Source
from text.sentences import split
from text.words import words

log = structlog.get_logger(__name__)

LEAST_WORDS = 3  # of a sentence; shorter ones are headings and list items that say nothing by themselves
MOST_CLAIMS = 20  # of one answer
VERDICT_TOKENS = 8  # of one sentence
PREMISE_CHARS = 8_000  # of all passages together, as the model reads them
WINDOW = 1_000  # characters of a passage that a cross-encoder reads at once; it has 512 tokens for both
SECONDS = 4.0  # that a judge may take for an answer; then the rules alone count
LEAST_TIME = 0.2  # seconds; with less it is not asked

_VERDICT = re.compile(r"^[^\w\n]*(?P<n>\d+)\W+(?P<word>yes|no)\b", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class Claim:
    """A sentence of an answer, and the passages that it cites."""

    sentence: str
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class Verdicts:
    """For each claim the chance, 0..1, that its passages support it; None without a verdict. `failed`: the reason."""

    chances: tuple[float | None, ...]
    usage: Usage | None = None
    failed: str = ""


# Decides whether passages (premises) support sentences (hypotheses): all sentences of an answer in one call. It may
# raise any exception; the caller limits its time.
Entails = Callable[[Sequence[Claim], Question], Awaitable[Verdicts]]


# (Markdown of a sentence, numbers that it cites) -> a doubt, or None.
Check = Callable[[str, Iterable[int]], Doubt | None]


@dataclass(frozen=True)
class Judge:
    """A judge. `least`: least chance of a supported sentence; `seconds`: time limit for one answer."""

    entails: Entails
    least: float
    seconds: float = SECONDS

    async def refuted(
        self, stated: Sequence[tuple[str, tuple[int, ...]]], sources: Sequence[Source], request: Question, left: float
    ) -> tuple[frozenset[str], Verdicts]:
        """The sentences that their sources do not support; none if the judge fails or is late.

        Args:
            stated: sentences with the numbers that they cite.
            left: seconds until the answer must be finished.
        """
        numbered = {source.n: source for source in sources}
        claims = [
            Claim(said, tuple(numbered[n] for n in dict.fromkeys(cited) if n in numbered))
            for said, cited in stated
            if len(words(said)) >= LEAST_WORDS
        ]
        claims = [claim for claim in claims if claim.sources][:MOST_CLAIMS]
        seconds = min(self.seconds, left)
        if not claims or seconds < LEAST_TIME:
            return frozenset(), Verdicts(())
        try:
            async with asyncio.timeout(seconds):
                verdicts = await self.entails(claims, request)
        except Exception as err:  # noqa: BLE001 - whatever a judge dies of, the answer is there
            log.warning("not judged", error=type(err).__name__, seconds=round(seconds, 1))
            return frozenset(), Verdicts((), failed=type(err).__name__)
        pairs = zip(claims, verdicts.chances, strict=False)
        return frozenset(c.sentence for c, chance in pairs if chance is not None and chance < self.least), verdicts


class Refuted:
    """The rules together with a judge's verdicts."""

    def __init__(self, rules: Check, refuted: frozenset[str]) -> None:
        self._rules = rules
        self._refuted = refuted

    def doubt(self, markdown: str, cited: Iterable[int]) -> Doubt | None:
        if markdown in self._refuted:
            return Doubt("entailment", markdown)
        return self._rules(markdown, cited)


class ModelJudge:
    """The chat model as judge, in one call for all sentences of an answer. Its chances are 0 or 1."""

    def __init__(self, models: ChatModels, site_prompts: SitePrompts) -> None:
        self._models = models
        self._site_prompts = site_prompts

    async def entailed(self, claims: Sequence[Claim], request: Question) -> Verdicts:
        """Raises: ModelError."""
        sources = {source.n: source for claim in claims for source in claim.sources}
        token = fence(request.request_id)
        statements = [
            f"{i}: {' '.join(claim.sentence.split())} {''.join(f'[{source.n}]' for source in claim.sources)}"
            for i, claim in enumerate(claims, 1)
        ]
        values = {
            "fence": token,
            "sources": fenced(fit([sources[n] for n in sorted(sources)], PREMISE_CHARS), token),
            "statements": "\n".join(statements),
        }
        messages = self._site_prompts.asked(request, "judge").messages(values, "en")
        model = self._models.of(request.site, "judge", request.request_id)
        said = await model.complete(messages, max_tokens=VERDICT_TOKENS * (len(claims) + 1))
        return Verdicts(tuple(_verdicts(said.text, len(claims))), said.usage)


class RerankerJudge:
    """A cross-encoder as judge: it reads sentence and passage together, and the best passage counts."""

    def __init__(self, reranker: Reranker) -> None:
        self._reranker = reranker

    async def entailed(self, claims: Sequence[Claim], request: Question) -> Verdicts:
        """Raises: Permanent."""
        found: list[float] = []
        for claim in claims:
            windows = [window for source in claim.sources for window in _windows(source)]
            found.append(max(await self._reranker.scores(claim.sentence, windows), default=1.0))
        return Verdicts(tuple(found))


def _verdicts(text: str, count: int) -> Iterable[float | None]:
    said: Mapping[int, str] = {int(match["n"]): match["word"].lower() for match in _VERDICT.finditer(text)}
    return ({"yes": 1.0, "no": 0.0}.get(said.get(i, "")) for i in range(1, count + 1))


def _windows(source: Source) -> list[str]:
    """The passage in pieces of whole sentences, each below the page's title."""
    stretches = [""]
    for each in split(source.text, source.lang):
        sentence = source.text[each.start : each.end]
        if stretches[-1] and len(stretches[-1]) + len(sentence) > WINDOW:
            stretches.append("")
        stretches[-1] = f"{stretches[-1]} {sentence}".strip()
    head = "\n".join(filter(None, [source.title, source.heading]))
    return [f"{head}\n{stretch}" for stretch in stretches if stretch]
