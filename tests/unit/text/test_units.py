"""What of a page can be quoted by itself, and what has to be known to understand it."""

from __future__ import annotations

import pytest

from text.units import Unit, leans, units

PAGE = """The library lends books. It is closed on Mondays.

## Fees

A card costs, for a year:

- Adults: **€12**
- Children: nothing

### Late books

| Item | Per day |
| --- | --- |
| Book | €0.20 |
| Film | €1 |

Whoever pays late gets a letter. After that the card is blocked. Then we wait.
"""


def found(said: str, page: str = PAGE, lang: str = "en") -> Unit:
    [unit] = [unit for unit in units(page, lang) if said in unit.said.rpartition(". ")[2] or unit.said == said]
    return unit


def test_each_stands_where_it_says() -> None:
    for unit in units(PAGE, "en"):
        assert PAGE[unit.start : unit.end] == unit.text


def test_in_reading_order_and_headings_are_none() -> None:
    said = [unit.said for unit in units(PAGE, "en")]
    assert said[0] == "The library lends books."
    assert not {"Fees", "Late books", "Item Per day"} & set(said)
    starts = [(unit.start, unit.end) for unit in units(PAGE, "en")]
    assert starts == sorted(starts)


def test_an_item_knows_its_headings_and_what_introduces_it() -> None:
    item = found("Children: nothing")
    assert (item.kind, item.headings, item.intro) == ("item", ("Fees",), "A card costs, for a year:")
    assert item.block == found("Adults: €12").start
    assert item.sense("Library") == "Library. Fees. A card costs, for a year:. Children: nothing"


def test_a_row_says_each_cell_after_its_column() -> None:
    row = found("Item: Film; Per day: €1")
    assert (row.kind, row.headings, row.header) == ("row", ("Fees", "Late books"), "| Item | Per day |")
    assert row.block == found("Item: Book; Per day: €0.20").block


def test_a_sentence_that_leans_comes_with_the_one_before_it_or_not_at_all() -> None:
    said = [unit.said for unit in units(PAGE, "en")]
    assert "It is closed on Mondays." not in said
    assert "The library lends books. It is closed on Mondays." in said
    assert "Whoever pays late gets a letter. After that the card is blocked." in said
    assert "Whoever pays late gets a letter. After that the card is blocked. Then we wait." in said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Open daily. In a hurry? Call us. We are glad.", ["Open daily.", "In a hurry? Call us.", "We are glad."]),
        ("Lost? Found? Ring 5.", ["Lost? Found? Ring 5."]),
        ("**In a hurry?**\n\nCall us.", ["**In a hurry?**\n\nCall us."]),
        ("Which ones?\n\n- Cats", ["- Cats"]),
        ("Why not?", []),
    ],
)
def test_a_question_comes_with_what_answers_it(text: str, expected: list[str]) -> None:
    found = units(text, "en")
    assert [unit.text for unit in found] == expected
    assert [text[unit.start : unit.end] for unit in found] == expected


@pytest.mark.parametrize(
    ("text", "lang", "expected"),
    [
        ("Montag\n\n9-12 Uhr\n\n14-16 Uhr\n\nDienstag:\n\ngeschlossen\n\nEnde.", "de", (0, 3, 5)),
        ("Mo. bis Fr.\n\n9-12 Uhr", "de", (0,)),
        ("**Monday to Friday**\n\nby appointment", "en", (0,)),
        ("weekends\n\n10 to 4", "en", (0,)),
        ("星期二\n\n8:00–15:30\n\n星期四\n\n休息", "zh", (0, 2)),
        ("Monday is fine.\n\n9-12", "en", (0, 1)),
        ("Monday\n\n9-12\n\n3 - 5 €", "en", (0, 2)),
    ],
)
def test_a_day_comes_with_its_hours(text: str, lang: str, expected: tuple[int, ...]) -> None:
    paragraphs = text.split("\n\n")
    ends = (*expected[1:], len(paragraphs))
    assert [unit.text for unit in units(text, lang)] == [
        "\n\n".join(paragraphs[start:end]) for start, end in zip(expected, ends, strict=True)
    ]


