"""Everyday questions: what visitors ask in their own words, and whether what they were shown would do.

sites/SITE/visitors/*.yaml ─▶ asked over HTTP, turn by turn ─▶ judged by facts, pages and what must not be said ─▶ table

Two invented sites: the town that `pagewire demo` shows, and a bicycle shop (`radhaus`) whose pages and questions were
written by people who had not seen this code; and a real one (`npm-docs`, bench/corpora.py), asked what people asked in
public issues. `demo-de` and `radhaus-de` are the German pages of the first two alone, asked in other languages
(sites/SITE/foreign.yaml); `demo-everyday` asks the town for what offices call otherwise (sites/demo/everyday.yaml).
Each set is split by a seed into a part to tune on and a hold-out: of the hold-out only sums are shown, so that nothing
is chosen by it. Nothing here asks a model to judge.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import httpx
import typer
import yaml
from rich.progress import track

from adapters.elastic.tenancy import SHARED_INDEXES, place
from bench.corpora import manual_documents, manual_text
from bench.misspelled import misspelled
from bench.report import interval, report
from bench.servers import system
from pipelines.evaluate import dataset
from pipelines.evaluate.wording import says
from pipelines.query.answer.clock import CLOCK
from schemas.answer import Certainty
from schemas.page import PageDocument
from sites.content import DEMO, page_documents

SITE = "demo"
ROOTS: Mapping[str, Path] = {SITE: DEMO, "radhaus": DEMO.parent / "radhaus"}
MANUAL = "npm-docs"
GERMAN: Mapping[str, str] = {"demo-de": SITE, "radhaus-de": "radhaus"}  # whose pages they are
EVERYDAY: Mapping[str, str] = {"demo-everyday": SITE}  # the same
LANGUAGES = ["de", "en"]  # of all sites but these
HOLD_OUT = 1 / 3
HALF = 1 / 2  # of the small sets
SEED = 20_261_123  # of the split; another one would let tuned questions into the hold-out
LONGEST = 900  # characters of a useful answer

Part = Literal["tune", "hold-out", "all"]
Site = Literal["demo", "radhaus", "npm-docs", "demo-de", "radhaus-de", "demo-everyday"]


class Case(dataset.Case):
    """A question, and what makes an answer to it useful. Any of its pages first is right."""

    lang: str
    expect: dataset.Expect

    @property
    def kind(self) -> str:
        return self.tags[0]


@dataclass(frozen=True)
class Shown:
    """What a visitor was shown."""

    answer: str
    grade: int
    pages: tuple[str, ...]  # of the sources, in their order
    cited: tuple[str, ...]  # of those that were quoted
    certainty: Certainty | None = None
    linked: tuple[str, ...] = ()  # of those that are named as a link


@dataclass(frozen=True)
class Verdict:
    """One case, judged. `page_first` is None where no page is expected."""

    case: Case
    useful: bool
    wrong: bool  # material shown that answers something else, or nothing
    refused: bool  # although the site says it
    page_first: bool | None
    length: int
    certainty: Certainty | None = None
    facts: bool = False  # all of them are on the screen
    page: bool = False  # a right page is


def cases(site: str = SITE) -> list[Case]:
    """All that are asked of one site, in a stable order. Raises: ValidationError."""
    files = sorted((DEMO.parent / site / "visitors").glob("*.yaml"))
    if site in GERMAN:
        files = [ROOTS[GERMAN[site]] / "foreign.yaml"]
    if site in EVERYDAY:
        files = [ROOTS[EVERYDAY[site]] / "everyday.yaml"]
    return [Case.model_validate(each) for file in files for each in yaml.load(file.read_bytes(), yaml.CSafeLoader)]


def unfounded(every: Iterable[Case], texts: Mapping[str, str]) -> list[str]:
    """What a case says of its pages and does not stand there: "id: fact on page". `texts`: by the page's id."""
    return [
        f"{case.id}: {fact} on {page}"
        for case in every
        for page in case.pages
        for fact in case.facts
        if not says(texts.get(page, ""), fact)
    ]


def part_of(every: Sequence[Case], part: Part, held_out: float = HOLD_OUT) -> list[Case]:
    """The cases of one part: a third of each kind and language is held out, by the seed."""
    if part == "all":
        return list(every)
    held: set[str] = set()
    strata: dict[tuple[str, str], list[str]] = {}
    for case in every:
        strata.setdefault((case.lang if case.lang in LANGUAGES else "other", case.kind), []).append(case.id)
    rng = random.Random(SEED)
    for _, ids in sorted(strata.items()):
        shuffled = sorted(ids)
        rng.shuffle(shuffled)
        whole, rest = divmod(len(ids) * held_out, 1)
        held.update(shuffled[: int(whole) + (rng.random() < rest)])
    return [case for case in every if (case.id in held) == (part == "hold-out")]


