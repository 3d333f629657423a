"""Facts that a page tells machines alone: what of them is added to its text."""

from __future__ import annotations

from decimal import Decimal

import pytest

from pipelines.ingest.documents.convert import convert
from pipelines.ingest.documents.facts import VisiblePage, facts_of
from schemas.page import DayHours, OpeningHours, PageDocument, PageEvent, PageMetadata, PageProduct, PageQuestion
from text.units import units

ADDRESS = "https://www.town.example/library"
SHIPPING = PageQuestion(question="What does shipping cost?", answer="It costs **€4.90** in the whole country.")
HOURS = OpeningHours(
    name="Town library",
    hours=(
        DayHours(day=0, opens="09:00", closes="12:30"),
        DayHours(day=0, opens="14:00", closes="18:00"),
        DayHours(day=6),
    ),
)
LAMP = PageProduct(name="Lamp A|B", price=Decimal("19.90"), currency="EUR", availability="out-of-stock")

FESTIVAL = PageEvent(
    name="Summer festival",
    start="2027-06-19T15:00:00+02:00",
    end="2027-06-19T23:00:00+02:00",
    place="Harbour park, Quay Road 4",
)


def added(data: PageMetadata, markdown: str, lang: str = "en", title: str = "Town library") -> str:
    return facts_of(data, VisiblePage(markdown, lang, ADDRESS, title)).markdown


def test_an_answer_that_the_page_does_not_show_stands_below_its_question() -> None:
    faq = PageMetadata(faq=(SHIPPING,))
    text = added(faq, "# Questions\n\nWe are glad to help.")
    assert text == f"## What does shipping cost?\n\n{SHIPPING.answer}"
    [unit] = units(text)
    assert (unit.text, unit.headings) == (SHIPPING.answer, ("What does shipping cost?",))


@pytest.mark.parametrize(
    "shown",
    [
        "## What does shipping cost?\n\nNothing, we come by bike.",  # the page says otherwise
        "**What does shipping cost?** Nothing, we come by bike.",
        "What does shipping cost?\n:   Nothing, we come by bike.",
        "It costs €4.90 in the whole country.",  # the same below another question
        "A parcel is €5.90.",  # another price
    ],
)
def test_what_the_page_answers_or_contradicts_is_left_out(shown: str) -> None:
    assert added(PageMetadata(faq=(SHIPPING,)), f"# Questions\n\n{shown}") == ""


def test_a_question_whose_answer_is_not_in_the_text_is_answered() -> None:
    assert added(PageMetadata(faq=(SHIPPING,)), "# Questions\n\n## What does shipping cost?\n\n## Dogs?\n\nNo.")


def test_opening_hours_are_a_row_a_day_in_the_pages_language() -> None:
    text = added(PageMetadata(opening=(HOURS,)), "# Bücherei\n\nWillkommen.", "de")
    assert [unit.said for unit in units(text, "de")] == [
        "Tag: Montag; Öffnungszeiten: 09:00–12:30, 14:00–18:00",
        "Tag: Sonntag; Öffnungszeiten: geschlossen",
    ]
    assert "| Monday | 09:00–12:30, 14:00–18:00 |" in added(PageMetadata(opening=(HOURS,)), "Welcome.", "xx")


@pytest.mark.parametrize("shown", ["Monday to Friday: 9 am to 5 pm", "| Mon | 10:00-18:00 |", "Open 9:00–17:00."])
def test_a_page_that_shows_hours_is_right(shown: str) -> None:
    assert added(PageMetadata(opening=(HOURS,)), shown) == ""
    assert added(PageMetadata(opening=(HOURS,)), "The reading begins at 19:30.")


def test_a_business_on_every_page_has_its_hours_on_its_own() -> None:
    data = PageMetadata(opening=(HOURS,))
    assert added(data, "Minutes of the council.", title="Council") == ""
    named = data.model_copy(update={"opening": (HOURS.model_copy(update={"url": f"{ADDRESS}/"}),)})
    assert added(named, "Welcome.", title="Books")


@pytest.mark.parametrize("wrong", ["http://[", "http://[::1", "//]"])
def test_a_place_without_a_right_address_has_its_hours_where_the_title_names_it(wrong: str) -> None:
    data = PageMetadata(opening=(HOURS.model_copy(update={"url": wrong}),))
    assert added(data, "Welcome.")
    assert not added(data, "Welcome.", title="Contact")


