"""Citations: how many false sentences the check of a model's citations finds, and how many true ones it doubts.

bench/citations.yaml, claims.yaml: sentences, each with the passage it cites ─▶ judged ─▶ precision, recall of "not
borne out"

With `--judge` what the rules leave is asked of a judge as well (pipelines.query.answer.judging): the chat model or the
reranker of the settings.

The set is split by a seed into a half to tune on and a half to report, passage by passage: of the latter only sums are
shown. Before there was a check, every sentence passed: recall 0.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer
import yaml
from pydantic import BaseModel, ConfigDict, Field

from adapters.reranker import make_reranker
from bench.report import RESAMPLES, question, report
from cli.output import explained
from pipelines.query.answer.grounding import Doubt, Grounds
from pipelines.query.answer.judging import Judge
from pipelines.query.live.site_prompts import SitePrompts
from pipelines.query.token_budget import TokenBudget
from pipelines.runtime.errors import SettingsError
from pipelines.runtime.settings import JudgeName
from schemas.query import Source
from wiring.query import chat_models, judges
from wiring.settings_file import load

SETS: Mapping[str, Path] = {
    name: Path(__file__).parent / f"{name}.yaml" for name in ("citations", "claims", "claims_wide", "claims_blind")
}
LANGUAGES = ("de", "en")  # the others are too few for a line of their own
SEED = 20_261_123  # of the split; another one would let tuned sentences into the reported half

Part = Literal["tune", "report", "all"]
Set = Literal["citations", "claims", "claims_wide", "claims_blind"]
Fault = Literal["number", "unit", "date", "time", "name", "negation", "swap"]


class Passage(BaseModel):
    """A passage, and what a model might say of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    lang: str  # of the sentences
    source_lang: str | None = None  # of the passage, where it is another
    question: str
    passage: str
    borne_out: tuple[str, ...] = Field(min_length=1)
    not_borne_out: tuple[Annotated[dict[Fault, str], Field(min_length=1, max_length=1)], ...] = Field(min_length=1)

    @property
    def group(self) -> str:
        return self.lang if self.lang in LANGUAGES and self.source_lang is None else "other"

    @property
    def source(self) -> Source:
        """The passage, as a model is given it."""
        return Source(
            n=1, page_id="page", lang=self.source_lang or self.lang, title="", url="", field="content", ord=0,
            text=self.passage, score=1.0, cosine=None, revision=1,
        )  # fmt: skip


@dataclass(frozen=True)
class Judged:
    """One sentence: whether it is true, and what the check said of it."""

    group: str
    sentence: str
    fault: Fault | None
    doubt: Doubt | None


def passages(of: Set = "citations") -> list[Passage]:
    """All of a set. Raises: ValidationError."""
    return [Passage.model_validate(each) for each in yaml.safe_load(SETS[of].read_text(encoding="utf-8"))]


