"""Sites that have just begun: a page or a few, of the sample site. How much is said there, and how much of it is wrong?

    tuned question ─▶ its page (whole, or the section that answers) and others drawn by a seed ─▶ a site of its own
                       ├─ asked the question, which it answers
                       └─ asked another one, whose page it does not have

No model writes.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from rich.progress import track

from adapters.elastic.bundle import Elastic
from adapters.embedders.registry import make_embedder
from bench.report import report
from bench.servers import servers
from bench.sureness import LEAD_IN, rephrased, verdict
from bench.system import home
from bench.vectors import KeptVectors
from bench.visitors import LANGUAGES, Case, cases, part_of
from bench.website import OneModel, publish
from pipelines.query.extractive.card import card
from pipelines.query.extractive.quotation import answering
from pipelines.query.retrieve.retrieve import retrieve
from pipelines.query.search.search import Searcher
from pipelines.runtime.indexes import alias
from schemas.page import PageDocument
from schemas.query import Retrieved
from sites.content import DEMO, page_documents
from wiring.settings import Settings

PAGES = (1, 2, 4, 8)
QUESTIONS, SEED = 60, 5
SECTION = re.compile(r"(?=<h2)")

Length = Literal["short", "long"]


@dataclass(frozen=True)
class SmallSite:
    """A site, a question that it answers, and one that it does not."""

    length: Length  # of its pages: one section of each, or all
    size: int
    pages: Sequence[PageDocument]
    answered: Case
    foreign: Case


@dataclass(frozen=True)
class Said:
    """What a visitor of a small site is told. An answer to what the site does not say is wrong, whatever it is."""

    site: SmallSite
    answerable: bool
    useful: bool
    wrong: bool
    refused: bool


def main() -> None:
    """Print shares for each size of site."""
    kept = Settings().home / "bench"
    with home([_name(number) for number in range(QUESTIONS * len(PAGES) * 2)]) as settings:
        asyncio.run(_run(settings, kept))


async def _run(settings: Settings, kept: Path) -> None:
    said: list[Said] = []
    async with (
        servers(settings) as configured,
        Elastic(str(configured.elasticsearch), configured) as elastic,
        KeptVectors(make_embedder("lite", configured), kept) as model,
    ):
        searcher = Searcher(elastic.search, OneModel(model), configured)
        for number, site in enumerate(track(list(small_sites()), "small sites")):
            name = _name(number)
            await publish(elastic, name, site.pages, model, configured)
            await elastic.es.indices.refresh(index=alias(name))
            for case in (site.answered, site.foreign):
                asked = rephrased(case, configured.short_question_words, name)
                found = await retrieve(asked, searcher, elastic.search, configured)
                said.append(_said(site, case, found))
            await elastic.es.indices.delete(index=f"{alias(name)}-000001")
    groups: dict[tuple[Length, int], list[Said]] = {}
    for each in said:
        groups.setdefault((each.site.length, each.site.size), []).append(each)
    about = f"{len(said)} questions, half of them about what the site does not say; bundled embedder, no model"
    columns = ("pages", "how many", "useful", "wrong material", "false refusals")
    report("small-sites", about, columns, [(*key, *_shares(group)) for key, group in groups.items()], seed=SEED)


def _shares(said: Sequence[Said]) -> tuple[float, float, float]:
    return (
        float(np.mean([each.useful for each in said])),
        float(np.mean([each.wrong for each in said])),
        float(np.mean([each.refused for each in said if each.answerable])),
    )


def _said(site: SmallSite, case: Case, found: Retrieved) -> Said:
    answerable = case is site.answered
    if found.sure is None or found.sure.of == "nothing" or not found.evidence:
        return Said(site, answerable, not answerable, False, answerable)
    said = found.sure.of == "unit"
    quotation = answering(found.evidence, LEAD_IN) if said else card(found.evidence, found.sources, LEAD_IN)
    judged = verdict(case, found, quotation)
    return Said(site, answerable, answerable and judged.useful, not answerable or judged.wrong, False)


def small_sites() -> Iterator[SmallSite]:
    """For each question that one section answers: sites of all sizes, of short pages and of long ones."""
    pages = {
        (page.id, page.lang): page
        for page in (PageDocument.model_validate(each) for each in page_documents(DEMO, "https://sample.example"))
    }
    rng = random.Random(SEED)
    asked = [case for case in part_of(cases(), "tune") if _stands_alone(case)]
    rng.shuffle(asked)
    answered = [(case, section) for case in asked if (section := _answering(case, pages)) is not None]
    for case, section in answered[:QUESTIONS]:
        others = [page for (id, lang), page in pages.items() if lang == case.lang and id not in case.pages]
        for size in PAGES:
            beside = rng.sample(others, size - 1)
            ids = {case.pages[0], *(page.id for page in beside)}
            foreign = rng.choice([each for each in asked if each.lang == case.lang and not ids & set(each.pages)])
            short = [_of(page, rng.choice(SECTION.split(page.content))) for page in beside]
            yield SmallSite("short", size, [section, *short], case, foreign)
            yield SmallSite("long", size, [pages[case.pages[0], case.lang], *beside], case, foreign)


def _stands_alone(case: Case) -> bool:
    whole = case.expect == "answer" and bool(case.pages) and bool(case.facts)
    return whole and case.lang in LANGUAGES and not case.history and case.now is None


def _answering(case: Case, pages: Mapping[tuple[str, str | None], PageDocument]) -> PageDocument | None:
    """The section of the page that says the first fact."""
    page = pages.get((case.pages[0], case.lang))
    for section in SECTION.split(page.content) if page else ():
        if page and any(fact.casefold() in section.casefold() for fact in case.facts[0]):
            return _of(page, section)
    return None


def _of(page: PageDocument, section: str) -> PageDocument:
    return page.model_copy(update={"content": section})


def _name(number: int) -> str:
    return f"small-{number}"
