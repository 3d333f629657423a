"""What two texts say in numbers is the same, however each of them writes it."""

from __future__ import annotations

import pytest

from text.figures import Figure, figures, weekdays_between


def only(text: str, lang: str) -> Figure:
    [figure] = figures(text, [lang])
    return figure


@pytest.mark.parametrize(
    ("passage", "lang", "sentence", "other_lang"),
    [
        ("1.480 Euro", "de", "€1,480", "en"),
        ("12 480", "de", "12.480", "de"),
        ("38,5 Mio. Euro", "de", "38.5 million euros", "en"),
        ("3 Wochen", "de", "21 days", "en"),
        ("zwei Stunden", "de", "120 minutes", "en"),
        ("0,5 %", "de", "0.5 per cent", "en"),
        ("1 200 zł", "pl", "1200 PLN", "en"),
        ("١٢ يورو", "ar", "12 euros", "en"),
        ("每年12欧元", "zh", "12 €", "de"),
        ("15. August", "de", "August 15th", "en"),
        ("15.8.", "de", "15 August", "en"),
        ("2027-02-05", "en", "5. Februar", "de"),
        ("5 febbraio 2027", "it", "5.2.2027", "de"),
        ("14.30 Uhr", "de", "2:30 pm", "en"),
        ("9 h 30", "fr", "9:30", "en"),
        ("07345 8891-20", "de", "+49 7345 889120", "de"),
        ("mittwochs", "de", "Wednesday", "en"),
        ("ab 1923 geöffnet", "de", "1923", "en"),
        ("31 December 2024", "en", "2024", "en"),
        ("Average 1.05", "en", "It is 1.05.", "en"),  # or the first of May, in German
        ("It is 1.05.", "en", "1,05", "de"),
        ("It is 5.00.", "en", "5", "en"),  # no month 0
    ],
)
def test_the_same_in_two_writings(passage: str, lang: str, sentence: str, other_lang: str) -> None:
    assert only(passage, lang).bears(only(sentence, other_lang))


@pytest.mark.parametrize(
    ("passage", "lang", "sentence", "other_lang"),
    [
        ("12 Euro", "de", "99 euros", "en"),
        ("84 £", "en", "84 dollars", "en"),
        ("14 Tage", "de", "14 weeks", "en"),
        ("0,5 %", "de", "5 %", "de"),
        ("15. August", "de", "15 April", "en"),
        ("5.2.2027", "de", "5.2.2026", "de"),
        ("from 8:00 to 18:00", "en", "at 8 pm", "en"),
        ("07345 8891-20", "de", "07345 8891-21", "de"),
        ("mittwochs", "de", "Thursday", "en"),
        ("1.05 points", "en", "It is 1.06.", "en"),
        ("1.05 euros", "en", "am 1.05.", "de"),
    ],
)
def test_not_the_same(passage: str, lang: str, sentence: str, other_lang: str) -> None:
    assert not any(figure.bears(only(sentence, other_lang)) for figure in figures(passage, [lang]))


def test_a_number_without_a_unit_may_be_of_any() -> None:
    assert only("Fee in euros: 12", "en").bears(only("12 euros", "en"))


def test_words_that_look_like_figures_are_none() -> None:
    assert figures("So können Sie es machen.", ["de"]) == []
    assert figures("May I come? An all too common 3D thing.", ["en"]) == []
    assert figures("La moartea sa a venit.", ["ro"]) == []


def test_a_range_of_weekdays_holds_those_between() -> None:
    text = "Mo-Fr und So"
    assert weekdays_between(figures(text, ["de"]), text) == {0, 1, 2, 3, 4, 6}
