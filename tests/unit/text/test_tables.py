"""Tables: each row can be read alone, and no cell stands under a name that is not its own."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text.html import to_markdown
from text.markdown import blocks, cells, inline
from text.units import units


def said(html: str) -> list[str]:
    """What each row says, and the prose between."""
    return [unit.said for unit in units(to_markdown(html), "en")]


# matthewwithanm/python-markdownify issues 109, 121, PRs 219, 220; adbar/trafilatura issues 531, 599, 890; own ones.
TABLES = {
    "a cell over two rows": (
        "<table><tr><th>Day<th>Room<th>Price<tr><td rowspan=2>Monday<td>Hall<td>5 €<tr><td>Gym<td>9 €</table>",
        ["Day: Monday; Room: Hall; Price: 5 €", "Day: Monday; Room: Gym; Price: 9 €"],
    ),
    "a header of two rows": (
        "<table><thead><tr><th rowspan=2>Ticket<th colspan=2>Price<tr><th>Adult<th>Child</thead>"
        "<tr><td>Day<td>9<td>5</table>",
        ["Ticket: Day; Price: Adult: 9; Price: Child: 5"],
    ),
    "a second header row of plain cells": (
        "<table><tr><th rowspan=2>Ticket<th colspan=2>Price<tr><td>Adult<td>Child<tr><td>Day<td>9<td>5</table>",
        ["Ticket: Day; Price: Adult: 9; Price: Child: 5"],
    ),
    "row headers alone": (
        "<table><tr><th>Monday<td>closed<tr><th>Tuesday<td>10-18<tr><th scope=row>Wednesday<td>12-20</table>",
        ["Monday; closed", "Tuesday; 10-18", "Wednesday; 12-20"],
    ),
    "a first row that is data": (
        "<table><tr><td>Tel.:<td>030 1<tr><td>Fax:<td>030 2</table>",
        ["Tel.: 030 1", "Fax: 030 2"],
    ),
    "two columns of which nobody can know": (
        "<table><tr><td>Name<td>Anna<tr><td>Tel<td>030 1<tr><td>Fax<td>030 2</table>",
        ["Name; Anna", "Tel; 030 1", "Fax; 030 2"],
    ),
    "a day that names no column": (
        "<table><tr><td>Monday<td>closed<td>on request<tr><td>Tuesday<td>9<td>10<tr><td>Friday<td>8<td>11</table>",
        ["Monday; closed; on request", "Tuesday; 9; 10", "Friday; 8; 11"],
    ),
    "a row that names no column": (
        "<table><tr><th>Hall<td>closed<td>free<tr><th>Gym<td>9<td>10<tr><th>Pool<td>8<td>11</table>",
        ["Hall; closed; free", "Gym; 9; 10", "Pool; 8; 11"],
    ),
    "words over figures": (
        "<table><tr><td>Day<td>Adult<td>Child<tr><td>Mon<td>9 €<td>5 €<tr><td>Tue<td>8 €<td>4 €</table>",
        ["Day: Mon; Adult: 9 €; Child: 5 €", "Day: Tue; Adult: 8 €; Child: 4 €"],
    ),
    "bold words": (
        "<table><tr><td><b>Day</b><td><strong>Hall</strong><tr><td>Mon<td>free<tr><td>Tue<td>closed</table>",
        ["Day: Mon; Hall: free", "Day: Tue; Hall: closed"],
    ),
    "a title above the header": (
        "<table><tr><th colspan=3>Summer<tr><th>Day<th>Adult<th>Child<tr><td>Mon<td>9 €<td>5 €</table>",
        ["Summer", "Day: Mon; Adult: 9 €; Child: 5 €"],
    ),
    "a title that reaches too far, with a caption": (
        "<table><caption>Muesli</caption><tr><th colspan=99999>Facts<tr><td>Energy<td>493<tr><td>Fat<td>3 g</table>",
        ["Muesli: Facts", "Energy; 493", "Fat; 3 g"],
    ),
    "groups": (
        "<table><tr><th>Ticket<th>Price<tr><th colspan=2>Adults<tr><td>Day<td>9 €<tr><th colspan=2>Children"
        "<tr><td>Day<td>5 €<tfoot><tr><td>Both<td>14 €</table>",
        ["Adults; Ticket: Day; Price: 9 €", "Children; Ticket: Day; Price: 5 €", "Ticket: Both; Price: 14 €"],
    ),
    "groups that end with their sections": (
        "<table><tr><th>Room<th>Price<tbody><tr><th colspan=2 scope=rowgroup>Paris<tr><td>Studio<td>11</tbody>"
        "<tbody><tr><td>Parking<td>2</tbody></table>",
        ["Paris; Room: Studio; Price: 11", "Room: Parking; Price: 2"],
    ),
    "a label that may be a group or a note": (
        "<table><tr><th>Day<th>Price<tr><td>Mon<td>9<tr><td colspan=2>From May<tr><td>Mon<td>11"
        "<tr><td colspan=2>Children are free.</table>",
        ["Day: Mon; Price: 9", "From May", "Day: Mon; Price: 11", "Children are free."],
    ),
    "two tables in one": (
        "<table><tr><th>Day<th>Hours<tr><td>Mon<td>9-12<tr><th colspan=2>Fees<tr><th>Who<th>Price"
        "<tr><td>Adults<td>9 €</table>",
        ["Day: Mon; Hours: 9-12", "Fees", "Who: Adults; Price: 9 €"],
    ),
    "a header cell in the middle that may be a sum or other names": (
        "<table><tr><th>Who<th>2026<tr><td>Adults<td>9<tr><th>Who<th>2027<tr><td>Adults<td>11</table>",
        ["Who: Adults; 2026: 9", "Who; 2027", "Adults; 11"],
    ),
    "a sum of header cells": (
        "<table><tr><th>Who<th>Price<tr><td>Adults<td>9<tr><th>All<th>11</table>",
        ["Who: Adults; Price: 9", "Who: All; Price: 11"],
    ),
    "thead without a row": ("<table><thead><th>A</th><th>B</th></thead><tr><td>1<td>2</table>", ["A: 1; B: 2"]),
    "thead alone": ("<table><thead><tr><td>Mon<td>9</thead></table>", ["Mon; 9"]),
    "tfoot first": (
        "<table><tfoot><tr><td>All<td>9</tfoot><tr><th>Who<th>Price<tr><td>Anna<td>4</table>",
        ["Who: Anna; Price: 4", "Who: All; Price: 9"],
    ),
    "rows that hang over their section's end": (
        "<table><thead><tr><th>Day<th>Price</thead><tbody><tr><td rowspan=0>Mon<td>1<tr><td>2</tbody>"
        "<tbody><tr><td>Tue<td>3</tbody></table>",
        ["Day: Mon; Price: 1", "Day: Mon; Price: 2", "Day: Tue; Price: 3"],
    ),
    "headers by their ids": (
        "<table><tr><th id=a>Ticket<th id=p>Price<tr><td>Day<td headers='p x'>9<tr><th id=x>Adults<td>...</table>",
        ["Ticket: Day; Price: Adults: 9", "Ticket: Adults; Price: ..."],
    ),
    "a cell too many": (
        "<table><tr><th>Day<th>Price<tr><td>Mon<td>9<td>only until May</table>",
        ["Day: Mon; Price: 9; only until May"],
    ),
    "a table in a cell": (
        "<table><tr><th>A<th>B<tr><td>x<td><table><tr><td>1|2<td>in2<tr><td>in3</table></table>",
        ["A: x; B: 1|2 in2; in3"],
    ),
    "a list in a cell, and figures one below the other": (
        "<table><tr><td>Mon<td><ul><li>10:00-20:00<li>21:00</ul><td>9<br>100</table>",
        ["Mon; 10:00-20:00; 21:00; 9; 100"],
    ),
    "a page that it lays out": ("<table><tr><td><h1>Pool</h1><p>Open.</p><td><p>Fees</p></table>", ["Open.", "Fees"]),
    "a column of lines": (
        "<table><tr><td>Open daily.<tr><td><b>Not in May.</b></table>",
        ["Open daily.", "Not in May."],
    ),
    "columns of nothing": ("<table><tr><th>Day<th><th>Price<tr><td>Mon<td><td>9</table>", ["Day: Mon; Price: 9"]),
}


@pytest.mark.parametrize("name", TABLES)
def test_each_cell_is_said_with_its_names(name: str) -> None:
    html, expected = TABLES[name]
    assert said(html) == expected


@pytest.mark.parametrize(("html", "expected"), TABLES.values(), ids=TABLES)
def test_each_row_has_as_many_cells(html: str, expected: list[str]) -> None:
    for table in to_markdown(html).split("\n\n"):
        rows = [row for row in table.splitlines() if row.startswith("|")]
        assert len({row.replace("\\|", "").count("|") for row in rows}) <= 1


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("| | |\n| --- | --- |\n| a | 5 |", ["a; 5"]),
        ("| a | b |\n| --- | --- |\n| 1 |\n| 1 | 2 | 3 |", ["a: 1", "1; 2; 3"]),
        ("| - 5 | 3. May |\n| --- | --- |\n| + 1 | 2. June |", ["- 5: + 1; 3. May: 2. June"]),
    ],
)
def test_tables_of_others_lose_no_cell(markdown: str, expected: list[str]) -> None:
    assert [unit.said for unit in units(markdown, "en")] == expected


SPANS = st.sampled_from(
    ["", "", "", " colspan=2", " rowspan=2", " colspan=99999", " rowspan=0", " rowspan=3 colspan=2"]
)
CELLS = st.tuples(st.sampled_from(["td", "td", "th"]), SPANS)
ROWS = st.lists(st.lists(CELLS, max_size=4), max_size=5)


@given(ROWS)
def test_no_cell_is_lost(rows: list[list[tuple[str, str]]]) -> None:
    names = iter(f"w{n}x" for n in range(100))
    html = "".join(f"<tr>{''.join(f'<{tag}{span}>{next(names)}' for tag, span in row)}" for row in rows)
    text = to_markdown(f"<table>{html}</table>")
    shown = {
        name for b in blocks(text) for name in inline(text[b.start : b.end].replace("|", " ")).replace(":", "").split()
    }
    assert {f"w{n}x" for n in range(sum(map(len, rows)))} <= shown


@given(ROWS)
def test_a_cell_says_no_other_column_s_name(rows: list[list[tuple[str, str]]]) -> None:
    """Without spans below, each cell stands where HTML puts it."""
    html = "".join(f"<tr>{''.join(f'<td>{y}.{x}' for x, _ in enumerate(row))}" for y, row in enumerate(rows))
    text = to_markdown(f"<table><thead><tr><th>h0<th>h1<th>h2<th>h3</thead>{html}</table>")
    for unit in units(text, "en"):
        assert all(part.partition(": ")[2].endswith(f".{part[1]}") for part in unit.said.split("; ") if ": " in part)


HOSTILE = {
    "one wide row": "<table><tr>" + "<td>a" * 900 + "<tr><td>b" * 5_000,
    "rows that hang": "<table><tr>" + "<td rowspan=65534>a" * 900 + "<tr><td>b" * 5_000,
    "spans alone": "<table>" + "<tr><td rowspan=65534 colspan=1000>a" * 5_000,
    "a long text over all": "<table><tr><td rowspan=65534>" + "word " * 20_000 + "<tr><td>b" * 5_000,
    "many tables": "<table><tr><td colspan=1000>a<td>b<tr><td>c" * 1_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_spans_make_neither_much_text_nor_long_work(name: str) -> None:
    html = HOSTILE[name]
    began = time.process_time()
    text = to_markdown(html)
    assert time.process_time() - began < 4
    assert len(text) < 6 * len(html)
    assert all(len(cells(row)) <= 1_000 for row in text.splitlines()[:100])
