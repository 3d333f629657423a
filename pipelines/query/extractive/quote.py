"""Quote: answers without a model, in the pages' own words. The answer stage calls it.

    evidence ─▶ units about the question's day first ─▶ certain? ─ yes ─▶ quotation: "The website says:"
                                                                 └ no ──▶ card: "On this page:"

The retrieve stage has ranked the evidence. Sources without evidence (an old index, or sources that a strategy has found
later) are ranked here, by the words that their units share with the question.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import islice

from babel import Locale, UnknownLocaleError
from babel.core import get_global
from babel.dates import format_date

from pipelines.query.extractive.card import card
from pipelines.query.extractive.certainty import asked, certain, covered, is_named, itself, languages
from pipelines.query.extractive.days import (
    asked_day,
    asks_every,
    lacks_day,
    matching_rows,
    said_days,
    weekdays_in,
)
from pipelines.query.extractive.follow_ups import signs
from pipelines.query.extractive.quotation import (
    DATED,
    Quotation,
    Unsure,
    answering,
    by_part,
    for_follow_up,
    on_day,
    unread,
)
from pipelines.query.extractive.replies import candidates
from pipelines.query.extractive.wanted import priced
from pipelines.query.search.fuse import idf
from schemas.query import Evidence, Part, Retrieved, Source, Sure
from text.markdown import escaped, plain
from text.units import units
from text.words import stems

QUOTABLE = ("content", "description")  # fields; a title answers nothing
READ = 5  # sources to compare by words
MOST = 200  # units of these sources
SHARED, RANK = 6.0, 0.5  # weights of the score: share of the question's words, rank of the source


@dataclass(frozen=True)
class OwnWords:
    """Our words around a quotation, in the visitor's language.

    Args:
        lead_in: before a quotation.
        closest: before a card, with the page's title.
        missing: before a part of a question without an answer.
        no_row: before a table of weekdays without the question's day.
    """

    lead_in: str
    closest: str
    missing: str
    no_row: str

    def on(self, day: str) -> OwnWords:
        """These words below the name of the question's day."""
        written = f"**{day}**\n\n"
        return replace(self, lead_in=written + self.lead_in, closest=written + self.closest)

    def without(self, day: str) -> OwnWords:
        """These words below the name of a day that the table does not have."""
        return replace(self, closest=f"**{day}**\n\n{self.no_row}\n\n{self.closest}")


def quote(retrieved: Retrieved, now: datetime, own: OwnWords) -> Quotation:
    """A quotation or a card; empty without evidence.

    Args:
        now: in the site's time zone.
    """
    request = retrieved.request
    evidence = list(retrieved.evidence) or by_words(retrieved.question, retrieved.sources)
    if not evidence:
        return Quotation(())
    questions, words = dict.fromkeys((request.question, retrieved.question)), own  # the visitor's own words first
    evidence = priced(evidence, retrieved.sources, request.question, retrieved.question, request.lang)
    missed = False  # whether the table has no row for the day
    day, by = next(((day, each) for each in questions if (day := asked_day(each, now, request.lang))), (None, ""))
    if day is not None:
        evidence, found = on_day(evidence, day, _language(evidence, retrieved), _on_page(evidence, retrieved))
        missed = not found and _lacks_row(evidence, day, request.question, retrieved)
        dated = found and not asks_every(by, request.lang)
        named = _written(day, request.lang, now)
        words = own.without(named) if missed else own.on(named) if dated else own
    goes_on = retrieved.question not in request.question
    leans = goes_on or (bool(request.history) and signs(retrieved.question).refers)
    sure = not leans and not missed and _certain(retrieved.question, evidence, retrieved.sure, retrieved)
    if request.replaced and (others := unread(evidence, request.replaced)):
        evidence, sure = others, False  # the visitor asks again, so the former answer was not the wanted one
    elif request.history and goes_on:
        evidence, _ = for_follow_up(evidence, request.history[-1].answer)
    parts = [] if request.replaced else [_dated(part, now, retrieved) for part in retrieved.parts]
    if answered := [part for part in parts if _certain(part.question, part.evidence, part.sure, retrieved)]:
        unsure = [_unsure(part, answered, own, retrieved) for part in parts if part not in answered]
        return by_part([part.evidence for part in answered], words.lead_in, unsure, retrieved.tables)
    if not sure or parts:
        about = _subjects(evidence, questions, retrieved)
        # Prose that names a weekday is seldom about this day.
        lists = evidence[0].kind in ("row", "item") and about(evidence[0]) is not None
        lead_in, path = _linked((words if lists else own).closest, evidence[0], retrieved)
        meant = _meant(evidence, day, about, retrieved)
        return card(evidence, retrieved.sources, lead_in, retrieved.tables, meant, path)
    return answering(_with_siblings(evidence, day, retrieved), words.lead_in, retrieved.tables)


