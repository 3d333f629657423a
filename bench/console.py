"""The console over a full question log: how long its pages take at the server.

100,000 made-up outcomes ─▶ pagewire.outcomes ─▶ every page and every filter, ROUNDS times ─▶ ms, as the gateway says

Time at the server: from the request to the whole page, on loopback, one request at a time. Gaps and coverage group in
the background of their pages, so they are figures of their own: from the first request to the page with groups.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from time import perf_counter
from typing import Any

import httpx
import numpy as np

from adapters.elastic.indexes import OUTCOMES
from adapters.elastic.outcomes import kept_as
from bench.report import percentile, report
from bench.system import system
from gateway.edge.keys import admin_key
from schemas.outcome import Became, Hit, Outcome, OutcomeEvent
from schemas.query import QuestionVector
from wiring.clients import Clients

SITE = "console"
BATCH = 1_000  # documents in a request
DAYS = 90
NEWEST = 10_000  # questions of the last seven days: as many as gaps are promised for
SEED = 20_261_124
PAGES = 200  # that are cited
MOST_PAGE_MS, MOST_FILTER_MS, MOST_GROUPED_S = 300, 500, 30
BECAME: tuple[Became, ...] = ("answered", "answered", "answered", "page", "refused", "failed")
THINGS = ("library", "pool", "dog tax", "parking", "wedding", "passport", "school", "refuse", "theatre", "bus")
WORDS = ("cost", "open", "apply for", "find", "book", "cancel", "renew", "bring to", "register for", "pay for")

SCREENS: Mapping[str, str] = {
    "overview": "/console/",
    "questions": "/console/questions",
    "question": "/console/questions/made-up-0000000",
    "labels": "/console/labels",
    "label": "/console/labels/made-up-0000000",
    "evaluations": "/console/evaluations",
    "judge": "/console/evaluations/judge",
    "page": "/console/page",
    "playground": "/console/playground",
    "examples": "/console/examples",
    "texts": "/console/texts",
    "glossary": "/console/texts/glossary/terms",
    "indexes": "/console/indexes",
    "audit": "/console/indexes/audit",
    "sites": "/console/sites",
    "privacy": f"/console/privacy?site={SITE}",
    "dead letters": "/console/dlq",
    "keys": "/console/keys",
    "audit log": "/console/audit-log",
}
GROUPED: Mapping[str, str] = {
    "gaps": "/console/gaps?days=7&show=asked",
    "coverage": "/console/coverage?days=7",
}
FILTERS: Mapping[str, str] = {
    "words": "text=library+pool",
    "a beginning": "text=regis",
    "outcome": "outcome=refused",
    "feedback": "feedback=down",
    "language": "lang=de",
    "page": "page=page-7",
    "days": "from=2026-01-01&to=2035-01-01",
    "all of them": "outcome=answered&lang=en&page=page-7&text=library",
}


def made_up(number: int, of: int, now: datetime, model: str, dims: int) -> tuple[OutcomeEvent, Outcome]:
    """One of `of` outcomes, the newest first; the same for the same number. `model`, `dims`: of its vector."""
    random = Random(SEED + number)
    recent = number < min(NEWEST, of)
    days = 7 * number / NEWEST if recent else 7 + (DAYS - 7) * number / of
    lang = random.choice(("en", "en", "de"))
    question = f"How can I {random.choice(WORDS)} the {random.choice(THINGS)} in street {random.randrange(500)}?"
    hits = tuple(
        Hit(
            page_id=f"page-{page}",
            lang=lang,
            title=f"Page {page}",
            url=f"https://www.town.example/{page}",
            field="content",
            ord=1,
            score=0.03,
            cosine=0.6,
            cited=place == 0,
        )
        for place, page in enumerate(random.sample(range(PAGES), 5))
    )
    vector = np.random.default_rng(SEED + number).standard_normal(dims)
    outcome = Outcome(
        asked_at=now - timedelta(days=days),
        asked_in=lang,
        lang=lang,
        question=question,
        rephrased=question,
        became=random.choice(BECAME),
        mode="semantic",
        grade=0,
        hits=hits,
        strategy="quote",
        timings_ms={"rephrase": 1.0, "retrieve": 90.0, "answer": 3.0},
        first_token_ms=100.0,
        vector=QuestionVector.of(model, (vector / np.linalg.norm(vector)).astype(np.float32)),
    )
    id = f"made-up-{number:07d}"
    return OutcomeEvent(site=SITE, request_id=id, conversation=f"{number // 3:032x}", event=outcome), outcome


def main(outcomes: int, rounds: int) -> None:
    """Fill the log and time every page; print what came of it."""
    asyncio.run(_run(outcomes, rounds))


async def _run(outcomes: int, rounds: int) -> None:
    async with system([SITE]) as (started, api), Clients(started.settings) as clients:
        page = {"id": "page-7", "title": "Page 7", "content": "<p>A library card costs 18 euros.</p>"}
        (await api.put(f"/sites/{SITE}/pages/page-7?wait=searchable&timeout=60", json=page)).raise_for_status()
        try:
            await _fill(clients, outcomes)
            key, _ = admin_key(started.settings)
            async with httpx.AsyncClient(base_url=started.url, timeout=120) as browser:
                origin = {"Origin": started.url}
                signed = await browser.post("/console/sign-in", data={"key": key.get_secret_value()}, headers=origin)
                assert signed.status_code == 303, signed.text
                lines = [await _timed(browser, name, path, rounds, MOST_PAGE_MS) for name, path in SCREENS.items()]
                for name, query in FILTERS.items():
                    path = f"/console/questions?{query}"
                    lines.append(await _timed(browser, f"filter: {name}", path, rounds, MOST_FILTER_MS))
                grouped = {what: await _grouped(browser, path) for what, path in GROUPED.items()}
        finally:
            await clients.questions().expire({SITE: datetime.now(UTC) + timedelta(days=1)})
    for what, taken in grouped.items():
        many = f"{what} of {min(NEWEST, outcomes):,} questions"
        lines.append((many, taken * 1000, taken * 1000, MOST_GROUPED_S * 1000.0, _word(taken, MOST_GROUPED_S)))
    columns = ("page", "p50 ms", "p95 ms", "at most", "")
    report("console", f"the console over {outcomes:,} outcomes, {rounds} rounds", columns, lines, outcomes=outcomes)


async def _fill(clients: Clients, outcomes: int) -> None:
    live = await clients.elastic.indexes.live(SITE)
    assert live is not None, "the page has made one"
    await clients.elastic.indexes.ensure_system(OUTCOMES)
    es, now = clients.elastic.es, datetime.now(UTC)
    for first in range(0, outcomes, BATCH):
        operations: list[dict[str, Any]] = []
        for number in range(first, min(first + BATCH, outcomes)):
            id, document = kept_as(*made_up(number, outcomes, now, live.model, live.dims))
            if number % 10 == 0:
                document |= {"rating": "down", "comment": "I do not believe it.", "rated_at": document["asked_at"]}
            operations += [{"index": {"_id": id}}, document]
        answer = await es.bulk(index=OUTCOMES, operations=operations)
        assert not answer["errors"], answer["items"][0]
    await es.indices.refresh(index=OUTCOMES)


async def _timed(
    browser: httpx.AsyncClient, name: str, path: str, rounds: int, most: float
) -> tuple[str, float, float, float, str]:
    """Milliseconds of one page. The first request is left out: it may be the first of its kind in the process."""
    taken: Sequence[float] = [await _once(browser, path) for _ in range(rounds + 1)][1:]
    late = percentile(taken, 95)
    return name, percentile(taken, 50), late, float(most), _word(late, most)


async def _once(browser: httpx.AsyncClient, path: str) -> float:
    began = perf_counter()
    answer = await browser.get(path, follow_redirects=False)
    taken = (perf_counter() - began) * 1000
    assert answer.status_code == 200, (path, answer.status_code)
    return taken


async def _grouped(browser: httpx.AsyncClient, path: str) -> float:
    """Seconds until the page has its groups; it looks again by itself until then."""
    began = perf_counter()
    while True:
        answer = await browser.get(path)
        assert answer.status_code in (200, 202), answer.status_code  # 202: they are being grouped
        if answer.status_code == 200:
            return perf_counter() - began
        await asyncio.sleep(0.2)


def _word(taken: float, most: float) -> str:
    return "as promised" if taken <= most else "TOO SLOW"
