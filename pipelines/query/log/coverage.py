"""Coverage: topics of pages and questions together; which are asked and not covered, and which the other way round.

groups of questions ─▶ mostly answered? ─ yes ─▶ the topic of the pages that these answers cite: covered
                             └ no ─▶ a topic of its own: not covered
topics of pages ─▶ cited half as often as pages are on the whole, or less? ─ yes ─▶ not asked
                                                                               └ no ─▶ covered and asked
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

import numpy as np

from pipelines.query.log.gaps import SAMPLES, Period, Wording, misses
from pipelines.query.log.grouping import Numbers
from pipelines.query.log.placing import NONE, Placed
from pipelines.query.log.ports import Asked, SitePages
from pipelines.query.log.telling import telling
from pipelines.runtime.embedder import Matrix32
from schemas.coverage import CoverageCount, CoverageReport, CoverageTopic, TopicKind, TopicPage
from schemas.gaps import GapQuestion
from schemas.ingest import Vector32

KEPT = 500  # topics of each kind
PAGES = 5  # samples of a topic
KINDS: tuple[TopicKind, ...] = ("uncovered", "unasked", "covered")
ANSWERED = 0.5  # of a group's questions: if so many are, the site covers it
# Of the citations that a topic's pages had if all pages were cited alike: up to so many, nobody asks for it. Nearly
# every page is cited once by a wrong answer, where many are asked. Chosen on the tuned half of `bench coverage`.
ASKED_LITTLE = 0.5


def coverage(
    site: str,
    period: Period,
    asked: Sequence[Asked],
    wordings: Sequence[Wording],
    questions: Matrix32,
    found: SitePages,
    placed: Placed,
    *,
    made_at: datetime,
    cut: bool = False,
) -> CoverageReport:
    """
    Args:
        asked: all questions of the period.
        wordings: theirs, with a row of `questions` for each.
        placed: where these and the pages of `found` belong.
        cut: not all questions were read.
    """
    every = topics_of(wordings, questions, found, placed)
    of = {kind: sorted((topic for topic in every if topic.kind == kind), key=_order) for kind in KINDS}
    listed = [topic for kind in KINDS for topic in of[kind][:KEPT]]
    said = telling((topic.texts for topic in listed), (topic.texts for topic in every))
    return CoverageReport(
        site=site,
        since=period.since,
        until=period.until,
        made_at=made_at,
        pages=len(found.pages),
        hidden=found.hidden,
        asked=len(asked),
        without_words=sum(not one.text for one in asked),
        pages_cut=found.cut,
        questions_cut=cut,
        uncovered=_counted(of["uncovered"]),
        unasked=_counted(of["unasked"]),
        covered=_counted(of["covered"]),
        topics=tuple(topic.made(words) for topic, words in zip(listed, said, strict=True)),
    )


def of_kind(made: CoverageReport, kind: TopicKind | None, limit: int) -> CoverageReport:
    """The first topics of a kind; None: so many of each."""
    kinds = KINDS if kind is None else (kind,)
    shown = [topic for each in kinds for topic in [one for one in made.topics if one.kind == each][:limit]]
    return made.model_copy(update={"topics": tuple(shown)})


def _counted(topics: Sequence[Topic]) -> CoverageCount:
    return CoverageCount(
        topics=len(topics),
        pages=len({place for topic in topics for place in topic.pages}),
        asked=sum(topic.asked for topic in topics),
        answered=sum(topic.answered for topic in topics),
        refused=sum(topic.refused for topic in topics),
    )


def _order(topic: Topic) -> tuple[object, ...]:
    if topic.kind == "unasked":
        return (-len(topic.pages), topic.asked, topic.texts[0])
    return (-topic.asked, -topic.refused, -len(topic.pages), topic.texts[0])


def topics_of(wordings: Sequence[Wording], questions: Matrix32, found: SitePages, placed: Placed) -> list[Topic]:
    """All of them; the arguments are those of `coverage`."""
    place_of = {(page.page_id, page.lang): place for place, page in enumerate(found.pages)}
    cited = [_cited(wording, place_of) for wording in wordings]
    known = _Known(wordings, questions, found, placed, cited)
    topics: list[Topic] = []
    joining: dict[int, list[int]] = defaultdict(list)
    for group in _together(placed.questions):
        topic = known.most_cited(group)
        if not known.answered(group):
            topics.append(Topic(known, "uncovered", (), group))
        elif topic is None:  # by pages that are gone, or that the reader may not read
            topics.append(Topic(known, "covered", (), group))
        else:
            joining[topic] += group
    usual = known.by_page.total() / max(len(found.pages), 1)  # citations of a page
    for pages in _together(placed.pages):
        little = sum(known.by_page[page] for page in pages) <= ASKED_LITTLE * usual * len(pages)
        asked = joining[int(placed.pages[pages[0]])]
        topics.append(Topic(known, "unasked" if little else "covered", pages, asked))
    return topics


def _together(numbers: Numbers) -> list[list[int]]:
    """Places of equal numbers, in the order in which they first appear."""
    found: dict[int, list[int]] = defaultdict(list)
    for place, number in enumerate(numbers.tolist()):
        found[number].append(place)
    return list(found.values())


def _cited(wording: Wording, place_of: Mapping[tuple[str, str], int]) -> Counter[int]:
    """In how many of its answers each page is cited; pages that are gone, or that the reader may not read, are not."""
    found: Counter[int] = Counter()
    for one in wording.questions:
        pages = {(hit.page_id, hit.lang) for hit in one.hits if hit.cited}
        found.update(place_of[page] for page in pages if page in place_of)
    return found


class _Known:
    """What all topics are made of."""

    def __init__(
        self,
        wordings: Sequence[Wording],
        questions: Matrix32,
        found: SitePages,
        placed: Placed,
        cited: Sequence[Counter[int]],
    ) -> None:
        self.wordings = wordings
        self.questions = questions
        self.pages = found.pages
        self.vectors = found.vectors
        self.placed = placed
        self.cited = cited
        self.by_page = Counter[int]()  # answers that cite it
        for counts in cited:
            self.by_page.update(counts)

    def answered(self, group: Sequence[int]) -> bool:
        """Whether most of the group's questions were."""
        became = [one.became for place in group for one in self.wordings[place].questions]
        return became.count("answered") >= ANSWERED * len(became)

    def most_cited(self, group: Sequence[int]) -> int | None:
        """The topic of pages that most of the group's answers cite; None: they cite no page that is known."""
        topics: Counter[int] = Counter()
        for place in group:
            for page, count in self.cited[place].items():
                topics[int(self.placed.pages[page])] += count
        return max(topics, key=lambda topic: (topics[topic], -topic), default=None)


