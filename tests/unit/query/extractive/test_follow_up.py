import pytest

from pipelines.query.extractive.follow_up import continued, leans
from schemas.query import MAX_QUESTION, Turn

CARD = "What does a library card cost for adults?"


def said(*questions: str) -> list[Turn]:
    return [Turn(question=question, answer="The site says so.") for question in questions]


@pytest.mark.parametrize(
    "question",
    [
        "And for children?",
        "And what does it cost?",
        "What does it cost?",
        "What about children?",
        "Is it open on Sunday?",
        "When are they open?",
        "Und für den zweiten?",
        "Was kostet das?",
        "Und was kostet das für Kinder?",
        "Wie komme ich dort hin?",
        "És a gyerekeknek mennyi?",
        "A dla dzieci ile?",
        "E per i bambini?",
        "¿Y para los niños?",
        "Et pour les enfants ?",
        "Și pentru copii cât?",
    ],
)
def test_what_cannot_stand_alone_is_asked_with_the_question_before(question: str) -> None:
    assert continued(question, said(CARD)) == f"{CARD} {question}"
    assert continued(question, []) == question


@pytest.mark.parametrize(
    "question",
    [
        "Where is the museum?",
        "Is there a swimming pool?",
        "Is it allowed to swim in the lake?",
        "When does the town hall open on Mondays?",
        "And where do I register my car, my trailer and my boat?",
        "Wo ist das Museum?",
        "Gibt es ein Schwimmbad?",
        "Wo kann ich das Auto anmelden?",
        "Was kostet die Hundesteuer?",
        "¿Dónde está el museo?",
        "Où est le musée ?",
        "Gdzie jest muzeum?",
        "犬の税金はいくらですか？",
        "?",
    ],
)
def test_a_new_topic_stands_alone(question: str) -> None:
    assert not leans(question)
    assert continued(question, said(CARD)) == question


def test_a_chain_of_follow_ups_goes_back_to_what_they_are_about() -> None:
    history = said("Where is the museum?", CARD, "And for children?")
    assert continued("And for students?", history) == f"{CARD} And for children? And for students?"
    assert continued("And now?", said(*["And then?"] * 9)).count("And then?") == 3


def test_a_question_never_grows_past_the_longest() -> None:
    assert continued("And for children?", said("a" * MAX_QUESTION)) == "And for children?"