def judged(case: Case, shown: Shown) -> Verdict:
    """Useful: all facts, nothing told that must not be, not too long; or rightly nothing.

    What stands on a page beside the facts is no wrong material where a place is shown: it asserts nothing.
    """
    told = shown.certainty != "place"
    broke = told and says(shown.answer, case.never)
    facts = all(says(shown.answer, fact) for fact in case.facts)
    page_first = None
    if case.expect == "answer":
        useful = facts and not broke and bool(shown.cited) and len(shown.answer) <= LONGEST
        elsewhere = bool(shown.cited) and shown.cited[0] not in case.pages and not facts
        wrong = told and bool(shown.cited) and (broke or elsewhere)
        page_first = bool(shown.pages) and shown.pages[0] in case.pages
    else:
        wrong = told and (broke or bool(shown.cited))
        # A courtesy is an answer of its own: nothing was searched, so nothing was not found.
        useful = not wrong and not shown.cited and (case.expect == "refuse" or (shown.grade == 0 and not shown.pages))
    refused = case.expect == "answer" and not shown.cited
    page = any(each in case.pages for each in (shown.cited[:1] or shown.linked))
    length = len(shown.answer)
    return Verdict(case, useful, wrong, refused, page_first, length, shown.certainty, facts and useful, page)


def main(
    part: Annotated[
        Part, typer.Option(help="`tune` to look at, `hold-out` to report (its single answers are not shown), or `all`.")
    ] = "tune",
    show: Annotated[bool, typer.Option("--show", help="Print the questions that were not answered usefully.")] = False,
    site: Annotated[
        Site,
        typer.Option(
            help="`demo`, `radhaus` (a bicycle shop), their German pages alone (`demo-de`, `radhaus-de`), `npm-docs`, "
            "`demo-everyday`."
        ),
    ] = "demo",
    shared: Annotated[bool, typer.Option("--shared", help="The site shares its index with the other one.")] = False,
    misspell: Annotated[bool, typer.Option("--misspell", help="One word of each question is misspelled.")] = False,
) -> None:
    """Everyday questions on a website: useful answers, wrong material, false refusals, per kind and language."""
    wanted = part_of(cases(site), part, HALF if site in (*GERMAN, *EVERYDAY) else HOLD_OUT)
    wanted = list(_misspelled(wanted)) if misspell else wanted
    verdicts = asyncio.run(_asked(site, wanted, shared))
    clocked = sum(case.now is not None for case in wanted)
    about = f"{len(verdicts)} everyday questions on {site} ({part}), no model; {clocked} at a time of their own"
    about += "; misspelled" if misspell else ""
    about += f"; in one index with {', '.join(_others(site))}" if shared else ""
    kept = _kept(verdicts, part)
    report("visitors", about, COLUMNS, _lines(verdicts), site=site, part=part, seed=SEED, verdicts=kept)
    report("visitors-certainty", about, BY_CERTAINTY, _by_certainty(verdicts), site=site, part=part, seed=SEED)
    if show and part != "hold-out":
        for verdict in verdicts:
            if not verdict.useful:
                flags = " ".join(name for name in ("wrong", "refused") if getattr(verdict, name))
                print(f"{verdict.case.id:28} {flags:14} {verdict.case.question}")


BY_CERTAINTY = ("certainty", "n", "answerable", "facts shown", "right page", "wrong", "unanswerable")
COLUMNS = ("of", "n", "useful", "95 %", "wrong material", "false refusals", "page first", "median length")


def _lines(verdicts: Sequence[Verdict]) -> list[tuple[object, ...]]:
    groups: dict[str, list[Verdict]] = {"all": list(verdicts)}
    for verdict in verdicts:
        lang = verdict.case.lang
        groups.setdefault(f"in {lang if lang in LANGUAGES else 'other languages'}", []).append(verdict)
    for verdict in sorted(verdicts, key=lambda each: each.case.kind):
        groups.setdefault(verdict.case.kind, []).append(verdict)
    return [_line(name, some) for name, some in groups.items()]


def _by_certainty(verdicts: Sequence[Verdict]) -> list[tuple[object, ...]]:
    lines: list[tuple[object, ...]] = []
    for certainty in get_args(Certainty):
        some = [each for each in verdicts if each.certainty == certainty]
        answerable = [each for each in some if each.case.expect == "answer"]
        shares = (_share(each.facts for each in answerable), _share(each.page for each in answerable))
        wrong = _share(each.wrong or (each.case.expect == "answer" and not each.page) for each in some)
        lines.append((certainty, len(some), len(answerable), *shares, wrong, len(some) - len(answerable)))
    return lines