def test_a_product_has_a_row_of_what_the_page_does_not_show() -> None:
    data = PageMetadata(products=(LAMP,))
    text = added(data, "A lamp for the desk.", "de")
    assert [unit.said for unit in units(text, "de")] == [
        "Produkt: Lamp A|B; Preis: 19,90 €; Verfügbarkeit: nicht auf Lager"
    ]
    assert "19" not in added(data, "Only €24.90 today.")  # the structured price may be an old one
    assert added(data, "Price: 19.90, sold out") == ""
    assert added(data, "19,90 €").endswith("| Lamp A\\|B | out of stock |")
    assert added(PageMetadata(products=(LAMP.model_copy(update={"name": "***"}),)), "A lamp.") == ""
    several = PageMetadata(products=(LAMP, LAMP.model_copy(update={"name": "Bell"})))
    assert "out of stock" not in added(several, "Lamps and bells.")


def test_an_event_has_a_row_of_when_and_where_in_the_pages_language() -> None:
    data = PageMetadata(events=(FESTIVAL, FESTIVAL))
    [unit] = units(added(data, "Music and games.", "de", title="Summer festival 2027"), "de")
    assert unit.said == (
        "Veranstaltung: Summer festival; Termin: Samstag, 19. Juni 2027, 15:00–23:00; Ort: Harbour park, Quay Road 4"
    )
    assert "Saturday, June 19, 2027, 15:00" in added(data, "The Summer Festival is for everybody.")
    assert added(data, "Minutes of the council.", title="Council") == ""  # a list of events on every page


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("Our summer festival in Harbour Park.", "| Summer festival | Saturday, June 19, 2027, 15:00–23:00 |"),
        ("The summer festival begins at 4 pm.", "| Summer festival | Saturday, June 19, 2027 | Harbour park, Qu"),
        ("The summer festival is on 19 June.", "| Summer festival | Harbour park, Quay Road 4 |"),
        ("The summer festival is on 20 June.", ""),  # the structured date may be an old one, and so the place
        ("A summer festival each Thursday.", ""),
    ],
)
def test_a_page_that_shows_a_date_or_a_place_is_right(shown: str, expected: str) -> None:
    text = added(PageMetadata(events=(FESTIVAL,)), shown)
    assert text.rpartition("\n")[2].startswith(expected)
    assert bool(text) is bool(expected)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("2027-09-10", None, "Friday, September 10, 2027"),
        ("2027-09-10", "2027-09-12", "Friday, September 10, 2027 – Sunday, September 12, 2027"),
        ("2027-09-10T00:00:00+02:00", "2027-09-10T23:59:59+02:00", "Friday, September 10, 2027"),
        ("2027-09-10T20:00", "2027-09-11T02:00", "Friday, September 10, 2027, 20:00–02:00"),
        ("2027-09-10T20:00", "2027-09-09T22:00", "Friday, September 10, 2027, 20:00"),
        ("2027-09-10T20:00", "2027-09-10T22:00Z", "Friday, September 10, 2027, 20:00"),
    ],
)
def test_when_an_event_is(start: str, end: str | None, expected: str) -> None:
    event = FESTIVAL.model_copy(update={"start": start, "end": end, "place": ""})
    assert added(PageMetadata(events=(event,)), "Summer festival").endswith(f"| Summer festival | {expected} |")


def test_a_day_that_no_calendar_has_is_passed_over() -> None:
    event = FESTIVAL.model_copy(update={"start": "2027-13-45", "end": "2027-02-30T25:00"})
    assert added(PageMetadata(events=(event,)), "Summer festival").endswith("| Harbour park, Quay Road 4 |")
    assert added(PageMetadata(events=(event,)), "Summer festival on 18 June 2027") == ""


def test_a_time_of_utc_may_be_of_another_day_there() -> None:
    event = FESTIVAL.model_copy(update={"start": "2027-06-18T22:00:00Z"})
    assert added(PageMetadata(events=(event,)), "Summer festival").endswith("| Harbour park, Quay Road 4 |")
    assert added(PageMetadata(events=(event.model_copy(update={"place": ""}),)), "Summer festival") == ""


def test_a_page_says_it_in_its_content_or_its_connector_does() -> None:
    script = (
        '<script type="application/ld+json">{"@type": "FAQPage", "mainEntity": [{"@type": "Question", '
        '"name": "Dogs?", "acceptedAnswer": {"text": "No."}}]}</script>'
    )
    page = PageDocument(id="1", title="Rules", content=f"{script}<h1>Rules</h1><p>Be kind.</p>")
    found = convert(page, "en")
    assert found.fields["content"] == "# Rules\n\nBe kind.\n\n## Dogs?\n\nNo."
    assert found.metadata.page_kind == "FAQPage"
    assert found.notes == ("searchable from the page's structured data, not shown on it: answers (1)",)
    assert found.reading.words is not None
    assert found.reading.words.indexed == 3  # of what visitors see
    sent = page.model_copy(update={"metadata": PageMetadata(page_kind="Article")})
    assert convert(sent, "en").fields["content"] == "# Rules\n\nBe kind."
