"""Late interaction behind the search: MaxSim of the question's token vectors over those of the best hits.

    question ─▶ hybrid search ─▶ the best hits ─▶ token vectors of the model's last layer ─▶ MaxSim ─▶ order of pages

MaxSim (ColBERT: Khattab and Zaharia, 2020, arXiv 2004.12832) is the mean, over the question's tokens, of the highest
cosine to a token of the passage. A page counts by its best chunk. The weight of MaxSim beside the hybrid score is
chosen on half of the questions, by a seed; all figures are of the other half.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import process_time
from typing import Annotated, Any, cast

import numpy as np
import typer
from numpy.typing import NDArray
from rich.progress import track

from adapters.elastic.bundle import Elastic
from adapters.embedders.e5.model import E5Model
from adapters.embedders.lite import DIMS, LiteEmbedder, weights_file
from adapters.embedders.registry import make_embedder
from bench.given import Data, names
from bench.quality import site_of, together
from bench.report import interval, paired_interval, report
from bench.retrieval import _asked as question
from bench.servers import servers
from bench.system import home
from bench.vectors import KeptVectors
from bench.visitors import LANGUAGES, ROOTS, cases
from bench.website import OneModel, publish
from bench.xquad import load
from pipelines.query.extractive.confidence import UNCLEAR
from pipelines.query.retrieve.retrieve import retrieve
from pipelines.query.search.fuse import standing
from pipelines.query.search.search import Retrieval, Searcher
from schemas.page import PageDocument
from sites.content import page_documents
from wiring.settings import Settings
from wiring.settings_file import load as load_settings

BEST = 20  # hits whose pages are ordered
SEED = 20_261_128
WEIGHTS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)  # beside the hybrid score, both in standard deviations
STAGE_WEIGHTS = (0.5, 1.0, 4.0)
SPREAD = 0.003  # least standard deviation of MaxSim

Floats = NDArray[np.float32]
KINDS = ("floats", "bits of passages", "bits")  # the vectors: as they are; one bit a component


@dataclass(frozen=True)
class Asked:
    question: str
    right: frozenset[str]  # pages
    lang: str | None = None


@dataclass(frozen=True)
class Seen:
    """The hits of a question: of each its page and score, and for content MaxSim by each of `KINDS`."""

    right: frozenset[str]
    pages: list[str]
    scores: list[float]
    similar: Mapping[str, list[Floats | None]]  # of each token of the question

    def first(self, kind: str, weight: float | None) -> bool:
        """Whether a right page is first. `weight` 0: by the hybrid score alone; None: by MaxSim alone."""
        content = {place: float(each.mean()) for place, each in enumerate(self.similar[kind]) if each is not None}
        if not self.pages or not content:
            return bool(self.pages) and self.pages[0] in self.right
        values = np.array([*content.values()])
        spread = max(float(values.std()), SPREAD)
        least = float(values.min())
        best: dict[str, tuple[float, float]] = {}
        for place, page in enumerate(self.pages):
            hybrid, similar = best.get(page, (-np.inf, -np.inf))
            own = (content.get(place, least) - float(values.mean())) / spread
            best[page] = max(hybrid, standing(self.scores[place])), max(similar, own)
        order = {page: own if weight is None else hybrid + weight * own for page, (hybrid, own) in best.items()}
        return max(order, key=order.__getitem__) in self.right  # the first of equals


class TokenVectors:
    """Token vectors by the bundled model, of each text once; and their price."""

    def __init__(self) -> None:
        self._model = E5Model(weights_file(), "row8")
        self.known: dict[str, tuple[Floats, Floats]] = {}
        self.centre: Floats = np.zeros(DIMS, np.float32)
        self.seconds, self.tokens = 0.0, 0

    def passage(self, text: str) -> tuple[Floats, Floats]:
        """Cosines' side of a passage: its unit vectors, and the signs of its centred ones."""
        if text not in self.known:
            began = process_time()
            made = self._tokens(LiteEmbedder.before_passage, text)
            self.seconds += process_time() - began
            self.tokens += len(made)
            self.known[text] = _unit(made).astype(np.float16), np.sign(made - self.centre).astype(np.int8)
        return self.known[text]

    def question(self, text: str) -> tuple[Floats, Floats]:
        """Its unit vectors, and its centred ones."""
        made = self._tokens(LiteEmbedder.before_query, text)
        return _unit(made), made - self.centre

    def centre_on(self, texts: Sequence[str]) -> None:
        """Take the mean of the texts' token vectors for the component that all have in common."""
        self.centre = np.concatenate([self._tokens(LiteEmbedder.before_passage, text) for text in texts]).mean(axis=0)

    def _tokens(self, before: str, text: str) -> Floats:
        """Of the text's first window, without the prefix and the tokens of begin and end: shape (tokens, 384)."""
        [window, *_] = self._model.read(before + text)
        made = self._model.tokens(window)
        return made[len(self._model.read(before.strip())[0]) - 1 : -1] if len(window) > 4 else made

    def similar(self, question: tuple[Floats, Floats], text: str) -> dict[str, Floats]:
        """For each of the question's tokens the highest similarity, by each of `KINDS`."""
        (unit, centred), (own, signs) = question, self.passage(text)
        centred, signs = _unit(centred), signs.astype(np.float32) / np.sqrt(signs.shape[1])
        ways = ((unit, own.astype(np.float32)), (centred, signs), (np.sign(centred) / np.sqrt(len(centred[0])), signs))
        return {kind: (one @ other.T).max(axis=1) for kind, (one, other) in zip(KINDS, ways, strict=True)}


