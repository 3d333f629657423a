"""Questions that ask two things: where they are split, where not, and how a part is weighed."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.query.extractive.parts import by_part, parts
from pipelines.query.extractive.ranking import weigh
from pipelines.query.search.ports import Candidates
from pipelines.query.search.search import Retrieval
from pipelines.runtime.embedder import Matrix32
from tests.fakes.embedder import FakeEmbedder
from tests.unit.query.extractive.test_ranking import QUESTION, TERMS, hit, texts, towards, unit


@pytest.mark.parametrize(
    ("question", "lang", "expected"),
    [
        (
            "What does a permit cost, and where do I get it?",
            "en",
            ("What does a permit cost", "where do I get it"),
        ),
        ("how much is the sauna and could i borrow a towel", "en", ("how much is the sauna", "could i borrow a towel")),
        ("Is the library open and can I bring a dog?", "en", ("Is the library open", "can I bring a dog")),
        ("My car is gone. Who has it? What do I pay?", "en", ("My car is gone. Who has it", "What do I pay")),
        ("when do you empty it and from what time", "en", ("when do you empty it", "from what time")),
        ("Wo ist der Hof, und hat der montags auf?", "de", ("Wo ist der Hof", "hat der montags auf")),
        ("weg!! was kostet ein neuer + wie lang dauert es", "de", ("weg!! was kostet ein neuer", "wie lang dauert es")),
        ("wie heißt sie und an welchem Tag übt ihr", "de", ("wie heißt sie", "an welchem Tag übt ihr")),
        ("Mennyibe kerül a belépő és mikor nyit ki?", "hu", ("Mennyibe kerül a belépő", "mikor nyit ki")),
        ("Ile kosztuje basen i kiedy jest otwarty?", "pl", ("Ile kosztuje basen", "kiedy jest otwarty")),
        ("Quanto costa la tessera e dove la ritiro?", "it", ("Quanto costa la tessera", "dove la ritiro")),
        ("¿Cuánto cuesta la piscina y cuándo abre hoy?", "es", ("¿Cuánto cuesta la piscina", "cuándo abre hoy")),
        ("Combien coûte la carte et où l’obtenir ?", "fr", ("Combien coûte la carte", "où l’obtenir")),
        ("Cât costă permisul și unde îl primesc?", "ro", ("Cât costă permisul", "unde îl primesc")),
        ("كم تكلفة المسبح ومتى يفتح؟", "ar", ("كم تكلفة المسبح", "متى يفتح")),
        ("כמה עולה הבריכה ומתי היא פתוחה?", "he", ("כמה עולה הבריכה", "מתי היא פתוחה")),
    ],
)
def test_a_question_that_asks_two_things_has_two_parts(question: str, lang: str, expected: tuple[str, ...]) -> None:
    assert parts(question, lang) == expected


@pytest.mark.parametrize(
    ("question", "lang"),
    [
        ("What does a permit cost?", "en"),
        ("When and where is the market?", "en"),  # one thing, twice
        ("Can I pay by card and in cash?", "en"),
        ("Can I pay by card or do I need cash?", "en"),
        ("Where are the salt and the sand?", "en"),
        ("I moved here and where do I register?", "en"),  # the first half only tells something
        ("Who knows, when is the market?", "en"),
        ("What is it, where is it and how much is it?", "en"),  # three
        ("Hallo! Wo ist der Hof?", "de"),
        ("Was gehört in die Tonne und was nicht?", "de"),  # the other half of the same
        ("Ich weiß nicht, wo und wann der Markt ist.", "de"),
        ("Bibliothek und Museum", "de"),
        ("什么时候开放？", "zh"),
        ("", "en"),
    ],
)
def test_what_is_not_surely_two_questions_stays_one(question: str, lang: str) -> None:
    assert parts(question, lang) == ()


def test_a_part_is_looked_for_on_its_topics_page_first() -> None:
    permit = hit("permit", 0, 0.5, unit("Room 3 has yours.", 0.8))
    passport = hit("passport", 0, 0.5, unit("Room 4 has yours.", 0.81))
    findings = weigh("where do I get it", QUESTION, [permit, passport], (), TERMS, 10, topic="permits")
    assert texts(findings)[0] == "Room 4 has yours."
    assert texts(findings.preferring(permit.page_key))[0] == "Room 3 has yours."


def test_the_words_of_the_topic_count_less_than_those_of_the_part() -> None:
    both = hit("a", 0, 0.5, unit("The pool.", 0.8), unit("Open.", 0.8, start=20))
    assert texts(weigh("open", QUESTION, [both], (), TERMS, 10, topic="pool"))[0] == "Open."


class Model(FakeEmbedder):
    """Knows the sense of what it was told alone."""

    async def query(self, text: str) -> Matrix32:
        return np.array([0.0, 1.0] if "towel" in text else [1.0, 0.0], np.float32)


async def test_each_part_has_its_own_best_unit_and_the_second_takes_the_whole_questions_sense_along() -> None:
    page = hit("pool", 0, 0.5, unit("A ticket.", 1.0), unit("Bring one.", 0.3, start=20))
    candidates = Candidates([page], [], TERMS, 10)
    found = Retrieval([page], candidates, Model(), [], QUESTION)
    asked = await by_part(("what does it cost", "could I borrow a towel"), found, [page], [])
    assert [part.findings.units[0].unit.text for part in asked] == ["A ticket.", "Bring one."]
    alone = float(np.dot(towards(0.3), [0.0, 1.0]))
    assert asked[1].findings.units[0].cosine > alone
    assert await by_part((), found, [page], []) == []
    assert await by_part(("a b", "c d"), found, [hit("pool", 0, 0.5)], []) == []