def _with_siblings(evidence: Sequence[Evidence], day: date | None, retrieved: Retrieved) -> list[Evidence]:
    """The best unit and the others of its block; of rows, those about the asked day or weekday, if there are any."""
    best, lang = evidence[0], _language(evidence, retrieved)
    block = [each for each in evidence if (each.n, each.block) == (best.n, best.block)]
    if best.kind not in ("row", "item"):
        return block
    rows = [plain(each.text[:DATED]) for each in block]
    if day is not None:
        about = matching_rows(rows, day, lang)
    else:
        asked_for = weekdays_in(retrieved.question, languages(retrieved.question, retrieved.request.lang, lang))
        about = [n for n, row in enumerate(rows) if not asked_for.isdisjoint(said_days(row, lang).weekdays)]
    return [block[n] for n in about] or block


def _lacks_row(evidence: Sequence[Evidence], day: date, question: str, retrieved: Retrieved) -> bool:
    """Whether the best unit is a row of opening hours by weekday, and no row of its table is about the day."""
    best, lang = evidence[0], _language(evidence, retrieved)
    rows = [plain(each.text[:DATED]) for each in evidence if (each.n, each.block) == (best.n, best.block)]
    wants, _ = asked(question, languages(question, retrieved.request.lang, lang))
    return "opening" in wants and best.kind == "row" and len(rows) == best.of and lacks_day(rows, day, lang)


def _subjects(
    evidence: Sequence[Evidence], questions: Iterable[str], retrieved: Retrieved
) -> Callable[[Evidence], list[str] | None]:
    """A function from a unit to the subject that it covers; None if the unit and its headings lack some word of it.

    "Is the library open on Friday?" is not answered by the pool's Friday.
    """
    page = _language(evidence, retrieved)
    subjects = [asked(each, languages(each, retrieved.request.lang, page))[1] for each in questions]
    titles = {source.n: source.title for source in retrieved.sources}
    return lambda row: next((each for each in subjects if covered(each, row, titles.get(row.n, ""))), None)


def _meant(
    evidence: Sequence[Evidence],
    day: date | None,
    about: Callable[[Evidence], list[str] | None],
    retrieved: Retrieved,
) -> Callable[[Evidence], bool]:
    """A function that decides whether the question asks for a row, by its name or by its day."""
    page = _language(evidence, retrieved)
    of_day = matching_rows([plain(each.text[:DATED]) for each in evidence], day, page) if day is not None else ()
    days = {(evidence[n].n, evidence[n].start) for n in of_day}
    names = Counter((n, block, name) for n, block, _, name in {(e.n, e.block, e.start, itself(e)) for e in evidence})

    def meant(row: Evidence) -> bool:
        subject = about(row)
        # Of two rows "Adult tennis", for two ages, neither is meant by its name.
        alone = names[row.n, row.block, itself(row)] == 1
        return subject is not None and ((row.n, row.start) in days or (alone and is_named(row, subject)))

    return meant