def _unit(vectors: Floats) -> Floats:
    unit: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def main(
    data: Data,
    sets: Annotated[
        str, typer.Option(help="Comma-separated: XQuAD's `LANG` or `ASKED:PAGES`, and `demo`, `radhaus`.")
    ] = "en,de,de:en,ro,ar,zh,th,demo,radhaus",
    part: Annotated[float, typer.Option(help="Share of XQuAD's questions, by chance.")] = 1.0,
    stage: Annotated[bool, typer.Option("--stage", help="The first source after the whole retrieve stage.")] = False,
) -> None:
    """Right page first: the hybrid search, and with MaxSim of token vectors beside it or in its place."""
    kept = load_settings().home / "bench"
    with home(sorted({_site(name) for name in names(sets)}), LANGUAGES) as settings:
        asyncio.run(_run(data, names(sets), part, stage, kept, settings))


async def _run(data: Path, sets: Sequence[str], part: float, stage: bool, kept: Path, settings: Settings) -> None:
    found: dict[str, list[Seen]] = {}
    tokens = TokenVectors()
    tokens.centre_on([p for lang in LANGUAGES for each in load(data, lang).articles[:8] for p in each.paragraphs[:2]])
    async with (
        servers(settings) as configured,
        Elastic(str(configured.elasticsearch), configured) as elastic,
        KeptVectors(make_embedder("lite", configured), kept) as model,
    ):
        searcher = Searcher(elastic.search, OneModel(model), configured)
        for name in {_site(name): name for name in sets}.values():
            await publish(elastic, _site(name), _pages(data, name), model, configured)
        for name in sets:
            asked = _asked(data, name)
            if name not in ROOTS:
                asked = random.Random(SEED).sample(asked, round(part * len(asked)))
            if stage:
                await _staged(searcher, elastic, name, asked, tokens, configured)
                continue
            found[name] = [await _seen(searcher, _site(name), each, tokens) for each in track(asked, name)]
    chunks = len(tokens.known)
    print(f"{tokens.seconds / chunks * 1000:.1f} ms and {tokens.tokens / chunks:.0f} tokens a chunk")
    if found:
        _table(found)


async def _staged(
    searcher: Searcher, elastic: Elastic, name: str, asked: Sequence[Asked], tokens: TokenVectors, settings: Settings
) -> None:
    """Print how often a right page is the first source after the whole retrieve stage."""
    ways = [(kind, weight) for kind in (KINDS[0], KINDS[2]) for weight in STAGE_WEIGHTS]
    for kind, weight in ((KINDS[0], 0.0), *ways):
        late, right, unclear = Late(searcher, tokens, kind, weight), 0, 0
        for each in track(asked, f"{name} {kind} {weight}"):
            rephrased = question(each.question)
            lang = each.lang or name.partition(":")[0]
            own = {"site": _site(name), "lang": lang, "question": each.question}
            rephrased = rephrased.model_copy(update={"request": rephrased.request.model_copy(update=own)})
            found = await retrieve(rephrased, cast(Searcher, late), elastic.search, settings)
            right += bool(found.sources) and found.sources[0].page_id in each.right
            unclear += found.grade >= UNCLEAR
        shares = [round(count / len(asked), 3) for count in (right, unclear)]
        print(name, kind, weight, len(asked), "page first, unclear:", *shares)


