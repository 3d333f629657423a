"""The sites on which the question gate is measured, and what the search says there about each question.

    XQuAD ─┬─ all pages ───────────────────── every question has an answer
           ├─ five random halves of the pages ─ questions on the others have none        ("page out")
           └─ five sites, each without the n-th paragraph of all pages ─ nor have these  ("paragraph out")

Each is a site of its own, indexed and searched as visitors' are; nothing of what is left out is in it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.progress import track

from adapters.elastic.search import SiteSearch
from bench.corpora import HALVES, Corpus
from bench.website import KeptVectors, OneModel
from pipelines.query.extractive.confidence import GateInput, closer, foreign, signals
from pipelines.query.search.search import Searcher
from schemas.page import PageDocument
from sites.content import DEMO, load_questions, page_documents
from wiring.settings import Settings

PARAGRAPHS = 5  # of each XQuAD page
SAMPLE = "sample site"
SAMPLE_SITES = ("gate-sample", *(f"gate-sample-half{number}" for number in range(1, 5)))

Kind = Literal["answerable", "page out", "paragraph out"]


@dataclass(frozen=True)
class Sample:
    """A question put to one of the sites."""

    pair: str
    kind: Kind
    training: bool
    foreign: bool  # in another language than the pages
    signals: Mapping[str, float]


def sites_of(lang: str) -> list[str]:
    return [
        f"gate-{lang}-all",
        *(f"gate-{lang}-half{n}" for n in range(HALVES)),
        *(f"gate-{lang}-without{n}" for n in range(PARAGRAPHS)),
    ]


@dataclass(frozen=True)
class Variant:
    """One of the sites, and the questions that are put to it."""

    pages: Sequence[PageDocument]
    kind: Kind
    questions: Sequence[int]  # their places in the corpus


def variants(corpus: Corpus) -> dict[str, Variant]:
    """By the name of the site."""
    whole, *rest = sites_of(corpus.lang)
    asked = list(enumerate(corpus.questions))
    found = {whole: Variant(corpus.pages, "answerable", [i for i, _ in asked])}
    for number, site in enumerate(rest[:HALVES]):
        ids = corpus.half(number)
        found[site] = Variant(corpus.site(ids=ids), "page out", [i for i, each in asked if each.page_id not in ids])
    for number, site in enumerate(rest[HALVES:]):
        out = [i for i, each in asked if each.paragraph == number]
        found[site] = Variant(corpus.site(without=number), "paragraph out", out)
    return found


async def collect(
    pair: str, asking: Corpus, pages: Corpus, search: SiteSearch, model: KeptVectors, settings: Settings
) -> list[Sample]:
    """Ask every question of a pair of languages on every site where it belongs."""
    searcher = Searcher(search, OneModel(model), settings)
    samples = []
    for site, variant in variants(pages).items():
        for number in track(variant.questions, description=f"{pair} {site}"):
            evidence = await _evidence(searcher, site, asking.questions[number].question, settings)
            found = signals(evidence) | await closer(evidence, model)
            samples.append(Sample(pair, variant.kind, pages.questions[number].training, foreign(evidence), found))
    return samples


async def _evidence(searcher: Searcher, site: str, question: str, settings: Settings) -> GateInput:
    found = await searcher.find(site, question, kind="hybrid", size=settings.flow_of(site).hits)
    seen = found.candidates
    return GateInput(question, seen.dense, found.hits, seen.terms, seen.total, seen.by_language)


def sample_variants() -> dict[str, tuple[Sequence[PageDocument], Sequence[tuple[str, Kind]]]]:
    """The bundled site and halves of it: pages, and questions with what they are there."""
    pages = [PageDocument.model_validate(page) for page in page_documents(DEMO, "https://sample.example")]
    questions = load_questions(DEMO)
    ids = sorted({page.id for page in pages})
    whole, *halves = SAMPLE_SITES
    found: dict[str, tuple[Sequence[PageDocument], Sequence[tuple[str, Kind]]]] = {
        whole: (pages, [(each.question, "answerable" if each.answerable else "page out") for each in questions])
    }
    for number, site in enumerate(halves, 1):
        out = set(random.Random(number).sample(ids, len(ids) // 2))
        gone: list[tuple[str, Kind]] = [(each.question, "page out") for each in questions if each.page in out]
        found[site] = ([page for page in pages if page.id not in out], gone)
    return found


async def collect_sample(
    variants: Mapping[str, tuple[Sequence[PageDocument], Sequence[tuple[str, Kind]]]],
    search: SiteSearch,
    model: KeptVectors,
    settings: Settings,
) -> list[Sample]:
    """Ask the sample site's own questions. All are for training: they are too few to be halved."""
    searcher = Searcher(search, OneModel(model), settings)
    samples = []
    for site, (_, questions) in variants.items():
        for question, kind in track(questions, description=site):
            evidence = await _evidence(searcher, site, question, settings)
            found = signals(evidence) | await closer(evidence, model)
            samples.append(Sample(SAMPLE, kind, True, foreign(evidence), found))
    return samples
