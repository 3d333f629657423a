"""Quality gate: a rebuild may go live only if it is shown not to find pages worse than what is live by a margin.

questions ─┬─ the searcher of visitors, on the candidate ─▶ rank of the right page ┐
           └─ the same, on the live index ────────────────▶ rank of the right page ┴▶ non-inferiority ─▶ verdict
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.evaluate.dataset import BadDataset, Case, load_dataset, of_site
from pipelines.evaluate.non_inferiority import MARGIN, paired
from schemas.rebuild import GateReport, Measure, Rank

DEPTH = 10  # pages looked at: MRR@10
AT_ONCE = 4  # questions asked side by side
WORST = 10  # questions told


def gate_cases(path: Path, site: str) -> list[Case]:
    """The cases of a dataset that name a page and are asked of this site. Raises: BadDataset: says where and what."""
    cases = [case for case in of_site(load_dataset(path).cases, site) if case.pages]
    if not cases:
        raise BadDataset(f"{path}: no question names its page")
    return cases


@dataclass(frozen=True)
class RankedPage:
    """A page that a search showed."""

    page_id: str
    lang: str


Ask = Callable[[str], Awaitable[Sequence[RankedPage]]]
"""Pages for a question, best first; the same page may come several times."""


async def compare(
    cases: Sequence[Case],
    live: Ask,
    candidate: Ask,
    asked: Callable[[int], None] = lambda _: None,
    margin: float = MARGIN,
) -> GateReport:
    """Ask both indexes all questions.

    Args:
        asked: Told how many are done.

    Raises: Retryable: a search fails.
    """
    done = 0
    room = asyncio.Semaphore(AT_ONCE)

    async def one(case: Case) -> Rank:
        nonlocal done
        async with room:
            ranks = [rank(case, await ask(case.question)) for ask in (live, candidate)]
        done += 1
        asked(done)
        return Rank(question=case.question, page=", ".join(case.pages), live=ranks[0], candidate=ranks[1])

    return verdict(await asyncio.gather(*(one(case) for case in cases)), margin)


def rank(case: Case, found: Sequence[RankedPage]) -> int | None:
    """Place of the case's first page among the pages found, from 1; in the language of the page or of the question."""
    pages = list(dict.fromkeys((page.page_id, page.lang) for page in found))[:DEPTH]
    for place, (page_id, lang) in enumerate(pages, 1):
        if page_id in case.pages and (case.page_lang or case.lang) in (None, lang):
            return place
    return None


def verdict(ranks: Sequence[Rank], margin: float = MARGIN) -> GateReport:
    """The comparison in figures; passes only if each is shown not to be worse by the margin or more."""
    measures = []
    for name, figure in (("hit@1", first), (f"MRR@{DEPTH}", reciprocal)):
        told = paired([figure(one.live) for one in ranks], [figure(one.candidate) for one in ranks], margin)
        measures.append(
            Measure(
                name=name,
                live=round(told.live, 4),
                candidate=round(told.candidate, 4),
                difference=round(told.difference, 4),
                low=round(told.low, 4),
                high=round(told.high, 4),
                state=told.state,
                needed=told.needed,
            )
        )
    lost = sorted(ranks, key=lambda one: reciprocal(one.candidate) - reciprocal(one.live))
    worst = [one for one in lost if reciprocal(one.candidate) < reciprocal(one.live)][:WORST]
    return GateReport(
        questions=len(ranks),
        margin=margin,
        needed=max(measure.needed for measure in measures),
        measures=tuple(measures),
        worst=tuple(worst),
        passed=all(measure.state == "not worse" for measure in measures),
    )


def first(place: int | None) -> float:
    """1 for the first place."""
    return float(place == 1)


def reciprocal(place: int | None) -> float:
    """1 / rank; 0 for what was not found."""
    return 1 / place if place else 0.0