class Late:
    """A `Searcher` with MaxSim in the scores of its hits."""

    def __init__(self, inner: Searcher, tokens: TokenVectors, kind: str, weight: float) -> None:
        self._inner, self._tokens, self._kind, self._weight = inner, tokens, kind, weight

    async def find(self, site: str, text: str, **how: Any) -> Retrieval:
        found = await self._inner.find(site, text, **how)
        asked = self._tokens.question(text)
        content = [hit for hit in found.hits[:BEST] if hit.field == "content"]
        if not self._weight or len(content) < 2:
            return found
        values = np.array([self._tokens.similar(asked, hit.text)[self._kind].mean() for hit in content])
        standings = (values - values.mean()) / max(float(values.std()), SPREAD)
        own = {hit.place: float(value) for hit, value in zip(content, standings, strict=True)}
        page: dict[str, float] = {}
        for hit in content:
            page[hit.page_key] = max(page.get(hit.page_key, -np.inf), own[hit.place])
        least = min(own.values())
        scores = [
            standing(hit.score)
            + self._weight * own.get(hit.place, least if hit.field == "content" else page.get(hit.page_key, least))
            for hit in found.hits
        ]
        hits = [replace(hit, score=1 / (1 + np.exp(-score))) for hit, score in zip(found.hits, scores, strict=True)]
        return replace(found, hits=sorted(hits, key=lambda hit: (-hit.score, hit.place)))


def _site(name: str) -> str:
    return name if name in ROOTS else site_of(name)


def _pages(data: Path, name: str) -> Sequence[PageDocument]:
    if name in ROOTS:
        return [PageDocument.model_validate(each) for each in page_documents(ROOTS[name], "https://site.example")]
    return load(data, name.rpartition(":")[2]).pages


def _asked(data: Path, name: str) -> list[Asked]:
    if name in ROOTS:
        some = [each for each in cases(name) if each.expect == "answer" and not each.history]
        return [Asked(each.question, frozenset(each.pages), each.lang) for each in some]
    asking, answering = load(data, name.partition(":")[0]), load(data, name.rpartition(":")[2])
    return [Asked(each.question, frozenset([each.page_id])) for each in together(asking, answering)]


async def _seen(searcher: Searcher, site: str, asked: Asked, tokens: TokenVectors) -> Seen:
    found = await searcher.find(site, asked.question, kind="hybrid", size=BEST, lang=asked.lang)
    question = tokens.question(asked.question)
    similar = [tokens.similar(question, hit.text) if hit.field == "content" else {} for hit in found.hits]
    by_kind = {kind: [each.get(kind) for each in similar] for kind in KINDS}
    return Seen(asked.right, [hit.page_id for hit in found.hits], [hit.score for hit in found.hits], by_kind)


def _table(found: Mapping[str, Sequence[Seen]]) -> None:
    halves = {name: random.Random(SEED).sample(list(seen), len(seen)) for name, seen in found.items()}
    tuned = [each for seen in halves.values() for each in seen[: len(seen) // 2]]
    lines: list[tuple[object, ...]] = []
    for kind in KINDS:
        by_weight = {weight: np.mean([each.first(kind, weight) for each in tuned]) for weight in WEIGHTS}
        weight = max(WEIGHTS, key=by_weight.__getitem__)
        for name, seen in halves.items():
            held = seen[len(seen) // 2 :]
            before = np.array([each.first(kind, 0) for each in held], float)
            for way in (weight, None):
                after = np.array([each.first(kind, way) for each in held], float)
                lines.append(
                    (
                        name,
                        kind,
                        "alone" if way is None else way,
                        len(held),
                        before.mean(),
                        *interval(after.tolist()),
                        *paired_interval(after - before),
                    )
                )
    columns = ("set", "vectors", "weight", "n", "hybrid", "with MaxSim", "from", "to", "difference from", "to")
    report("maxsim", f"page@1 of the best {BEST} hits", columns, lines)


if __name__ == "__main__":
    typer.run(main)