def part_of(every: Sequence[Passage], part: Part) -> list[Passage]:
    """Half of the passages of each group of languages is reported, by the seed."""
    if part == "all":
        return list(every)
    rng = random.Random(SEED)
    reported: set[str] = set()
    for group in (*LANGUAGES, "other"):
        texts = sorted(each.passage for each in every if each.group == group)
        reported.update(rng.sample(texts, len(texts) // 2))
    return [each for each in every if (each.passage in reported) == (part == "report")]


def judged(each: Passage) -> Iterator[Judged]:
    """The sentences of one passage, each cited as its source."""
    grounds = Grounds([each.source], each.question, each.lang)
    for sentence in each.borne_out:
        yield Judged(each.group, sentence, None, grounds.doubt(sentence, [1]))
    for faulty in each.not_borne_out:
        for fault, sentence in faulty.items():
            yield Judged(each.group, sentence, fault, grounds.doubt(sentence, [1]))


async def asked(each: Passage, ruled: Sequence[Judged], judge: Judge) -> tuple[list[Judged], bool]:
    """What the rules have not doubted is judged, as the sentences of one answer; and whether there was a verdict."""
    left = [one.sentence for one in ruled if one.doubt is None]
    request = question("bench", each.lang, each.question, judge.seconds)
    refuted, verdicts = await judge.refuted([(said, (1,)) for said in left], [each.source], request, judge.seconds)
    found = [
        replace(one, doubt=Doubt("entailment", one.sentence)) if one.doubt is None and one.sentence in refuted else one
        for one in ruled
    ]
    return found, not verdicts.failed


@asynccontextmanager
async def judge_of(name: JudgeName) -> AsyncIterator[Judge | None]:
    """The judge that the settings make. Raises: SettingsError: there is none of this name."""
    if name == "none":
        yield None
        return
    settings, prompts = load(), SitePrompts()
    models = chat_models(settings, TokenBudget(settings)) if name == "model" else None
    reranker = make_reranker(settings.reranker, settings.nice) if name == "reranker" else None
    if models is None and reranker is None:
        raise SettingsError(f"--judge {name}: PAGEWIRE_{'LLM_MODEL' if name == 'model' else 'RERANKER'} names none")
    try:
        if reranker is not None:
            await reranker.start()
        yield judges(settings, models, reranker, prompts)[name]
    finally:
        for each in (models, reranker):
            if each is not None:
                await each.aclose()


def main(
    part: Annotated[
        Part, typer.Option(help="`tune` to look at, `report` to report (its single sentences are not shown), or `all`.")
    ] = "report",
    show: Annotated[bool, typer.Option("--show", help="Print the sentences that were judged wrongly.")] = False,
    judge: Annotated[
        JudgeName, typer.Option(help="Asked beside the rules: `none`, the `model` or the `reranker` of the settings.")
    ] = "none",
    of: Annotated[
        Set, typer.Option(help="`citations`; `claims`: ordinary paraphrases; `claims_blind`: by another author.")
    ] = "citations",
) -> None:
    """True and false sentences against the passages they cite: which are found not to be borne out. Needs no system."""
    with explained():
        asyncio.run(_main(of, part, show, judge))


async def _main(of: Set, part: Part, show: bool, name: JudgeName) -> None:
    found: list[Judged] = []
    silent = 0
    async with judge_of(name) as judge:
        for each in part_of(passages(of), part):
            ruled = list(judged(each))
            if judge is not None:
                ruled, spoke = await asked(each, ruled, judge)
                silent += not spoke
            found += ruled
    by = "" if name == "none" else f", by the rules and the {name} (no verdict on {silent} passages)"
    about = f"{len(found)} sentences ({part}){by}, and which of them are found not to be borne out by their source"
    report(
        of if name == "none" else f"{of}-{name}",
        about,
        COLUMNS,
        list(_lines(found)),
        part=part,
        seed=SEED,
        judge=name,
    )
    if show and part == "tune":
        for one in found:
            if (one.fault is None) == (one.doubt is not None):
                print(f"{one.fault or 'true':9} {one.doubt!s:60} {one.sentence}")


COLUMNS = ("of", "true", "false", "recall", "95 %", "precision", "95 % ", "true ones doubted")


def _lines(found: Sequence[Judged]) -> Iterator[tuple[object, ...]]:
    yield ("before: nothing is checked", *_counts(found), 0.0, "0.00-0.00", "", "", 0.0)
    yield _line("all", found)
    for group in (*LANGUAGES, "other"):
        yield _line(f"in {group if group != 'other' else 'other languages'}", [f for f in found if f.group == group])
    for fault in sorted({one.fault for one in found if one.fault}):
        some = [one for one in found if one.fault == fault]
        low, high = _interval(some, _recall)
        yield (f"  {fault}", 0, len(some), _recall(some), f"{low:.2f}-{high:.2f}", "", "", "")


def _line(name: str, found: Sequence[Judged]) -> tuple[object, ...]:
    low, high = _interval(found, _recall)
    least, most = _interval(found, _precision)
    true = [one for one in found if one.fault is None]
    doubted = sum(one.doubt is not None for one in true) / len(true)
    return (
        name,
        *_counts(found),
        _recall(found),
        f"{low:.2f}-{high:.2f}",
        _precision(found),
        f"{least:.2f}-{most:.2f}",
        doubted,
    )


def _counts(found: Sequence[Judged]) -> tuple[int, int]:
    false = sum(one.fault is not None for one in found)
    return len(found) - false, false


def _recall(found: Sequence[Judged]) -> float:
    doubted = [one.doubt is not None for one in found if one.fault is not None]
    return sum(doubted) / len(doubted) if doubted else 0.0


def _precision(found: Sequence[Judged]) -> float:
    right = [one.fault is not None for one in found if one.doubt is not None]
    return sum(right) / len(right) if right else 0.0


def _interval(found: Sequence[Judged], figure: Callable[[Sequence[Judged]], float]) -> tuple[float, float]:
    """95 % bootstrap over the sentences (Efron, 1979)."""
    rng = np.random.default_rng(7)
    drawn = [figure([found[i] for i in rng.integers(len(found), size=len(found))]) for _ in range(RESAMPLES)]
    return float(np.percentile(drawn, 2.5)), float(np.percentile(drawn, 97.5))