def by_words(question: str, sources: Sequence[Source]) -> list[Evidence]:
    """Evidence from sources without any: their units, best first by the words shared with the question."""
    read = ([source for source in sources if source.field in QUOTABLE] or list(sources))[:READ]
    every = ((rank, unit) for rank, source in enumerate(read) for unit in units(source.text, source.lang))
    found = list(islice(every, MOST))
    there = [frozenset(stems(unit.sense(read[rank].title))) for rank, unit in found]
    having = Counter(stem for each in there for stem in each)
    weights = {stem: idf(having[stem], len(found)) for stem in stems(question) if having[stem]}
    total = sum(weights.values()) or 1.0
    sizes = Counter((rank, unit.block) for rank, unit in found)
    evidence = [
        Evidence(
            n=read[rank].n,
            start=unit.start,
            text=unit.text,
            kind=unit.kind,
            headings=unit.headings,
            intro=unit.intro,
            header=unit.header,
            block=unit.block,
            of=sizes[rank, unit.block],
            score=SHARED * sum(weights[stem] for stem in weights.keys() & stems_) / total - RANK * rank,
        )
        for (rank, unit), stems_ in zip(found, there, strict=True)
        if unit.kind != "heading"
    ]
    return sorted(evidence, key=lambda each: -each.score)


def _certain(question: str, evidence: Sequence[Evidence], sure: Sure | None, retrieved: Retrieved) -> bool:
    """Whether the best unit is quoted as the answer."""
    if not evidence or not retrieved.evidence:
        return False
    source = next(source for source in retrieved.sources if source.n == evidence[0].n)
    return certain(question, retrieved.request.lang, evidence[0], source, sure)


def _unsure(part: Part, answered: Sequence[Part], own: OwnWords, retrieved: Retrieved) -> Unsure:
    asked = f"“{part.question}”"
    if not part.evidence or (part.sure is not None and part.sure.of == "nothing"):
        return Unsure(f"{own.missing} {asked}", part.evidence, shown=False)
    best = part.evidence[0]
    quoted = any(best.n == other.evidence[0].n for other in answered)  # the quotation already links the page
    lead_in, path = (own.closest, []) if quoted else _linked(own.closest, best, retrieved)
    return Unsure(" › ".join((f"{asked}: {lead_in}", *path)), part.evidence, shown=True)


def _dated(part: Part, now: datetime, retrieved: Retrieved) -> Part:
    """The part with the units about its day first, if it names one."""
    day = asked_day(part.question, now, retrieved.request.lang) if part.evidence else None
    if day is None:
        return part
    first, _ = on_day(part.evidence, day, _language(part.evidence, retrieved), _on_page(part.evidence, retrieved))
    return part.model_copy(update={"evidence": tuple(first)})


def _linked(closest: str, best: Evidence, retrieved: Retrieved) -> tuple[str, list[str]]:
    """The lead-in with the page's title, linked if it has an address, and the headings above the unit."""
    source = next(source for source in retrieved.sources if source.n == best.n)
    [(title, url)] = candidates([source]) or [(escaped(source.title, linked=True), "")]
    path = [escaped(heading) for heading in best.headings if heading.casefold() != title.casefold()]
    return f"{closest} [{title}](<{url}>)" if url else f"{closest} {title}".rstrip(), path


def _on_page(evidence: Sequence[Evidence], retrieved: Retrieved) -> frozenset[int]:
    """The numbers of the sources from the best unit's page."""
    url = next(source.url for source in retrieved.sources if source.n == evidence[0].n)
    return frozenset(source.n for source in retrieved.sources if source.url == url)


def _language(evidence: Sequence[Evidence], retrieved: Retrieved) -> str:
    """The language of the best unit's page."""
    return next(source.lang for source in retrieved.sources if source.n == evidence[0].n)


def _written(day: date, lang: str, now: datetime) -> str:
    """The day in the visitor's language, as in the country of the site's time zone: "Monday, 23 November 2026"."""
    country = get_global("zone_territories").get(str(now.tzinfo), "")
    for tag in (f"{lang}-{country}", lang):
        with suppress(UnknownLocaleError, ValueError):
            return str(format_date(day, "full", locale=Locale.parse(tag, sep="-")))
    return day.isoformat()