def test_a_day_without_hours_stands_alone() -> None:
    assert [unit.text for unit in units("Monday\n\n# Fees\n\n9 €", "en")] == ["Monday", "9 €"]
    assert units("Monday\n\n- 9-12", "en")[-1].intro == "Monday"


def test_a_paragraph_leans_on_no_other() -> None:
    assert [unit.said for unit in units("One.\n\nIt rains.", "en")] == ["One.", "It rains."]


def test_a_table_without_a_header_and_two_tables_in_a_row() -> None:
    page = "| a | 1 |\n| b | 2 |\n\ntext\n\n| h | k |\n| --- | --- |\n| c | 3 |"
    rows = [unit for unit in units(page, "en") if unit.kind == "row"]
    assert [row.said for row in rows] == ["a; 1", "b; 2", "h: c; k: 3"]
    assert rows[0].block == rows[1].block != rows[2].block


def test_what_has_no_word_is_none() -> None:
    assert units("***\n\n- –\n\n| --- |\n", "en") == []


@pytest.mark.parametrize(
    ("sentence", "lang", "expected"),
    [
        ("After that, you pay.", "en", True),
        ("This page is about fees.", "en", False),
        ("Danach zahlen Sie.", "de-AT", True),
        ("Sie zahlen 12 Euro.", "de", False),
        ("Danach zahlen Sie.", "en", False),
        ("It is.", "xx", False),
        ("Order it an hour ahead.", "en", True),
        ("Please bring them along.", "en", True),
        ("Bring your card.", "en", False),
        ("Melden Sie ihn im Internet an.", "de", True),
        ("Bitte bringen Sie es mit.", "de", True),
        ("Bringen Sie Ihren Ausweis mit.", "de", False),
    ],
)
def test_whether_a_sentence_leans_is_told_by_its_beginning(sentence: str, lang: str, expected: bool) -> None:
    assert leans(sentence, lang) is expected


HOURS = """We are open:

Monday
:   9 to 5
:   not in May

Saturday
Sunday
:   By appointment only. Call us before you come.

    Bring your card.

Then we are closed.
"""


def test_a_definition_knows_its_term() -> None:
    all_of_them = units(HOURS, "en")
    items = [(unit.header, unit.said, unit.intro) for unit in all_of_them if unit.kind == "item"]
    assert items == [
        ("Monday", "Monday: 9 to 5", "We are open:"),
        ("Monday", "Monday: not in May", "We are open:"),
        ("Saturday\nSunday", "Saturday Sunday: By appointment only. Call us before you come.", "We are open:"),
        ("Saturday\nSunday", "Saturday Sunday: Bring your card.", "We are open:"),
    ]
    assert len({unit.block for unit in all_of_them if unit.kind == "item"}) == 1
    assert [unit.text for unit in all_of_them if unit.kind == "prose"] == ["We are open:", "Then we are closed."]


def test_each_sentence_of_a_long_definition_knows_its_term() -> None:
    text = f"Dogs\n:   {'They are welcome. ' * 20}"
    assert {unit.header for unit in units(text, "en")} == {"Dogs"}
    assert len(units(text, "en")) == 20


def test_a_heading_with_a_figure_and_nothing_below_it_is_a_unit() -> None:
    text = "## Pool\n\n### Mon 9 to 12\n\n### Tue 14 to 18\n\n## Fees\n\nAn adult pays 5 euros.\n\n## Closed on 24 May"
    found = units(text)
    assert [unit.said for unit in found] == [
        "Mon 9 to 12",
        "Tue 14 to 18",
        "An adult pays 5 euros.",
        "Closed on 24 May",
    ]
    assert found[0].headings == ("Pool",)
    assert all(text[unit.start : unit.end] == unit.text for unit in found)


def test_a_line_that_trails_off_introduces_its_table() -> None:
    row = units("Further shares...\n\n| Name | Price |\n| --- | --- |\n| A | 5 |")[-1]
    assert row.intro == "Further shares..."