def _misspelled(every: Iterable[Case]) -> Iterator[Case]:
    """The twins of questions that are not misspelled as it is, and have a word that is long enough."""
    for case in every:
        question = misspelled(case.question, f"{SEED} {case.id}")
        if case.kind != "typo" and question != case.question:
            yield case.model_copy(update={"question": question})


def _line(name: str, verdicts: Sequence[Verdict]) -> tuple[object, ...]:
    useful, low, high = interval([each.useful for each in verdicts])
    answerable = [each for each in verdicts if each.case.expect == "answer"]
    firsts = [each.page_first for each in verdicts if each.page_first is not None]
    lengths = sorted(each.length for each in answerable if not each.refused)
    return (
        name,
        len(verdicts),
        useful,
        f"{low:.2f}-{high:.2f}",
        _share(each.wrong for each in verdicts),
        _share(each.refused for each in answerable),
        _share(firsts),
        lengths[len(lengths) // 2] if lengths else "",
    )


def _share(flags: Iterable[bool]) -> float | str:
    values = list(flags)
    return sum(values) / len(values) if values else ""


def _kept(verdicts: Iterable[Verdict], part: Part) -> list[Mapping[str, Any]]:
    """Single verdicts for a look; of the hold-out none."""
    if part != "tune":
        return []
    return [
        {"id": each.case.id, "useful": each.useful, "wrong": each.wrong, "refused": each.refused} for each in verdicts
    ]


async def _asked(site: str, wanted: Sequence[Case], shared: bool) -> list[Verdict]:
    beside = {}
    if shared:
        os.environ["PAGEWIRE_SITE_INDEX"] = "shared"
        beside = {_neighbour(site, other): other for other in _others(site)}
    async with system([site, *beside], languages=languages(site)) as (started, client):
        for name, pages in {site: site, **beside}.items():
            await fill(name, started.url, client, pages)
        clock = started.settings.home / CLOCK
        verdicts = []
        for case in track(wanted, "asking"):
            clock.write_text(case.now.isoformat() if case.now else "", encoding="utf-8")
            verdicts.append(judged(case, await _shown(client, site, case)))
        return verdicts


def _others(site: str) -> list[str]:
    return [other for other in ROOTS if other != site]


def _neighbour(site: str, other: str) -> str:
    """What to call the other site, so that it comes into the same shared index."""
    names = (f"{other}-{number}" for number in count())
    return next(name for name in names if place(name, 1, SHARED_INDEXES) == place(site, 1, SHARED_INDEXES))


async def fill(site: str, url: str, client: httpx.AsyncClient, pages: str | None = None) -> None:
    """The site's pages, all searchable. `pages`: whose, if the site is called otherwise here."""
    for document in _documents(pages or site, f"{url}/site"):
        page = PageDocument.model_validate(document)
        answer = await client.put(
            f"/sites/{site}/pages/{page.id}?wait=searchable&timeout=120",
            content=page.model_dump_json(exclude_none=True),
            headers={"Content-Type": "application/json"},
        )
        assert answer.status_code == 200, answer.text


def languages(site: str) -> list[str]:
    """Of its pages, the first one for visitors who show none."""
    return LANGUAGES[:1] if site in GERMAN else LANGUAGES


def _documents(site: str, base_url: str) -> Iterator[Mapping[str, Any]]:
    if site != MANUAL:
        pages = page_documents(ROOTS[GERMAN.get(site) or EVERYDAY.get(site, site)], base_url)
        yield from (page for page in pages if page["lang"] in languages(site))
        return
    found = list(manual_documents(base_url))
    wrong = unfounded(cases(site), {page["id"]: manual_text(page) for page in found})
    assert not wrong, wrong
    yield from found


async def _shown(client: httpx.AsyncClient, site: str, case: Case) -> Shown:
    """The answer to the case's question, after the visitor's earlier ones in the same conversation."""
    conversation: dict[str, str] = {}
    for question in (*case.history, case.question):
        response = await client.post(f"/sites/{site}/chat", json={"question": question, **conversation})
        response.raise_for_status()
        told = response.json()
        conversation = {"conversation_id": told["conversation_id"]}
    return Shown(
        answer=told["answer"],
        grade=told["grade"],
        pages=tuple(source["page_id"] for source in told["sources"]),
        cited=tuple(source["page_id"] for source in told["sources"] if source["cited"]),
        certainty=told["certainty"],
        linked=tuple(source["page_id"] for source in told["sources"] if f"(<{source['url']}>)" in told["answer"]),
    )
