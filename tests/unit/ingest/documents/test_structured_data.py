"""What pages say of themselves for machines, as real sites write it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.ingest.documents.structured_data import structured_data_in
from schemas.page import DayHours, OpeningHours, PageEvent, PageMetadata, PageProduct, PageQuestion


def page(*scripts: Any, head: str = "", body: str = "<p>Hello.</p>") -> str:
    written = (one if isinstance(one, str) else json.dumps(one) for one in scripts)
    tags = "".join(f'<script type="application/ld+json">{one}</script>' for one in written)
    return f"<html><head>{head}{tags}</head><body>{body}</body></html>"


def read(*scripts: Any, head: str = "", body: str = "") -> PageMetadata:
    return structured_data_in(page(*scripts, head=head, body=body)) or PageMetadata()


# As Yoast writes it for a post: one graph, whose nodes refer to each other.
YOAST = {
    "@context": "https://schema.org",
    "@graph": [
        {
            "@type": "BlogPosting",
            "@id": "https://www.town.example/bins/#article",
            "isPartOf": {"@id": "https://www.town.example/bins/"},
            "author": {"name": "Ada Lind", "@id": "https://www.town.example/#/schema/person/1"},
            "headline": "New bins",
            "datePublished": "2026-03-02T08:15:00+00:00",
            "dateModified": "2026-05-03T10:00:00+02:00",
        },
        {
            "@type": "WebPage",
            "@id": "https://www.town.example/bins/",
            "datePublished": "2020-01-01T00:00:00+00:00",
            "breadcrumb": {"@id": "https://www.town.example/bins/#breadcrumb"},
        },
        {
            "@type": "BreadcrumbList",
            "@id": "https://www.town.example/bins/#breadcrumb",
            "itemListElement": [
                {"@type": "ListItem", "position": 1, "name": "Home", "item": "https://www.town.example/"},
                {"@type": "ListItem", "position": 2, "item": {"@id": "/waste/", "name": "Waste"}},
                {"@type": "ListItem", "position": 3, "name": "New bins"},
            ],
        },
        {"@type": "WebSite", "@id": "https://www.town.example/#website", "name": "Town"},
        {"@type": ["Organization", "Place"], "@id": "https://www.town.example/#organization", "name": "Town"},
    ],
}
# As WooCommerce does: a list of offers, each with a specification of its price.
WOO = {
    "@context": "https://schema.org/",
    "@type": "Product",
    "name": "Cargo bike &#8220;Mule&#8221;",
    "sku": 17,
    "offers": [
        {
            "@type": "Offer",
            "priceSpecification": [
                {
                    "@type": "UnitPriceSpecification",
                    "price": "2480.00",
                    "priceCurrency": "EUR",
                    "valueAddedTaxIncluded": True,
                }
            ],
            "availability": "https://schema.org/InStock",
        }
    ],
}
HOURS = {
    "@context": "https://schema.org",
    "@type": "Library",
    "name": "Town library",
    "url": "https://www.town.example/library/",
    "openingHoursSpecification": [
        {"@type": "OpeningHoursSpecification", "dayOfWeek": ["https://schema.org/Tuesday", "http://schema.org/Monday"],
         "opens": "09:00:00", "closes": "12:30:00"},
        {"@type": "OpeningHoursSpecification", "dayOfWeek": "Monday", "opens": "14:00", "closes": "18:00"},
        {"dayOfWeek": {"@id": "schema:Sunday"}, "opens": "00:00", "closes": "00:00"},
        {"@type": "OpeningHoursSpecification", "dayOfWeek": "Friday", "opens": "00:00", "closes": "23:59"},
        {"@type": "OpeningHoursSpecification", "validFrom": "2026-12-24", "validThrough": "2026-12-24",
         "dayOfWeek": "Thursday", "opens": "09:00", "closes": "11:00"},
    ],
}  # fmt: skip


def test_a_graph_of_a_post() -> None:
    assert read(YOAST) == PageMetadata(
        page_kind="BlogPosting",
        published_at=datetime(2026, 3, 2, 8, 15, tzinfo=UTC),
        changed_at=datetime(2026, 5, 3, 8, tzinfo=UTC),
        authors=("Ada Lind",),
        breadcrumbs=("Home", "Waste"),
    )


@pytest.mark.parametrize("author", ["https://www.town.example/ada", "/users/ada", True, {"url": "x"}, [[]], None])
def test_an_author_without_a_name_is_none(author: Any) -> None:
    assert read({"@type": "Article", "author": author}, head='<meta name="author" content="Desk">').authors == ("Desk",)


def test_all_authors_of_a_page_are_named_each_once() -> None:
    people = [{"@type": "Person", "name": "Ada Lind"}, "Bo", {"url": "x"}, "/users/bo", {"name": "Ada  Lind"}]
    assert read({"@type": "Article", "author": people}).authors == ("Ada Lind", "Bo")
    assert len(read({"@type": "Article", "author": [f"Author {n}" for n in range(1_000)]}).authors) == 20


def test_breadcrumbs_have_names_and_an_end() -> None:
    def trail(*entries: Any) -> tuple[str, ...]:
        return read({"@type": "BreadcrumbList", "itemListElement": [*entries]}).breadcrumbs

    entry = {"@type": "ListItem", "name": "Fees", "item": "/fees/"}
    assert trail(entry, {"item": "https://town.example/tax/"}, {"item": {"name": "Dogs"}}) == ("Fees", "Dogs")
    assert trail(*[entry] * 5_000) == ("Fees",) * 20
    assert trail({"name": "This page"}) == trail("x", 1, None) == ()


def test_questions_of_a_faq_page_come_with_their_answers_as_markdown() -> None:
    questions = [
        {"@type": "Question", "name": "What is <b>free</b>?",
         "acceptedAnswer": {"@type": "Answer", "text": "<p>All <a href='/x'>books</a>.</p>"}},
        {"@type": "Question", "name": ["Dogs?"], "acceptedAnswer": [{"@type": "Answer", "text": "No."}]},
        {"@type": "Question", "name": "Nobody answers?"},
        {"@type": "Question", "name": "Too long?", "acceptedAnswer": {"text": "x" * 6_000}},
        {"@type": "Question", "acceptedAnswer": {"text": "To nothing."}},
    ]  # fmt: skip
    found = read({"@type": ["WebPage", "FAQPage"], "mainEntity": questions})
    assert found.page_kind == "FAQPage"
    assert found.faq == (
        PageQuestion(question="What is free?", answer="All [books](/x)."),
        PageQuestion(question="Dogs?", answer="No."),
    )
    assert read({"@type": "FAQPage", "mainEntity": {"@id": "#q"}}, questions[1] | {"@id": "#q"}).faq == found.faq[1:]


def test_a_product_has_a_price_only_where_its_offers_agree() -> None:
    found = read(WOO)
    mule = PageProduct(name="Cargo bike “Mule”", price=Decimal("2480"), currency="EUR", availability="in-stock")
    assert (found.page_kind, found.products) == ("Product", (mule,))
    offers = [{"price": price, "priceCurrency": "EUR"} for price in (10, "19,90")]
    assert read({"@type": "Product", "name": "Lamp", "offers": offers}).products == ()
    one = {"@type": "Product", "name": "Lamp", "offers": offers[1] | {"availability": "SoldOut"}}
    assert read(one).products == (
        PageProduct(name="Lamp", price=Decimal("19.90"), currency="EUR", availability="out-of-stock"),
    )
    ranged = {"@type": "AggregateOffer", "lowPrice": "5", "highPrice": "9", "priceCurrency": "EUR"}
    assert read(one | {"offers": ranged}).products == ()
    assert read(one | {"offers": ranged | {"highPrice": "5"}}).products[0].price == 5
    for price in ("about 5", "1.234,00", True, None, [], "1e9", -3):
        assert read(one | {"offers": {"price": price, "priceCurrency": "EUR"}}).products == ()


def test_several_products_are_no_page_about_one() -> None:
    items = [{"@type": "ListItem", "item": WOO | {"name": name}} for name in ("One", "Two")]
    found = read({"@type": "ItemList", "itemListElement": items})
    assert ([one.name for one in found.products], found.page_kind) == (["One", "Two"], "")


def test_regular_opening_hours_by_day_without_those_of_feasts() -> None:
    assert read(HOURS).opening == (
        OpeningHours(
            name="Town library",
            url="https://www.town.example/library/",
            hours=(
                DayHours(day=0, opens="09:00", closes="12:30"),
                DayHours(day=0, opens="14:00", closes="18:00"),
                DayHours(day=1, opens="09:00", closes="12:30"),
                DayHours(day=4, opens="00:00", closes="24:00"),
                DayHours(day=6),
            ),
        ),
    )
    written = read({"@type": "Store", "name": "Shop", "openingHours": ["Mo-Tu,Th 09:00-17:00", "Sa 9:00–12:00"]})
    assert [(one.day, one.opens) for one in written.opening[0].hours] == [
        (0, "09:00"), (1, "09:00"), (3, "09:00"), (5, "09:00")
    ]  # fmt: skip
    spaced = read({"@type": "Store", "name": "Shop", "openingHours": "Mo - We, Fr 09:00 - 17:00"})
    assert [one.day for one in spaced.opening[0].hours] == [0, 1, 2, 4]


@pytest.mark.parametrize(
    "odd", ["", " ", "09:00-17:00", "Mo", "Mo-F 09:00-17:00", "Mo–Fr bis 17:00", "Mo 09:00-12:00 14:00-18:00"]
)
def test_written_hours_that_are_unclear_are_not_known(odd: str) -> None:
    assert read({"@type": "Store", "name": "Shop", "openingHours": ["Tu 09:00-17:00", odd]}).opening == ()


@pytest.mark.parametrize(
    "odd",
    [
        {"dayOfWeek": "Monday", "opens": "9 am", "closes": "17:00"},
        {"dayOfWeek": "Someday", "opens": "09:00", "closes": "17:00"},
        {"dayOfWeek": "Monday", "opens": "09:00"},
        {"opens": "09:00", "closes": "17:00"},
    ],
)
def test_hours_with_an_unclear_entry_are_not_known(odd: dict[str, str]) -> None:
    right = {"dayOfWeek": "Tuesday", "opens": "09:00", "closes": "17:00"}
    assert read({"@type": "Store", "openingHoursSpecification": [right]}).opening
    assert read({"@type": "Store", "openingHoursSpecification": [right, odd]}).opening == ()


def test_an_event_of_a_council() -> None:
    event = {
        "@type": "PublicationEvent",
        "name": "Council meeting",
        "startDate": "2026-06-11T19:30",
        "endDate": "later",
        "location": {
            "@type": "Place",
            "name": "Town hall",
            "address": {"streetAddress": "Market 1", "postalCode": "12345", "addressLocality": "Town"},
        },
    }
    found = read([event])
    assert found.page_kind == "Event"
    assert found.events == (
        PageEvent(name="Council meeting", start="2026-06-11T19:30", place="Town hall, Market 1, 12345 Town"),
    )
    assert read([event, event]).page_kind == ""
    moved = event | {"eventStatus": "https://schema.org/EventRescheduled"}
    assert read(moved).events == found.events


@pytest.mark.parametrize(
    "more",
    [
        {"eventStatus": "https://schema.org/EventCancelled"},
        {"eventStatus": {"@id": "schema:EventPostponed"}},
        {"eventStatus": "EventMovedOnline"},
        {"eventSchedule": {"@type": "Schedule", "repeatFrequency": "P1W"}},  # its first day is no answer to when
    ],
)
def test_an_event_that_is_not_as_announced_is_none(more: dict[str, Any]) -> None:
    assert read({"@type": "Event", "name": "Market", "startDate": "2026-06-11", **more}).events == ()


def test_microdata_and_rdfa_are_read_like_json_ld() -> None:
    micro = """<div itemscope itemtype="http://schema.org/Product"><h1 itemprop="name">Lamp</h1>
      <div itemprop="offers" itemscope itemtype="http://schema.org/Offer"><span itemprop="price" content="19.90">19,90 €
      </span><meta itemprop="priceCurrency" content="EUR"><link itemprop="availability" href="http://schema.org/InStock">
      </div></div>"""
    rdfa = """<div vocab="https://schema.org/" typeof="Event"><b property="name">Fair</b>
      <time property="startDate" datetime="2026-06-11">11 June</time></div>
      <ol vocab="https://schema.org/" typeof="BreadcrumbList"><li property="itemListElement" typeof="ListItem">
      <a property="item" typeof="WebPage" href="/"><span property="name">Home</span></a></li></ol>"""
    faq = """<div itemscope itemtype="https://schema.org/FAQPage"><div itemscope itemprop="mainEntity"
      itemtype="https://schema.org/Question"><h3 itemprop="name">Dogs?</h3><div itemscope itemprop="acceptedAnswer"
      itemtype="https://schema.org/Answer"><div itemprop="text"><p>No.</p></div></div></div></div>"""
    found = read(body=micro + rdfa + faq)
    assert found.products == (
        PageProduct(name="Lamp", price=Decimal("19.90"), currency="EUR", availability="in-stock"),
    )
    assert found.events == (PageEvent(name="Fair", start="2026-06-11"),)
    assert found.faq == (PageQuestion(question="Dogs?", answer="No."),)
    assert found.breadcrumbs == ("Home",)


def test_open_graph_says_what_nothing_else_does() -> None:
    head = """<meta property="og:type" content="article"><meta name="author" content="Ada">
      <meta property="article:published_time" content="2026-03-02"><meta property="article:modified_time"
      content="x">"""
    assert read(head=head) == PageMetadata(
        page_kind="Article", authors=("Ada",), published_at=datetime(2026, 3, 2, tzinfo=UTC)
    )
    assert read(YOAST, head=head).published_at == datetime(2026, 3, 2, 8, 15, tzinfo=UTC)
    assert structured_data_in("<p>Nothing.</p>") is structured_data_in("No HTML") is None


@pytest.mark.parametrize(
    "broken",
    [
        '{"@type": "Event", "name": "A", "startDate": "2026-06-11",}',
        '// <![CDATA[\n{"@type": "Event", "name": "A", "startDate": "2026-06-11"}\n// ]]>',
        '<!--\n{"@type": "Event", /* now */ "name": "A", // its name\n "startDate": "2026-06-11"}-->',
        '\n[{"@type": "Event", "name": "A", "description": "two\nlines, ]", "startDate": "2026-06-11"},\n]',
    ],
)
def test_broken_json_is_mended(broken: str) -> None:
    assert read("{nothing}", broken).events == (PageEvent(name="A", start="2026-06-11"),)


def test_half_a_character_in_an_address_does_no_harm() -> None:
    store = '{"@type": "Store", "name": "Shop", "url": "https://a.example/\\ud800", "openingHours": "Mo 09:00-17:00"}'
    assert [one.name for one in read(store).opening] == ["Shop"]


def test_values_of_any_type_do_no_harm() -> None:
    odd = (None, 1, 1e400, True, "x", [], {}, [[{}]], {"@id": 3}, {"@id": "#self"}, {"@value": []}, [None, "y"])
    for value in odd:
        kinds = ["FAQPage", "Event", "Product", "Article", "BreadcrumbList", "Store", "ItemList"]
        names = ["name", "offers", "mainEntity", "startDate", "location", "author", "datePublished", "openingHours"]
        nodes = [{"@type": kind, "@id": "#self", **dict.fromkeys(names, value)} for kind in kinds]
        read(*nodes, {"@type": value}, {"@graph": value}, {"@type": "Store", "openingHoursSpecification": value})
    read("[" * 100_000, '{"@graph":' * 100_000, "1" * 10_000)


@settings(max_examples=50, deadline=None)
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.floats()
        | st.text(max_size=8)
        | st.sampled_from(["Event", "FAQPage", "Product"]),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(["@type", "@id", "@graph", "name", "mainEntity", "offers", "price"]), inner
            )
        ),
        max_leaves=30,
    )
)
def test_any_json_is_read(value: Any) -> None:
    read(value)
