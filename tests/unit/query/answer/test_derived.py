"""Figures that follow from a page's by one step of arithmetic, and those that do not."""

from __future__ import annotations

import pytest

from pipelines.query.answer.derived import MOST
from pipelines.query.answer.grounding import Grounds
from tests.asking import source

COURSE = (
    "The course costs 90 euros and has ten lessons of 45 minutes. Members pay 80 euros. Brothers and sisters pay half. "
    "It starts at 16:00 and ends at 17:30 on 12 March. Register three days before."
)
TICKET = "Ein Fahrschein kostet 3,60 Euro. Mit dem Pass gibt es 25 Prozent Rabatt."


def doubted(said: str, page: str = COURSE, lang: str = "en", question: str = "") -> str | None:
    doubt = Grounds([source(1, page, lang=lang)], question, lang).doubt(said, [1])
    return doubt and doubt.said


@pytest.mark.parametrize(
    "said",
    [
        "Members save 10 euros.",
        "A member and a guest together pay 170 euros.",
        "A brother pays 45 euros.",
        "One lesson works out at 9 euros.",
        "Three courses cost 270 euros.",
        "A brother and a sister who is no member pay 135 euros together.",
        "It takes an hour and a half.",
        "Register by 9 March.",
        "A ten-year-old pays 45 euros.",
    ],
)
def test_what_follows_is_no_doubt(said: str) -> None:
    assert doubted(said) is None


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("A brother pays 40 euros.", None),  # half of what members pay
        ("A brother pays 55 euros.", "55 euros"),
        ("Members save 15 euros.", "15 euros"),
        ("One lesson works out at 12 euros.", "12 euros"),
        ("The course costs 900 euros.", "900 euros"),  # ten lessons of 90 euros: nobody says "ten" here
        ("It takes two and a half hours.", "two and a half hours"),
        ("It takes three hours.", "three hours"),
        ("Register by 10 March.", "10 March."),
        ("The first lesson ends at half past five.", None),  # as the course does
        ("The first lesson ends at a quarter to five.", "five."),  # what lasts 45 minutes stands elsewhere
        ("The first lesson ends at half past six.", "six."),
    ],
)
def test_what_does_not_follow_is_doubted(said: str, what: str | None) -> None:
    assert doubted(said) == what


def test_a_number_that_is_only_multiplied_with_need_not_be_on_the_page() -> None:
    assert doubted("Vier Fahrten kosten 14,40 Euro.", TICKET, "de") is None
    assert doubted("Vier Fahrten kosten 15,40 Euro.", TICKET, "de") == "Vier"
    assert doubted("Das sind 18 Euro.", TICKET, "de", "Was kosten fünf Fahrten?") is None
    assert doubted("Mit dem Pass zahlen Sie 2,70 Euro.", TICKET, "de") is None
    assert doubted("Mit dem Pass zahlen Sie 75 Prozent.", TICKET, "de") is None
    assert doubted("Mit dem Pass zahlen Sie 70 Prozent.", TICKET, "de") == "70 Prozent"


def test_of_many_prices_nearly_everything_would_follow_so_nothing_does() -> None:
    few, many = ("".join(f"Room {n} costs {100 + n * n} euros. " for n in range(count)) for count in (MOST, MOST + 1))
    assert doubted("Rooms 1 and 2 cost 205 euros together.", few) is None
    assert doubted("Rooms 1 and 2 cost 205 euros together.", many) == "205 euros"


@pytest.mark.parametrize(
    ("lang", "page", "said", "what"),
    [
        ("fr", "Fermé à 18 h 30.", "La salle ferme à six heures et demie.", None),
        ("fr", "Fermé à 18 h 30.", "La salle ferme à sept heures et demie.", "sept heures et demie"),
        ("fr", "Un retard coûte 20 centimes.", "Un retard coûte 0,20 euro.", None),
        ("it", "Costa 1,50 euro. I soci hanno uno sconto del 50 per cento.", "I soci pagano 75 centesimi.", None),
        ("es", "Cierra a las 20 horas.", "Cierra a las ocho.", None),
        ("en", "The tour starts at 2.30 pm and lasts ninety minutes.", "It ends at four o'clock.", None),
        ("en", "We close at 6 pm. Last entry is one hour before.", "You get in until 5 pm.", None),
        ("en", "We close at 6 pm. Last entry is one hour before.", "You get in until 7 pm.", "7 pm."),
        ("en", "Open Monday to Saturday. Closed in May.", "It is open six days a week.", None),
        ("en", "Open Monday to Saturday. Closed in May.", "It is open five days a week.", "five days a"),
        ("en", "The pool is open from April to September.", "It is open in July.", None),
        ("en", "The pool is open from April to September.", "It is open in October.", "October."),
        ("en", "A month costs 65 euros, a year 650 euros.", "You save 130 euros a year.", None),
        ("en", "A month costs 65 euros, a year 650 euros.", "A year costs as much as ten months.", None),
        ("en", "The office opens at 2 pm.", "You have two months.", "two months"),
        ("en", "It takes six weeks.", "It takes about a month and a half.", None),
        ("en", "It takes six weeks.", "It takes a month and a half.", "a month and a half"),
        ("en", "Open from 9:00 to 16:30.", "It closes at 4.30 in the afternoon.", None),
        ("en", "Open from 9:00 to 16:30.", "It closes at 5.30 in the afternoon.", "5.30"),
        ("en", "Closed on Wednesday afternoons.", "On Wednesdays it is only open in the morning.", None),
        ("en", "Closed on Wednesdays.", "On Wednesdays it is open.", "On Wednesdays it is open"),
        (
            "en",
            "The trip takes 35 minutes. On Sundays a bus runs every half hour.",
            "It takes just over half an hour.",
            None,
        ),
        ("es", "Cierra a las 20 horas.", "Cierra a las nueve de la noche.", "nueve"),
        ("de", "Geöffnet bis 21:30 Uhr.", "Bis halb zehn ist geöffnet.", None),
        ("de", "Geöffnet bis 21:30 Uhr.", "Bis halb elf ist geöffnet.", "elf"),
    ],
)
def test_hours_in_words_and_parts_of_a_currency(lang: str, page: str, said: str, what: str | None) -> None:
    assert doubted(said, page, lang) == what


@pytest.mark.parametrize(
    ("lang", "page", "said", "what"),
    [
        ("it", "Il mercato è in via Roma.", "Si trova in via Milano.", "Milano"),
        ("it", "Il mercato è in via Roma.", "Si trova in via Roma.", None),
        ("fr", "Rendez-vous place Jean-Moulin.", "C'est place Victor-Hugo.", "Victor-Hugo"),
        ("de", "Ansprechpartner ist Herr Yilmaz.", "Fragen Sie Herrn Yilmaz.", None),
        ("de", "Es hilft Herr Yilmaz.", "Es hilft Herr Acar.", "Acar"),
        ("en", "The dean is Dr Osborne.", "Dr Baker is the dean.", "Baker"),
        (
            "de",
            "Montag Ruhetag. Dienstag bis Freitag 7 bis 20 Uhr.",
            "Am Montag ist geöffnet.",
            "Am Montag ist geöffnet",
        ),
        ("de", "Montag Ruhetag. Dienstag bis Freitag 7 bis 20 Uhr.", "Am Dienstag ist geöffnet.", None),
        ("fr", "En août, le marché est suspendu.", "Le marché n'a pas lieu en août.", None),
    ],
)
def test_another_name_after_the_same_word_and_a_day_that_is_only_named_as_closed(
    lang: str, page: str, said: str, what: str | None
) -> None:
    assert doubted(said, page, lang) == what
