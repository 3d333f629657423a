"""How answers are compared with reference answers: worked examples, and SQuAD's formula on random cases."""

from __future__ import annotations

import random
import re
import string
from collections import Counter

import pytest

from pipelines.evaluate.wording import covers, exact, says, token_f1, tokens


def squads_words(text: str) -> list[str]:
    """SQuAD's `normalize_answer`, as its evaluation script for 2.0 has it."""
    text = "".join(letter for letter in text.lower() if letter not in set(string.punctuation))
    return " ".join(re.compile(r"\b(a|an|the)\b", re.UNICODE).sub(" ", text).split()).split()


def squads_f1(gold: str, said: str) -> float:
    """SQuAD's `compute_f1`."""
    wanted, given = squads_words(gold), squads_words(said)
    same = sum((Counter(wanted) & Counter(given)).values())
    if not wanted or not given:
        return float(wanted == given)
    if same == 0:
        return 0.0
    precision, recall = same / len(given), same / len(wanted)
    return (2 * precision * recall) / (precision + recall)


def test_exact_and_f1_are_squads_on_random_cases() -> None:
    rng = random.Random(23)
    pieces = [
        "the",
        "The",
        "a",
        "An",
        "18",
        "euros,",
        "€18",
        "card.",
        "Card",
        "library's",
        "theory",
        "-",
        "don't",
        "“x”",
        "",
    ]
    for _ in range(1_000):
        gold, said = (" ".join(rng.choices(pieces, k=rng.randrange(6))) for _ in range(2))
        assert tokens(said) == squads_words(said)
        assert exact(said, gold) == float(squads_words(said) == squads_words(gold))
        assert token_f1(said, gold) == pytest.approx(squads_f1(gold, said))


def test_a_worked_example() -> None:
    """ "A card costs 18 euros a year." against "18 euros": 2 words are common, of 5 said ("a" is none) and 2 wanted."""
    said, gold = "A card costs 18 euros a year.", "18 euros"
    assert tokens(said) == ["card", "costs", "18", "euros", "year"]
    assert exact(said, gold) == 0
    assert exact("The 18 Euros!", gold) == 1
    assert covers(said, gold) == 1
    assert token_f1(said, gold) == pytest.approx(2 * (2 / 5) * (2 / 2) / (2 / 5 + 2 / 2))  # 0.571


@pytest.mark.parametrize(
    ("said", "gold", "lang", "covered"),
    [
        ("It costs 118 euros", "18 euros", "en", 0),  # by words, not by letters
        ("18 or so euros", "18 euros", "en", 0),  # one after the other
        ("Der Ausweis kostet „18 Euro“ im Jahr", "18 Euro", "de", 1),
        ("Der Ausweis", "Ausweis", "de", 1),
        ("the Ausweis", "Ausweis", "de-AT", 1),
        ("图书证每年18欧元", "18欧元", "zh", 1),
        ("", "18", "en", 0),
        ("", "", "en", 1),
        ("anything", "", "en", 0),
    ],
)
def test_an_answer_covers_what_stands_in_it(said: str, gold: str, lang: str, covered: float) -> None:
    assert covers(said, gold, lang) == covered


def test_articles_are_those_of_the_language() -> None:
    assert exact("die Bibliothek", "Bibliothek", "de") == 1
    assert exact("die Bibliothek", "Bibliothek", "en") == 0
    assert exact("the library", "library", "de") == 0
    assert exact("the library", "library", None) == 1


def test_a_statement_is_said_in_one_of_its_spellings() -> None:
    assert says("A card costs\u00a018 EUROS.", ("€18", "18 euros"))
    assert not says("A card costs 18.", ("€18", "18 euros"))
    assert not says("A card costs 18.", ())
