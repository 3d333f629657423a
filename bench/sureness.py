"""How sure is the best unit of a search? Fits an embedder's `SurenessProfile` on the everyday questions.

tuned parts of the sites' visitors ─▶ retrieve ─▶ signals; what would be quoted ─ judged ─▶ two logistic regressions

Printed are weights to paste, and for thresholds what would come of them: each question judged by weights that were
fitted on the others (five folds); of two sites also what the weights of one are worth on the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from itertools import product
from typing import Annotated

import numpy as np
import typer
import yaml
from numpy.typing import NDArray
from rich.progress import track

from bench.gate import logistic
from bench.report import question, report
from bench.servers import system
from bench.visitors import LANGUAGES, ROOTS, SITE, Case, Shown, Site, Verdict, cases, fill, judged, part_of
from pipelines.query.extractive.card import card
from pipelines.query.extractive.follow_ups import earlier
from pipelines.query.extractive.quotation import Quotation, answering
from pipelines.query.rephrase.rewrite import search_mode
from pipelines.query.retrieve.retrieve import retrieve
from pipelines.query.search.ports import Calibration
from schemas.query import Rephrased, Retrieved, Turn
from text.language import language_of
from wiring.clients import Clients

FOLDS, SEED = 5, 1
THRESHOLDS = (0.4, 0.5, 0.6, 0.7, 0.8)
LEAD_IN = "The website says:"

Floats = NDArray[np.float64]
Look = Callable[[Case], Awaitable[Retrieved]]


@dataclass(frozen=True)
class Sample:
    """A question, what the search knows of it, and what its two kinds of answer would be worth."""

    case: Case
    signals: dict[str, float]
    unit: Verdict
    page: Verdict
    page_right: bool


def main(
    site: Annotated[Site | None, typer.Option(help="Whose questions it is fitted on; without it, all.")] = None,
) -> None:
    """Fit how sure an embedder's best sentence is, on the tuned parts of the everyday questions."""
    by_site = {name: asyncio.run(_samples(name)) for name in ([site] if site else ROOTS)}
    found = [each for own in by_site.values() for each in own]
    signals, values, good, right = _table(found)
    for said, label in (("unit", good), ("page", right)):
        fitted = logistic(values, label.astype(float), signals)
        print(yaml.safe_dump({said: asdict(rounded(fitted))}, sort_keys=False))
    unit, page = across(values, good, signals), across(values, right, signals)
    columns = ("unit", "page", "useful", "wrong material", "false refusals", "pages")
    lines = [(u, p, *outcome(found, unit >= u, page >= p)) for u, p in product(THRESHOLDS, THRESHOLDS)]
    about = f"{len(found)} everyday questions (tune) on {', '.join(by_site)}, each judged by weights fitted on others"
    report("sureness", about, columns, lines)
    for name, own in by_site.items():
        if elsewhere := [each for other in by_site if other != name for each in by_site[other]]:
            unit, page = elsewhere_fitted(elsewhere, own)
            lines = [(u, p, *outcome(own, unit >= u, page >= p)) for u, p in product(THRESHOLDS, THRESHOLDS)]
            report(f"sureness-{name}", f"{len(own)} on {name}, by weights fitted elsewhere alone", columns, lines)


def elsewhere_fitted(fitted_on: Sequence[Sample], judged_on: Sequence[Sample]) -> tuple[Floats, Floats]:
    """Of one site's questions, the chances of unit and page by weights that were fitted on other sites'."""
    names, values, good, right = _table(fitted_on)
    fitted = [logistic(values, label.astype(float), names) for label in (good, right)]
    unit, page = (np.array([each.score(sample.signals) for sample in judged_on]) for each in fitted)
    return unit, page


