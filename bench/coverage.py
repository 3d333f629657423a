"""Coverage: are the topics named that a site does not cover, and those that nobody asks for; and how long do many take.

sample site without some pages ─▶ everyday questions, but none about some others ─▶ search, sureness ─▶ a log
    ─▶ pipelines.query.log.coverage ─▶ which of what was taken away is named, and what else
10,000 made-up questions, 10,000 made-up pages in Elasticsearch ─▶ pipelines.query.log.coverage_reports ─▶ seconds

No model writes: what is answered is what would be quoted.
"""

from __future__ import annotations

import asyncio
import random
import resource
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from more_itertools import chunked
from numpy.typing import NDArray
from rich.progress import track

from adapters.elastic.bundle import Elastic
from adapters.elastic.page_vectors import ElasticPageVectors
from adapters.embedders.registry import make_embedder
from adapters.own_process import in_own_process
from bench.gaps import MODEL, NOW, SEED, Logged, Models, computed_seconds, longest_pause, made_up
from bench.report import report
from bench.servers import servers
from bench.sureness import rephrased
from bench.system import home
from bench.vectors import KeptVectors
from bench.visitors import LANGUAGES, Case, Part, cases, part_of
from bench.website import OneModel, publish
from pipelines.query.extractive.card import card
from pipelines.query.extractive.quotation import answering
from pipelines.query.log.coverage import topics_of
from pipelines.query.log.coverage_reports import MOST_PAGES, CoverageReports
from pipelines.query.log.gaps import wordings
from pipelines.query.log.kept_reports import UnderWay
from pipelines.query.log.placing import placed
from pipelines.query.log.ports import Asked, AskedHit
from pipelines.query.log.question_vectors import vectors_of
from pipelines.query.retrieve.retrieve import retrieve
from pipelines.query.search.search import Searcher
from pipelines.runtime.indexes import alias
from schemas.outcome import Became
from schemas.page import PageDocument
from schemas.query import Retrieved, SureOf
from sites.content import DEMO, page_documents
from text.language import language_of
from wiring.settings import Settings

DRAWS = 6  # sites, each without other pages
PLANTED = 1 / 4  # of the site's pages are taken away, and as many others are not asked for
SPEED = "coverage-speed"
CHUNKS = 5  # of a made-up page: one of its name, four of its content
BULK = 1_000  # documents written at once
DAYS = 30
BECAME: dict[SureOf, Became] = {"unit": "answered", "page": "page", "nothing": "refused"}


@dataclass(frozen=True)
class Drawn:
    """A site, and what is asked there."""

    name: str
    pages: Sequence[PageDocument]
    missing: frozenset[str]  # ids of pages that the site does not have
    unasked: frozenset[str]  # ... that no question is about
    asked: Sequence[Case]


@dataclass(frozen=True)
class Found:
    """Counts: of questions that no page answers, of pages that no question is about, of what was planted."""

    asked: int
    questions: tuple[int, int, int]  # rightly called uncovered, wrongly, missed
    topics: tuple[int, int]  # uncovered ones: mostly of such questions, and others
    planted: tuple[int, int]  # missing pages whose questions are most of an uncovered topic, of so many
    pages: tuple[int, int, int]  # rightly called not asked, wrongly, missed


def main(part: Part, questions: int, pages: int) -> None:
    """Print how much of what is planted is found, then how long many pages and questions take."""
    kept = Settings().home / "bench"
    names = [f"coverage-{number}" for number in range(DRAWS)]
    with home([*names, SPEED], LANGUAGES) as settings:
        asyncio.run(_run(settings, kept, part, names, questions, pages))


async def _run(settings: Settings, kept: Path, part: Part, names: Sequence[str], questions: int, pages: int) -> None:
    async with (
        servers(settings) as configured,
        Elastic(str(configured.elasticsearch), configured) as elastic,
    ):
        async with KeptVectors(make_embedder("lite", configured), kept) as model:
            found = [
                await _found(site, elastic, model, configured) for site in track(list(drawn(part, names)), "sites")
            ]
        _tell(found, part)
        if questions or pages:
            await _speed(elastic, questions, pages)


