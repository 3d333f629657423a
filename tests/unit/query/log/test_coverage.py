"""Coverage: what is asked and not covered, what is covered and not asked, and what an editor is told of each."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from pipelines.query.log import coverage as module
from pipelines.query.log.coverage import coverage, of_kind
from pipelines.query.log.gaps import Period, wordings
from pipelines.query.log.placing import Placed
from pipelines.query.log.ports import Asked, AskedHit, SitePage, SitePages
from pipelines.runtime.embedder import Matrix32
from schemas.coverage import CoverageReport, CoverageTopic
from tests.asking import NOON

PERIOD = Period.of_days(30, NOON)
SUBJECTS = {"pool": 0, "library": 1, "sauna": 2, "dogs": 3, "chess": 4}


def asked(text: str | None, id: int = 1, *, cites: str = "", **more: Any) -> Asked:
    said: dict[str, Any] = {"became": "answered" if cites else "refused", "question": text, "text": text, "lang": "en"}
    said["hits"] = (AskedHit(cites, "en", cites, f"/{cites}", 0.8, cited=True),) if cites else ()
    return Asked(request_id=f"request-{id:04}", asked_at=NOON - timedelta(days=1), **said | more)


def page(id: str, title: str = "") -> SitePage:
    return SitePage(id, "en", title or id.title(), f"/{id}")


def at(texts: list[str]) -> tuple[Matrix32, np.ndarray[Any, Any]]:
    """Vectors and topics, by the first subject that a text names."""
    numbers = np.array([next(n for name, n in SUBJECTS.items() if name in text.lower()) for text in texts], np.int64)
    return np.eye(len(SUBJECTS), dtype=np.float32)[numbers], numbers


def reported(pages: list[SitePage], questions: list[Asked], **more: Any) -> CoverageReport:
    every = wordings(questions)
    vectors, numbers = at([one.text for one in every])
    middles, topics = at([f"{one.page_id} {one.title}" for one in pages])
    cosines = vectors @ middles.T
    placed = Placed(
        topics,
        numbers,
        cosines.argmax(axis=1) if len(pages) else np.full(len(every), -1),
        1 - cosines.max(axis=1) if len(pages) else np.full(len(every), 2.0, np.float32),
        1 - cosines.max(axis=0) if len(every) else np.full(len(pages), 2.0, np.float32),
    )
    found = SitePages(tuple(pages), middles, **more)
    return coverage("town", PERIOD, questions, every, vectors, found, placed, made_at=NOON)


def topics(made: CoverageReport) -> dict[str, CoverageTopic]:
    return {topic.label: topic for topic in made.topics}


def test_pages_and_questions_are_told_by_topic() -> None:
    questions = [
        asked("Pool prices", 1, cites="pool"), asked("pool prices", 2, cites="pool"), asked("Pool hours?", 3),
        asked("Is there a sauna?", 4), asked("sauna hours", 5, became="page", lang="de"), asked(None, 6),
    ]  # fmt: skip
    made = reported([page("pool"), page("library"), page("library-card", "Library card")], questions, hidden=2)
    assert (made.pages, made.hidden, made.asked, made.without_words) == (3, 2, 6, 1)
    assert [(topic.kind, topic.label) for topic in made.topics] == [
        ("uncovered", "Is there a sauna?"),
        ("unasked", "Library"),
        ("covered", "Pool"),
    ]
    sauna, library, pool = made.topics
    assert (sauna.asked, sauna.answered, sauna.refused, sauna.missed, sauna.pages) == (2, 0, 1, 2, 0)
    assert (sauna.distance, sauna.languages) == (1.0, {"en": 1, "de": 1})
    assert (pool.asked, pool.answered, pool.refused, pool.pages, pool.distance) == (3, 2, 1, 1, 0.0)
    assert [(one.question, one.asked) for one in pool.questions] == [("Pool prices", 2), ("Pool hours?", 1)]
    assert [(one.page_id, one.url, one.cited, one.distance) for one in pool.page_samples] == [("pool", "/pool", 2, 0.0)]
    assert (library.asked, library.pages, library.distance, library.questions) == (0, 2, 1.0, ())
    assert {word for topic in made.topics for word in topic.words} >= {"pool", "sauna", "library"}
    count = made.uncovered
    assert (count.topics, count.pages, count.asked, count.answered, count.refused) == (1, 0, 2, 0, 1)
    assert (made.unasked.pages, made.covered.pages, made.covered.asked) == (2, 1, 3)


def test_questions_belong_to_the_pages_that_their_answers_cite_wherever_they_lie() -> None:
    made = reported([page("chess"), page("library")], [asked("dogs", cites="chess")])
    assert [(topic.kind, topic.label, topic.asked) for topic in made.topics] == [
        ("unasked", "Library", 0),
        ("covered", "Chess", 1),
    ]


@pytest.mark.parametrize(("refused", "expected"), [(1, "covered"), (2, "uncovered")])
def test_what_few_answers_cite_does_not_cover_a_topic(refused: int, expected: str) -> None:
    said = [asked(f"dogs {n}", n) for n in range(refused)]
    found = topics(reported([page("chess")], [*said, asked("dogs", 9, cites="chess")]))
    [topic] = [topic for topic in found.values() if topic.asked]
    assert (topic.kind, topic.asked, topic.answered) == (expected, refused + 1, 1)
    assert [one.page_id for one in topic.page_samples] == ["chess"]  # its own, else the nearest there is


@pytest.mark.parametrize(("others", "expected"), [(2, "covered"), (5, "unasked")])
def test_what_is_cited_far_less_than_pages_on_the_whole_is_not_asked(others: int, expected: str) -> None:
    questions = [asked(f"pool {n}", n, cites="pool") for n in range(others)]
    found = topics(
        reported([page("chess"), page("pool"), page("library")], [*questions, asked("chess", 99, cites="chess")])
    )
    assert (found["Chess"].kind, found["Chess"].asked, found["Library"].kind) == (expected, 1, "unasked")


def test_a_page_that_the_reader_may_not_see_is_named_nowhere() -> None:
    made = reported([page("pool")], [asked("dogs", cites="secret")])
    assert "secret" not in made.model_dump_json()
    assert topics(made)["dogs"].kind == "covered"  # it was answered, whoever may read by what


def test_the_title_nearest_the_middle_is_the_label_else_the_id() -> None:
    assert topics(reported([page("pool", "\n Pool  hours ")], [])).keys() == {"Pool hours"}
    assert reported([SitePage("pool", "en", "", "")], []).topics[0].label == "pool"
    assert reported([SitePage("pool", "en", "", "")], []).topics[0].distance is None


def test_a_site_without_pages_covers_nothing() -> None:
    [topic] = reported([], [asked("dogs")]).topics
    assert (topic.kind, topic.distance, topic.page_samples) == ("uncovered", None, ())
    assert reported([], []).topics == ()


def test_few_of_very_many_are_listed_and_all_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 1)
    made = reported([], [asked("dogs", 1), asked("sauna", 2), asked("Sauna hours", 3)])
    assert ([topic.asked for topic in made.topics], made.uncovered.topics, made.uncovered.asked) == ([2], 2, 3)


def test_one_kind_of_topics_or_some_of_each() -> None:
    made = reported(
        [page("pool"), page("library")], [asked("dogs", 1), asked("sauna", 2), asked("pool", 3, cites="pool")]
    )
    assert [topic.kind for topic in of_kind(made, "unasked", 9).topics] == ["unasked"]
    assert [topic.kind for topic in of_kind(made, None, 1).topics] == ["uncovered", "unasked", "covered"]