def _table(found: Sequence[Sample]) -> tuple[list[str], Floats, NDArray[np.bool_], NDArray[np.bool_]]:
    """Signals, and of which questions the best unit answers, and its page."""
    names = list(found[0].signals)
    values = np.array([[each.signals[name] for name in names] for each in found])
    answers = np.array([each.case.expect == "answer" for each in found])
    good = answers & np.array([each.unit.useful for each in found])
    return names, values, good, answers & np.array([each.page_right for each in found])


async def _samples(site: str) -> list[Sample]:
    async with asking(site) as (wanted, look):
        return samples([(case, await look(case)) for case in track(wanted, "asking")])


@asynccontextmanager
async def asking(site: str) -> AsyncIterator[tuple[list[Case], Look]]:
    """The tuned questions that need no clock, and the retrieve stage on their site."""
    wanted = [case for case in part_of(cases(site), "tune") if case.now is None and case.expect != "courtesy"]
    async with system([site], languages=LANGUAGES) as (started, client):
        await fill(site, started.url, client)
        async with Clients(started.settings) as clients:
            searcher = clients.searcher()

            async def look(case: Case) -> Retrieved:
                asked = rephrased(case, started.settings.flow_of(site).short_question_words, site)
                return await retrieve(asked, searcher, searcher.chunks, started.settings)

            yield wanted, look


def samples(found: Iterable[tuple[Case, Retrieved]]) -> list[Sample]:
    """Of the questions for which there are units."""
    return [_sample(case, retrieved) for case, retrieved in found if retrieved.evidence and retrieved.sure]


def rephrased(case: Case, short: int, site: str = SITE) -> Rephrased:
    """The case as the rephrase stage hands it on, without a model."""
    history = tuple(Turn(question=before, answer="") for before in case.history)
    request = question(site, language_of(case.question, LANGUAGES), case.question, history=history)
    mode = search_mode(case.question, short)
    return Rephrased(request=request, question=case.question, earlier=earlier(case.question, history), mode=mode)


def _sample(case: Case, retrieved: Retrieved) -> Sample:
    assert retrieved.sure is not None
    unit = verdict(case, retrieved, answering(retrieved.evidence, LEAD_IN))
    page = verdict(case, retrieved, card(retrieved.evidence, retrieved.sources, LEAD_IN))
    right = retrieved.sources[0].page_id in case.pages
    return Sample(case, dict(retrieved.sure.signals), unit, page, right)


def verdict(case: Case, retrieved: Retrieved, quotation: Quotation) -> Verdict:
    pages = {source.n: source.page_id for source in retrieved.sources}
    cited = tuple(pages[citation.n] for citation in quotation.citations)
    return judged(case, Shown(quotation.text, 0, tuple(pages.values()), cited))


def across(values: Floats, label: NDArray[np.bool_], names: Sequence[str]) -> Floats:
    """The chance of each, by weights fitted on the other folds."""
    fold = np.random.default_rng(SEED).integers(0, FOLDS, len(label))
    chances = np.zeros(len(label))
    for k in range(FOLDS):
        fitted = logistic(values[fold != k], label[fold != k].astype(float), names)
        for i in np.flatnonzero(fold == k):
            chances[i] = fitted.score(dict(zip(names, values[i].tolist(), strict=True)))
    return chances


def outcome(
    samples: Sequence[Sample], unit: NDArray[np.bool_], page: NDArray[np.bool_]
) -> tuple[float, float, float, float]:
    useful = wrong = refused = pages = 0
    for each, sure, near in zip(samples, unit, page, strict=True):
        if not sure and not near:
            useful += each.case.expect == "refuse"
            refused += each.case.expect == "answer"
            continue
        verdict = each.unit if sure else each.page
        useful += verdict.useful
        wrong += verdict.wrong
        pages += not sure
    answerable = sum(each.case.expect == "answer" for each in samples)
    return useful / len(samples), wrong / len(samples), refused / answerable, pages / len(samples)


def rounded(fitted: Calibration) -> Calibration:
    return Calibration(round(fitted.bias, 3), {name: round(weight, 3) for name, weight in fitted.weights.items()})