def drawn(part: Part, names: Sequence[str]) -> Iterator[Drawn]:
    """The same each time: pages by a seed, questions of one part that need no clock and no turn before."""
    pages = [PageDocument.model_validate(each) for each in page_documents(DEMO, "https://sample.example")]
    ids = sorted({page.id for page in pages})
    asked = [
        case
        for case in part_of(cases(), part)
        if case.expect != "courtesy" and case.now is None and not case.history and case.lang in LANGUAGES
    ]
    few = round(len(ids) * PLANTED)
    for number, name in enumerate(names):
        shuffled = random.Random(number).sample(ids, len(ids))
        missing, unasked = frozenset(shuffled[:few]), frozenset(shuffled[few : 2 * few])
        mine = [case for case in asked if not unasked & {*case.pages} and not _half(case, missing)]
        yield Drawn(name, [page for page in pages if page.id not in missing], missing, unasked, mine)


def _half(case: Case, missing: frozenset[str]) -> bool:
    """Whether some of the pages that answer it are there: nobody can say then whether it is covered."""
    return bool(missing & {*case.pages}) and not {*case.pages} <= missing


def lacking(case: Case, missing: frozenset[str]) -> bool:
    """Whether no page of the site answers it."""
    return case.expect == "refuse" or {*case.pages} <= missing


async def _found(site: Drawn, elastic: Elastic, model: KeptVectors, settings: Settings) -> Found:
    searcher = Searcher(elastic.search, OneModel(model), settings)
    await publish(elastic, site.name, site.pages, model, settings)
    await elastic.es.indices.refresh(index=alias(site.name))
    log = []
    for case in site.asked:
        seen = await retrieve(
            rephrased(case, settings.short_question_words, site.name), searcher, elastic.search, settings
        )
        log.append(_asked(case, seen))
    every = wordings(log)
    vectors, _ = await vectors_of(model, every)
    pages = await ElasticPageVectors(elastic.es).vectors(site.name, model.fingerprint, model.dims, None, MOST_PAGES)
    langs = [one.lang for one in every]
    often = [len(one.questions) for one in every]
    places = placed(pages.vectors, [page.lang for page in pages.pages], vectors, langs, often, model.profile.common)
    found = topics_of(every, vectors, pages, places)
    uncovered = [[one.text for one in topic.own] for topic in found if topic.kind == "uncovered"]
    unasked = {pages.pages[place].page_id for topic in found if topic.kind == "unasked" for place in topic.pages}
    return judged(site, uncovered, unasked)


def _asked(case: Case, seen: Retrieved) -> Asked:
    """As the log has it, where no model writes."""
    sure: SureOf = seen.sure.of if seen.sure and seen.evidence else "nothing"
    cited: set[int] = set()
    if sure != "nothing":
        said = sure == "unit"
        quotation = answering(seen.evidence, "") if said else card(seen.evidence, seen.sources, "")
        cited = {citation.n for citation in quotation.citations}
    return Asked(
        request_id=case.id.ljust(8, "-"),
        asked_at=NOW,
        lang=language_of(case.question, LANGUAGES),
        question=case.question,
        text=case.question,
        became=BECAME[sure],
        grade=seen.grade,
        hits=tuple(AskedHit(s.page_id, s.lang, s.title, s.url, s.cosine, s.n in cited) for s in seen.sources),
    )


def judged(site: Drawn, uncovered: Sequence[Sequence[str]], unasked: Set[str]) -> Found:
    """Of a site whose truth is known: the questions of each uncovered topic, and the pages of unasked ones."""
    case_of = {case.question: case for case in site.asked}
    topics = [[case_of[text] for text in texts] for texts in uncovered]
    lacks = [[lacking(case, site.missing) for case in topic] for topic in topics]
    said, right = sum(map(len, lacks)), sum(map(sum, lacks))
    mostly = sum(2 * sum(each) > len(each) for each in lacks)
    planted = [id for id in sorted(site.missing) if any({*case.pages} == {id} for case in site.asked)]
    named = sum(any(2 * sum(id in case.pages for case in topic) > len(topic) for topic in topics) for id in planted)
    there = {page.id for page in site.pages} & site.unasked
    return Found(
        len(site.asked),
        (right, said - right, sum(lacking(case, site.missing) for case in site.asked) - right),
        (mostly, len(topics) - mostly),
        (named, len(planted)),
        (len(unasked & there), len(unasked - there), len(there - unasked)),
    )


