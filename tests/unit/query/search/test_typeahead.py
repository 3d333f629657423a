"""What a search field offers while one types."""

from __future__ import annotations

import pytest

from pipelines.query.search.typeahead import TitleCandidate, Typed, suggested_headings, suggested_pages


def page(title: str, *headings: str, url: str | None = None) -> TitleCandidate:
    return TitleCandidate(title, f"/{title}" if url is None else url, "en", headings)


@pytest.mark.parametrize(
    ("typed", "text", "fits"),
    [
        ("open", "Opening hours", True),
        ("hours open", "Opening hours", True),  # the last one may be a prefix, ...
        ("open hours", "Opening hours", False),  # ... the others are whole words
        ("OFFNUNG", "Öffnungszeiten", True),
        ("zeiten", "Öffnungszeiten", True),  # it stands there
        ("pool", "Opening hours", False),
        ("開館", "図書館の開館時間", True),
        ("?!", "Opening hours", False),
    ],
)
def test_what_was_typed_fits_words_and_a_beginning(typed: str, text: str, fits: bool) -> None:
    assert Typed.of(typed).fits(text) is fits


def test_titles_that_begin_like_this_come_first_then_short_ones_and_each_page_once() -> None:
    found = [
        page("About the pool"),
        page("Pool rules and prices"),
        page("Pool"),
        page("Pool", url="/Pool"),
        page("", url="/none"),
    ]
    shown = suggested_pages(Typed.of("pool"), found, 5)
    assert [each.title for each in shown] == ["Pool", "Pool rules and prices", "About the pool"]
    assert len(suggested_pages(Typed.of("pool"), found, 2)) == 2


def test_headings_that_have_the_words_and_are_not_their_pages_title() -> None:
    found = [page("Library", "Opening hours", "Fees", "LIBRARY"), page("Pool", "Opening hours in winter")]
    shown = suggested_headings(Typed.of("open"), found, 5)
    assert [(each.heading, each.title) for each in shown] == [
        ("Opening hours", "Library"),
        ("Opening hours in winter", "Pool"),
    ]
    assert shown[0].fragment == ":~:text=Opening%20hours"
    assert suggested_headings(Typed.of("libr"), found, 5) == []
