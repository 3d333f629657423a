"""Masking: what identifies a person goes, what only looks like it stays."""

from __future__ import annotations

from time import process_time

import pytest

from bench.masking import CASES, cases, judged, part_of
from text.masking import masked, published, regions_of

DE = ("DE",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Write to anna@mail.example.", "Write to [e-mail]."),
        ("anna [at] mail.example or anna＠mail.example", "[e-mail] or [e-mail]"),
        ("Ring 0171 2345678, or +44 7400 123456!", "Ring [phone], or [phone]!"),
        ("رقمي ٠١٧١٢٣٤٥٦٧٨", "رقمي [phone]"),
        ("DE89 3704 0044 0532 0130 00 please", "[iban] please"),
        ("de89370400440532013000", "[iban]"),
        ("DE89 3704 0044 0532 0130 01 is none", "DE89 3704 0044 0532 0130 01 is none"),
        ("4111 1111 1111 1111, 4111-1111-1111-1111", "[card], [card]"),
        ("4111 1111 1111 1112 is none", "4111 1111 1111 1112 is none"),
        ("2026/04712-33 and 048/815/08155", "2026/04712-33 and 048/815/08155"),
        ("115, 116117, 0800 1234567", "115, 116117, 0800 1234567"),
        ("08:00-12:00, 24.12.2026, 17309, 1.250,00 EUR", "08:00-12:00, 24.12.2026, 17309, 1.250,00 EUR"),
        ("", ""),
    ],
)
def test_what_is_masked(text: str, expected: str) -> None:
    assert masked(text, DE) == expected


def test_what_a_site_publishes_stays() -> None:
    known = published(["Town hall: 030 23125-100, hall@town.example"], DE)
    said = "Is it +49 30 23125100 or HALL@town.example? Mine is 030 23125-101."
    assert masked(said, DE, known) == "Is it +49 30 23125100 or HALL@town.example? Mine is [phone]."


def test_a_country_is_that_of_the_clock_or_of_the_languages() -> None:
    assert regions_of("Europe/Budapest", ("de",)) == ("HU",)
    assert regions_of("UTC", ("de", "en", "pt-BR", "zz", "de")) == ("DE", "US", "BR")
    assert masked("0171 2345678", regions_of("UTC", ("zz",))) == "0171 2345678"
    assert masked("+49 171 2345678", ()) == "[phone]"


@pytest.mark.parametrize("piece", ["1 2-3 45 ", "a.a@a.", "a@b.", "DE12 3456 ", "0171 2345678 ", "4111 ", "x"])
def test_the_longest_question_is_masked_in_a_moment(piece: str) -> None:
    began = process_time()
    masked((piece * 4_000)[:4_000], DE)
    assert process_time() - began < 2  # some 30 ms; quadratic would be many seconds


def test_the_written_set_is_as_large_as_it_says_and_half_of_it_is_held_out() -> None:
    every = cases()
    assert len(every) >= 200
    assert {case.lang for case in every} == {"de", "en", "fr", "hu", "ar"}
    tune, held = part_of(every, "tune"), part_of(every, "hold-out")
    assert len(tune) + len(held) == len(every)
    assert not {case.text for case in tune} & {case.text for case in held}
    assert abs(len(tune) - len(held)) <= 5
    assert "{{" not in "".join(case.text for case in every)
    assert CASES.read_text(encoding="utf-8").count("{{") == sum(len(case.marked) for case in every)


def test_of_the_part_that_was_tuned_on_nearly_all_is_found() -> None:
    results = [judged(case) for case in part_of(cases(), "tune")]
    recalled = [found for each in results for _, found in each.recalled]
    precise = [right for each in results for _, right in each.precise]
    assert sum(recalled) / len(recalled) >= 0.89
    assert sum(precise) / len(precise) >= 0.98