def _tell(found: Sequence[Found], part: Part) -> None:
    """Sums over all sites."""
    questions = _shares([each.questions for each in found])
    pages = _shares([each.pages for each in found])
    topics = [sum(numbers) for numbers in zip(*(each.topics for each in found), strict=True)]
    planted = [sum(numbers) for numbers in zip(*(each.planted for each in found), strict=True)]
    asked = sum(each.asked for each in found)
    lines = [
        ("questions that no page answers, called uncovered", *questions),
        ("pages that no question is about, called unasked", *pages),
        (
            "uncovered topics that are mostly of such questions",
            topics[0],
            topics[1],
            topics[0] / max(sum(topics), 1),
            "",
        ),
        ("missing pages that have an uncovered topic", planted[0], "", "", planted[0] / max(planted[1], 1)),
    ]
    about = f"{asked} questions on {len(found)} sites ({part}), lite, no model"
    report("coverage", about, ("what", "right", "wrong", "precision", "recall"), lines, part=part)


def _shares(counts: Sequence[tuple[int, int, int]]) -> tuple[int, int, float, float]:
    right, wrong, missed = (sum(numbers) for numbers in zip(*counts, strict=True))
    return right, wrong, right / max(right + wrong, 1), right / max(right + missed, 1)


async def _speed(elastic: Elastic, questions: int, pages: int) -> None:
    await _fill(elastic, pages)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reader = ElasticPageVectors(elastic.es)
    reports = CoverageReports(Logged(made_up(questions)), reader, Models(), partial(in_own_process, placed))
    beat = asyncio.create_task(longest_pause())
    await asyncio.sleep(0)
    began, computed = perf_counter(), computed_seconds()
    await reader.vectors(SPEED, MODEL.fingerprint, MODEL.dims, None, MOST_PAGES)
    reading = perf_counter() - began
    began = perf_counter()
    found = await reports.report(SPEED, DAYS, NOW, groups=None)
    seconds, computing = perf_counter() - began, computed_seconds() - computed
    beat.cancel()
    await reports.aclose()
    assert not isinstance(found, UnderWay)
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) / 1024
    line = (found.pages, found.asked, reading, seconds, computing, await beat * 1000, more)
    columns = (
        "pages",
        "questions",
        "reading pages, s",
        "whole report, s",
        "CPU seconds",
        "longest pause, ms",
        "more MiB",
    )
    report("coverage-speed", f"{CHUNKS} chunks a page", columns, [line], questions=questions, pages=pages)


async def _fill(elastic: Elastic, pages: int) -> None:
    """Pages straight into the index: around so many subjects, each with chunks around its own middle."""
    await elastic.pages.live(SPEED, embedder="fake", model=MODEL.fingerprint, dims=MODEL.dims, chunker="none")
    rng = np.random.default_rng(SEED)
    subjects = rng.standard_normal((max(pages // 5, 1), MODEL.dims)).astype(np.float32)
    for some in chunked(track(range(pages), "pages"), BULK // CHUNKS):
        operations: list[dict[str, Any]] = []
        for number in some:
            middle = subjects[number % len(subjects)] + 0.6 * rng.standard_normal(MODEL.dims)
            for ord in range(CHUNKS):
                vector = middle + 0.6 * rng.standard_normal(MODEL.dims)
                operations += [{"index": {}}, _chunk(number, ord, vector / np.linalg.norm(vector))]
        await elastic.es.bulk(index=alias(SPEED), operations=operations)
    await elastic.es.indices.refresh(index=alias(SPEED))


def _chunk(number: int, ord: int, vector: NDArray[np.float32]) -> dict[str, Any]:
    return {
        "kind": "chunk",
        "page_key": f"{SPEED}:en:page-{number:06}",
        "page_id": f"page-{number:06}",
        "lang": "en",
        "revision": 1,
        "title": f"Page {number}",
        "url": f"/page-{number}",
        "field": "content" if ord else "name",
        "ord": max(ord - 1, 0),
        "text": f"Chunk {ord} of page {number}",
        "embedding": vector.round(6).tolist(),
        "model": MODEL.fingerprint,
    }
