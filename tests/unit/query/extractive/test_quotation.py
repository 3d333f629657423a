"""What is shown of the evidence where no model writes."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from pipelines.query.extractive.quotation import MOST, Quotation, Unsure, answering, by_part, on_day
from schemas.answer import WholeTable
from schemas.query import Evidence, SourceTable
from text.markdown import plain

LEAD_IN = "The website says:"


def said(
    text: str, score: float = 10.0, *, n: int = 1, start: int = 0, block: int | None = None, **more: Any
) -> Evidence:
    kind = more.pop("kind", "prose")
    return Evidence(
        n=n, start=start, text=text, kind=kind, block=start if block is None else block, score=score, **more
    )


def whole(quotation: Quotation) -> str:
    """The text; each citation is where it says, and quotes what stands there."""
    for citation in quotation.citations:
        assert citation.quote == plain(quotation.text[citation.start : citation.end])
    return quotation.text


def test_the_sentence_that_fits_alone_where_nothing_else_does() -> None:
    evidence = [said("Open daily."), said("Bring a towel.", 5.0, start=20)]
    assert whole(answering(evidence, LEAD_IN)) == "The website says:\n\n> Open daily."


def test_what_fits_nearly_as_well_comes_after_it() -> None:
    evidence = [said("Open daily."), said("Closed in May.", 9.0, n=2)]
    assert whole(answering(evidence, LEAD_IN)) == "The website says:\n\n> Open daily.\n\n> Closed in May."


def test_of_a_table_the_rows_that_fit_and_that_there_are_more() -> None:
    row = {"kind": "row", "header": "| Day | Hours |", "block": 5, "of": 7, "headings": ("Pool", "Opening hours")}
    evidence = [said("| Sunday | 9–18 |", 10, start=40, **row), said("| Saturday | 8–18 |", 8, start=20, **row)]
    assert whole(answering(evidence, LEAD_IN)).splitlines() == [
        LEAD_IN,
        "",
        "> **Opening hours**",
        ">",
        "> | Day | Hours |",
        "> | --- | --- |",
        "> | Saturday | 8–18 |",
        "> | Sunday | 9–18 |",
        "> | … | … |",
    ]


def test_a_row_of_a_table_without_names_is_quoted_as_a_table() -> None:
    row = {"kind": "row", "block": 5, "of": 1}
    shown = "> |  |  |\n> | --- | --- |\n> | Tuesday | 10-18 |"
    assert whole(answering([said("| Tuesday | 10-18 |", **row)], LEAD_IN)) == f"{LEAD_IN}\n\n{shown}"


def test_what_was_deleted_is_not_quoted() -> None:
    quotation = answering([said("- Card: ~~20 €~~ 15 €", kind="item")], LEAD_IN)
    assert whole(quotation) == f"{LEAD_IN}\n\n> - Card: 15 €"
    assert quotation.citations[0].quote == "Card: 15 €"


@pytest.mark.parametrize(("fitting", "hours", "shown"), [(3, "9–18", 5), (2, "9–18", 2), (3, "9–18, " * 20, 3)])
def test_no_row_of_a_short_table_is_left_out_where_several_fit(fitting: int, hours: str, shown: int) -> None:
    row = {"kind": "row", "header": "| Day | Hours |", "block": 5, "of": 5}
    evidence = [said(f"| {day} | {hours} |", 9.0 - (day >= fitting) * 5, start=20 * day, **row) for day in range(5)]
    evidence.append(said("Closed in winter.", 8.9, start=200))
    quotation = answering(evidence, LEAD_IN)
    days = [citation.quote.split()[0] for citation in quotation.citations if "9–18" in citation.quote]
    assert days == [str(day) for day in range(5)][:shown] if fitting == 3 and shown == 5 else len(days) <= 3
    assert ("| … |" in whole(quotation)) == (shown < 5)


def test_no_more_rows_are_told_of_than_there_are() -> None:
    row = {"kind": "row", "block": 5, "of": 1}
    assert "…" not in whole(answering([said("| Sunday | 9–18 |", **row)], LEAD_IN))


def test_items_come_after_what_introduces_them() -> None:
    item = {"kind": "item", "intro": "A card costs:", "block": 5, "of": 2}
    evidence = [said("- Children: nothing", start=30, **item), said("- Adults: €12", 9, start=10, **item)]
    assert whole(answering(evidence, LEAD_IN)) == (
        "The website says:\n\n> A card costs:\n>\n> - Adults: €12\n> - Children: nothing"
    )


def steps(*scores: float, words: str = "") -> list[Evidence]:
    """A numbered list, best first."""
    item: dict[str, Any] = {"kind": "item", "intro": "To move in:", "block": 5, "of": len(scores)}
    listed = [said(f"{n}. Step{words}", score, start=20 * n, **item) for n, score in enumerate(scores, 1)]
    return sorted(listed, key=lambda each: -each.score)


def test_no_step_is_left_out_between_two_of_a_numbered_list() -> None:
    assert whole(answering(steps(9, 8, 2, 10, 1), LEAD_IN)).splitlines()[2:] == [
        "> To move in:", ">", "> 1. Step", "> 2. Step", "> 3. Step", "> 4. Step",
    ]  # fmt: skip


def test_where_steps_are_not_found_or_have_no_room_it_is_seen_that_there_are_more() -> None:
    unknown = [each for each in steps(9, 8, 2, 10, 1) if each.score != 2]
    assert whole(answering(unknown, LEAD_IN)).splitlines()[4:] == [
        "> 1. Step", "> 2. Step", ">", "> …", ">", "> 4. Step",
    ]  # fmt: skip
    long = whole(answering(steps(9, 1, 1, 1, 10, words=" by step" * 16), LEAD_IN)).splitlines()
    assert [line[:7] for line in long[4:]] == ["> 1. St", ">", "> …", ">", "> 5. St"]


def test_years_and_amounts_are_no_steps() -> None:
    item: dict[str, Any] = {"kind": "item", "block": 5, "of": 3}
    dates = [said("- 3. May: fair", 10, start=10, **item), said("- 9. May: market", 9, start=50, **item)]
    assert "…" not in whole(answering(dates, LEAD_IN))


def test_a_sentence_is_not_quoted_again_with_the_one_that_leans_on_it() -> None:
    evidence = [said("It rains. Then it stops."), said("It rains.", 9.9)]
    assert whole(answering(evidence, LEAD_IN)).count("It rains.") == 1


def test_it_stays_short() -> None:
    evidence = [said("word " * 40 + f"{n}.", 10 - n / 10, start=300 * n) for n in range(5)]
    assert len(answering(evidence, LEAD_IN).citations) == 1
    short = [said(f"Fact {n}.", 10 - n / 10, start=30 * n) for n in range(9)]
    assert len(answering(short, LEAD_IN).citations) == MOST
    endless = answering([said("word " * 1_000)], LEAD_IN).text
    assert len(endless) < 700
    assert endless.endswith("…")


def test_of_opening_hours_the_row_of_the_day_that_was_asked_about_comes_first() -> None:
    row = {"kind": "row", "header": "| Day | Hours |", "block": 5, "of": 7}
    evidence = [said("| Sunday | 9–18 |", 10, start=40, **row), said("| Mon–Fri | 6–18 |", 8, start=20, **row)]
    tuesday, sunday = date(2026, 11, 24), date(2026, 11, 22)
    assert [each.start for each in on_day(evidence, tuesday, "en", {1, 2})[0]] == [20, 40]
    assert [each.start for each in on_day(evidence, sunday, "en", {1, 2})[0]] == [40, 20]


def test_of_a_parts_table_its_rows_and_nothing_else_that_fits_as_well() -> None:
    row = {"kind": "row", "header": "| Dog | Tax |", "block": 5, "of": 2}
    tax = [
        said("| first | 84 |", 10, start=20, **row),
        said("| second | 132 |", 9, start=40, **row),
        said("Pay it.", 9),
    ]
    register = [said("Register it here.", 8, start=90)]
    quotation = by_part([tax, register], LEAD_IN, [Unsure("Nothing about: “why”", [said("Far.")], shown=False)])
    assert whole(quotation).splitlines()[2:] == [
        "> | Dog | Tax |",
        "> | --- | --- |",
        "> | first | 84 |",
        "> | second | 132 |",
        ">",
        "> Register it here.",
        "",
        "Nothing about: “why”",
    ]


def test_citations_of_what_comes_closest_to_a_part_are_counted_on() -> None:
    quotation = by_part(
        [[said("Open daily.")]], LEAD_IN, [Unsure("Closest:", [said("A ticket is 4 euros.", start=50)], shown=True)]
    )
    assert whole(quotation).endswith("Closest:\n\n> A ticket is 4 euros.")
    assert len(quotation.citations) == 2


def test_definitions_are_quoted_below_their_terms() -> None:
    day = {"kind": "item", "block": 5, "of": 4, "headings": ("Hours",)}
    evidence = [
        said(":   9 to 5", 10, start=10, header="Monday", **day),
        said(":   not in May", 9, start=20, header="Monday", **day),
        said("- by letter", 9, start=40, header="Friday\nSunday", **day),
        said(": Mon - Fri: 9 - 12, 3. floor", 9, start=60, header="Office", **day),
    ]
    assert whole(answering(evidence, LEAD_IN)).splitlines()[2:] == [
        "> **Hours**",
        ">",
        "> Monday",
        "> : 9 to 5",
        "> : not in May",
        ">",
        "> Friday",
        "> Sunday",
        "> : by letter",
        ">",
        "> Office",
        "> : Mon - Fri: 9 - 12, 3. floor",
    ]


ROW = {"kind": "row", "header": "| Day | Hours |", "block": 5, "of": 3, "headings": ("Hours",)}
WEEK = "| Day | Hours |\n| --- | --- |\n| Sat | 8 |\n| Sun | 9 |"


def test_the_whole_table_comes_with_rows_of_it() -> None:
    tables = [SourceTable(sources=(1, 2), block=5, text=WEEK), SourceTable(sources=(1,), block=99, text="| x |")]
    quotation = answering([said("| Sun | 9 |", n=2, start=40, **ROW)], LEAD_IN, tables)
    [whole_table] = [event for event in quotation.events if isinstance(event, WholeTable)]
    assert (whole_table.n, whole_table.text) == (2, WEEK)
    assert quotation.text[whole_table.start :].startswith("| Day | Hours |\n> | --- |")


def test_a_table_all_of_whose_rows_are_quoted_is_whole() -> None:
    rows = [said("| Sat | 8 |", 9, start=20, **ROW), said("| Sun | 9 |", start=40, **ROW)]
    quotation = answering(rows, LEAD_IN, [SourceTable(sources=(1,), block=5, text=WEEK)])
    assert not any(isinstance(event, WholeTable) for event in quotation.events)


def test_what_another_page_says_about_the_day_stays_where_it_is() -> None:
    evidence = [said("The market is on the square.", 10.0), said("On Mondays we close at 5.", 9.0, n=2)]
    assert on_day(evidence, date(2026, 11, 23), "en", {1})[0][0].n == 1
    assert on_day(evidence, date(2026, 11, 23), "en", {1, 2})[0][0].n == 2
