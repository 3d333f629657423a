"""An answer in the console as its visitor saw it, and nothing of it active."""

from __future__ import annotations

from bs4 import BeautifulSoup

from gateway.console.words import seen
from schemas.answer import Citation, Doubted

TEXT = (
    "On this page: [Fees](</fees>) › Cards\n\n> | Card | Price |\n> | --- | --- |\n> | **Adult** | 18<br>euros |\n"
    ">\n> …\n\n"
    "It is free for *dogs*. *(not found on the page in this form)* <b>Bring</b> it.\n"
    "[x](javascript:alert(1)) ![y](https://e.example/y.png)\n\n# Cards"
)


def test_cards_numbers_and_doubts_are_shown_and_nothing_is_active() -> None:
    start, end = TEXT.index("It is free"), TEXT.index(" *(not")
    doubt = Doubted(start=start, end=end, kind="belongs", said="dogs")
    page = BeautifulSoup(seen(TEXT, [Citation(n=2, start=start, end=end)], [doubt]), "html.parser")
    assert [link["href"] for link in page.select("a")] == ["/fees", "https://e.example/y.png"]
    assert [cell.get_text(" ") for cell in page.select("blockquote td")] == ["Adult", "18 euros"]
    assert [part.get_text() for part in page.select(".doubt")] == ["It is free for ", "dogs", "."]
    assert [number.get_text() for number in page.select("sup")] == ["2"]
    assert page.select("b, img, script, h1") == []
    assert "<b>Bring</b> it." in page.get_text()


def test_characters_that_mark_places_are_taken_out_of_the_text() -> None:
    assert str(seen("a\ue0001\ue001 b\ue002")) == "<p>a1 b</p>\n"


def test_a_table_whose_columns_have_no_names_has_no_header() -> None:
    rows = "| --- | --- |\n| Billard | 6,50 € |\n"
    nameless = BeautifulSoup(seen(f"|  |  |\n{rows}\n| Was | Preis |\n{rows}\n| | Preis |\n{rows}"), "html.parser")
    assert [len(table("th")) for table in nameless("table")] == [0, 2, 2]
    assert [table("td")[0].text for table in nameless("table")] == ["Billard"] * 3
