"""Gaps: the questions of a period as groups of one meaning, and what the site misses of each.

the log's questions ─▶ wordings ─▶ (grouping) ─▶ groups: label, counts, samples, pages near them, trend
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

import numpy as np

from pipelines.query.log.frequent import wording_of
from pipelines.query.log.grouping import Numbers
from pipelines.query.log.ports import GroupableQuestion
from pipelines.runtime.embedder import Matrix32
from schemas.gaps import Covered, GapCounts, GapPage, GapQuestion, GapReport, QuestionGroup, Trend
from text.language import stopwords
from text.words import words

WORDS = 4  # of a group
Miss = Literal["refused", "disliked", "unsure", "unfounded"]

NOBODY_ASKED = datetime(2000, 1, 1, tzinfo=UTC)
KEPT = 500  # groups of each list
SAMPLES, PAGES = 5, 3  # of a group
CHANGED, AT_LEAST = 1.25, 2  # what is no more "the same": by so much, and by so many questions
NOTHING_NEAR = 5  # a grade


def telling(listed: Iterable[Sequence[str]], every: Iterable[Sequence[str]]) -> list[tuple[str, ...]]:
    """Of each listed group of texts the words that many of its texts have and few groups of all do.

    As TF-IDF of classes (Grootendorst 2022, BERTopic), counted once per text.
    """
    empty = frozenset[str]().union(*stopwords().values())

    def said(group: Sequence[str]) -> Counter[str]:
        return Counter(word for text in group for word in set(words(text)) if word not in empty and len(word) > 1)

    groups = 0
    having: Counter[str] = Counter()
    for group in every:
        groups += 1
        having.update(set(said(group)))
    found = []
    for group in listed:
        own = said(group)
        best = sorted(own, key=lambda word: (-own[word] * math.log(1 + groups / having[word]), word))
        found.append(tuple(best[:WORDS]))
    return found


@dataclass(frozen=True)
class Period:
    """A period, and the one before it, which is as long."""

    since: datetime
    until: datetime

    @classmethod
    def of_days(cls, days: float, until: datetime) -> Period:
        return cls(_earlier(until, timedelta(days=days)), until)

    @property
    def before(self) -> datetime:
        """Where the one before begins."""
        return _earlier(self.since, self.until - self.since)


def _earlier(moment: datetime, by: timedelta) -> datetime:
    """But not before anybody can have asked: a calendar has a beginning."""
    return moment - max(min(by, moment - NOBODY_ASKED), timedelta())


@dataclass(frozen=True)
class Wording:
    """Questions in the same words, whatever their case, accents and marks. The newest first."""

    text: str  # understandable by itself; as most write it, else as the newest has it
    lang: str
    questions: tuple[GroupableQuestion, ...]


def wordings(asked: Iterable[GroupableQuestion]) -> list[Wording]:
    """Of all questions with words, in the order in which they are first met."""
    same: dict[tuple[str, ...], list[GroupableQuestion]] = {}
    for one in asked:
        if one.text:
            same.setdefault(wording_of(one.text) or (one.text,), []).append(one)
    return [
        Wording(Counter(one.text or "" for one in every).most_common(1)[0][0], every[0].lang, tuple(every))
        for every in same.values()
    ]


def misses(one: GroupableQuestion) -> frozenset[Miss]:
    """What was wrong with the answer. Who likes a page or an answer was helped by it, however unsure it was; what an
    editor has said is as it should be, if no visitor dislikes it."""
    found: set[Miss] = set()
    if one.became == "refused" and not one.corrected:
        found.add("refused")
    if one.rating == "down":
        found.add("disliked")
    if one.rating != "up":
        if one.became == "page" and not one.corrected:
            found.add("unsure")
        if one.left_out:
            found.add("unfounded")
    return frozenset(found)


def trend(now: int, before: int) -> Trend:
    """How a count stands against the one of the period before."""
    if not now:
        return "gone" if before else "same"
    if not before:
        return "new"
    if abs(now - before) < AT_LEAST or max(now, before) < CHANGED * min(now, before):
        return "same"
    return "up" if now > before else "down"


def report(
    site: str,
    period: Period,
    asked: Sequence[GroupableQuestion],
    grouped: Sequence[Wording],
    vectors: Matrix32,
    numbers: Numbers,
    *,
    made_at: datetime,
    cut: bool = False,
) -> GapReport:
    """
    Args:
        asked: all questions of the period and of the one before.
        grouped: their wordings, with a row of `vectors` and a number of a group for each.
        cut: not all of them were read.
    """
    members: dict[int, list[int]] = defaultdict(list)
    for place, number in enumerate(numbers.tolist()):
        members[number].append(place)
    every = [_Group.of([grouped[n] for n in places], vectors[places], period) for places in members.values()]
    listed = sorted(every, key=_most_missed)[:KEPT]
    most_asked_first = sorted(every, key=lambda group: (-group.asked, -group.missed, group.wordings[0].text))
    listed += [group for group in most_asked_first[:KEPT] if group not in listed]
    spoken = telling((group.texts for group in listed), (group.texts for group in every))
    return GapReport(
        site=site,
        before=period.before,
        since=period.since,
        until=period.until,
        made_at=made_at,
        counts=counts(one for one in asked if one.asked_at >= period.since),
        counts_before=counts(one for one in asked if one.asked_at < period.since),
        cut=cut,
        groups=tuple(group.made(said) for group, said in zip(listed, spoken, strict=True)),
        total=len(every),
    )


def most_missed(made: GapReport, limit: int) -> GapReport:
    """The groups that something was missed of in the period, most missed first."""
    return _of(made, [group for group in made.groups if group.missed], limit)


def most_asked(made: GapReport, limit: int) -> GapReport:
    asked = [group for group in made.groups if group.asked]
    return _of(made, sorted(asked, key=lambda group: (-group.asked, -group.missed, group.label)), limit)


def _of(made: GapReport, groups: Sequence[QuestionGroup], limit: int) -> GapReport:
    return made.model_copy(update={"groups": tuple(groups[:limit]), "total": len(groups)})


def counts(asked: Iterable[GroupableQuestion]) -> GapCounts:
    numbers: Counter[str] = Counter()
    for one in asked:
        missed = misses(one)
        numbers.update(("asked", *missed, *(("missed",) if missed else ()), *(() if one.text else ("without_words",))))
    return GapCounts(**numbers)


class _Shown(NamedTuple):
    place: int  # of the wording
    question: GroupableQuestion  # in these words, as a sample
    asked: int
    missed: bool


class _Group:
    """Wordings of one meaning, the counts made once: groups are sorted by them."""

    def __init__(self, wordings: Sequence[Wording], weights: Sequence[float], period: Period) -> None:
        """`weights`: how near each wording is to the middle."""
        self.wordings = wordings
        self._near = weights
        self._period = period
        every = [one for wording in wordings for one in wording.questions]
        self._now = [one for one in every if one.asked_at >= period.since]
        before = [one for one in every if one.asked_at < period.since]
        self._missed = [one for one in self._now if misses(one)]
        self.asked, self.asked_before = len(self._now), len(before)
        self.missed, self.missed_before = len(self._missed), sum(bool(misses(one)) for one in before)
        self.worse = sum(misses(one) != {"unsure"} for one in self._missed)
        self._every = every

    @classmethod
    def of(cls, wordings: Sequence[Wording], vectors: Matrix32, period: Period) -> _Group:
        weights = np.array([len(wording.questions) for wording in wordings], dtype=np.float32)
        return cls(wordings, (vectors @ (weights @ vectors)).tolist(), period)

    @property
    def texts(self) -> list[str]:
        return [wording.text for wording in self.wordings]

    def made(self, said: tuple[str, ...]) -> QuestionGroup:
        shown = self._shown()
        label = self.wordings[max(shown, key=lambda each: (self._near[each.place], -each.place)).place]
        now = self._now or self._every
        last_missed = max((one.asked_at for one in self._missed), default=None)
        last_asked = max(one.asked_at for one in now)
        languages = Counter(one.lang for one in now)
        kinds = Counter[str](miss for one in self._missed for miss in misses(one))
        near = covered(self._missed)
        return QuestionGroup(
            id=label.questions[0].request_id,
            label=_line(label.text),
            words=said,
            asked=self.asked,
            asked_before=self.asked_before,
            missed=self.missed,
            missed_before=self.missed_before,
            trend=trend(self.missed, self.missed_before)
            if self.missed or self.missed_before
            else trend(self.asked, self.asked_before),
            **kinds,
            covered=near,
            languages=dict(sorted(languages.items(), key=lambda each: (-each[1], each[0]))),
            questions=tuple(_sample(self.wordings[each.place].text, each) for each in shown[:SAMPLES]),
            pages=() if near == "nothing" else pages(self._missed or now),
            last_asked=last_asked,
            last_missed=last_missed,
            closing=last_missed is not None and last_missed < last_asked,
        )

    def _shown(self) -> list[_Shown]:
        """Wordings of the period, those asked most first; if something was missed, those that were."""
        since = self._period.since if self._now else self._period.before
        found = []
        for place, wording in enumerate(self.wordings):
            own = [one for one in wording.questions if one.asked_at >= since]
            if own:
                missed = [one for one in own if misses(one)]
                found.append(_Shown(place, (missed or own)[0], len(own), bool(missed)))
        found.sort(key=lambda each: (-each.missed, -each.asked, each.place))
        return [each for each in found if each.missed] if self._missed else found


def _most_missed(group: _Group) -> tuple[object, ...]:
    """Pages that were shown come last: without a model they are ordinary, and most of them the right ones."""
    return (-group.worse, -group.missed, -group.asked, -group.missed_before, group.wordings[0].text)


def _sample(text: str, shown: _Shown) -> GapQuestion:
    one = shown.question
    return GapQuestion(
        request_id=one.request_id,
        question=_line(text),
        lang=one.lang,
        asked_at=one.asked_at,
        asked=shown.asked,
        became=one.became,
        missed=shown.missed,
    )


def _line(text: str) -> str:
    return " ".join(text.split())


def covered(missed: Iterable[GroupableQuestion]) -> Covered | None:
    """What most visitors got: an answer, a page or titles of some, nothing."""
    got: Counter[Covered] = Counter()
    for one in missed:
        if one.became == "answered":
            got["there"] += 1
        elif one.became == "page" or (one.became == "refused" and one.grade is not None and one.grade < NOTHING_NEAR):
            got["near"] += 1
        elif one.became == "refused":
            got["nothing"] += 1
    # "Nothing" beside questions that were shown a page would not be so.
    return max(got, key=lambda each: (got[each], each != "nothing", each), default=None)


def pages(asked: Iterable[GroupableQuestion]) -> tuple[GapPage, ...]:
    """Those that were found for the questions, by how often and how near."""
    near: dict[tuple[str, str], list[float | None]] = defaultdict(list)
    cited: Counter[tuple[str, str]] = Counter()
    named: dict[tuple[str, str], tuple[str, str]] = {}
    for one in asked:
        best: dict[tuple[str, str], float | None] = {}
        for hit in one.hits:
            page = (hit.page_id, hit.lang)
            named.setdefault(page, (hit.title, hit.url))  # of the newest question
            best[page] = max((each for each in (best.get(page), hit.cosine) if each is not None), default=None)
        for page, cosine in best.items():
            near[page].append(cosine)
        cited.update({(hit.page_id, hit.lang) for hit in one.hits if hit.cited})
    first = sorted(near, key=lambda page: (-sum(cosine or 0.0 for cosine in near[page]), -len(near[page]), page))
    return tuple(
        GapPage(
            page_id=page[0],
            lang=page[1],
            title=named[page][0],
            url=named[page][1],
            distance=_distance(near[page]),
            found=len(near[page]),
            cited=cited[page],
        )
        for page in first[:PAGES]
    )


def _distance(cosines: Iterable[float | None]) -> float | None:
    known = [cosine for cosine in cosines if cosine is not None]
    return round(1 - sum(known) / len(known), 4) if known else None