class Topic:
    """Pages and wordings, counted once: topics are sorted by it."""

    def __init__(self, known: _Known, kind: TopicKind, pages: Sequence[int], wordings: Sequence[int]) -> None:
        """Places of its pages, and of its wordings, which are `own`."""
        self._known = known
        self.kind: TopicKind = kind
        self.pages = list(pages)
        self._wordings = wordings
        self.own = [known.wordings[place] for place in wordings]
        self._every = [one for wording in self.own for one in wording.questions]
        became = Counter(one.became for one in self._every)
        self.asked, self.answered, self.refused = len(self._every), became["answered"], became["refused"]

    @property
    def texts(self) -> list[str]:
        """Titles and questions."""
        return [self._known.pages[place].title for place in self.pages] + [wording.text for wording in self.own]

    def made(self, words: tuple[str, ...]) -> CoverageTopic:
        languages = Counter(one.lang for one in self._every)
        return CoverageTopic(
            kind=self.kind,
            label=self._label(),
            words=words,
            pages=len(self.pages),
            asked=self.asked,
            answered=self.answered,
            refused=self.refused,
            missed=sum(bool(misses(one)) for one in self._every),
            distance=self._distance(),
            languages=dict(sorted(languages.items(), key=lambda each: (-each[1], each[0]))),
            page_samples=self._page_samples(),
            questions=self._question_samples(),
        )

    def _label(self) -> str:
        """The title, else the question, that is nearest to the middle of its kind."""
        if self.pages:
            places, vectors, weights = self.pages, self._known.vectors, np.ones(len(self.pages), dtype=np.float32)
        else:
            places, vectors = list(self._wordings), self._known.questions
            weights = np.array([len(wording.questions) for wording in self.own], dtype=np.float32)
        own = vectors[places]
        nearest = places[int((own @ (weights @ own)).argmax())]
        if not self.pages:
            return _line(self._known.wordings[nearest].text)
        page = self._known.pages[nearest]
        return _line(page.title) or page.page_id

    def _distance(self) -> float | None:
        placed = self._known.placed
        if not self._wordings:
            return _known(float(placed.to_question[self.pages].min()))
        often = [len(wording.questions) for wording in self.own]
        return _known(float(np.average(placed.to_page[list(self._wordings)], weights=often)))

    def _page_samples(self) -> tuple[TopicPage, ...]:
        """Those that are cited most, then the nearest; of a topic without pages the nearest of any."""
        near = Counter[int](place for place in self._known.placed.nearest[list(self._wordings)].tolist() if place >= 0)
        places = self.pages or list(near)
        distances, cited = self._distances(places), self._known.by_page
        order = sorted(range(len(places)), key=lambda n: (-cited[places[n]], distances[n], places[n]))
        return tuple(
            TopicPage(
                page_id=page.page_id,
                lang=page.lang,
                title=page.title,
                url=page.url,
                distance=_known(float(distances[n])),
                cited=cited[places[n]],
            )
            for n in order[:PAGES]
            for page in [self._known.pages[places[n]]]
        )

    def _distances(self, places: Sequence[int]) -> Vector32:
        """Of each page: to the topic's questions, mean; where there are none, to the nearest."""
        if not self._wordings:
            nearest: Vector32 = self._known.placed.to_question[list(places)]
            return nearest
        middle = self._known.questions[list(self._wordings)].mean(axis=0)
        distances: Vector32 = 1 - self._known.vectors[list(places)] @ middle
        return distances

    def _question_samples(self) -> tuple[GapQuestion, ...]:
        first = sorted(range(len(self.own)), key=lambda n: (-len(self.own[n].questions), n))[:SAMPLES]
        return tuple(_sample(self.own[n]) for n in first)


def _sample(wording: Wording) -> GapQuestion:
    """Its newest question stands for it."""
    one = wording.questions[0]
    return GapQuestion(
        request_id=one.request_id,
        question=_line(wording.text),
        lang=one.lang,
        asked_at=one.asked_at,
        asked=len(wording.questions),
        became=one.became,
        missed=bool(misses(one)),
    )


def _known(distance: float) -> float | None:
    return round(distance, 4) if distance < NONE else None


def _line(text: str) -> str:
    return " ".join(text.split())
