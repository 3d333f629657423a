from __future__ import annotations

import pytest

from adapters.extraction.delimited import table
from adapters.extraction.documents import read

PRICES = """| Angebot | Preis |
| --- | --- |
| Erwachsene | 12,50 € |
| Kinder | 6,00 € |"""


@pytest.mark.parametrize(
    "text",
    [
        "Angebot;Preis\nErwachsene;12,50 €\nKinder;6,00 €\n",
        "Angebot\tPreis\r\nErwachsene\t12,50 €\r\n\r\nKinder\t6,00 €",
        'Angebot,Preis\n"Erwachsene","12,50 €"\nKinder,"6,00\n€"\n',
        "Angebot|Preis\nErwachsene|12,50 €\nKinder|6,00 €\n",
    ],
)
def test_columns_are_found_by_the_delimiter_that_makes_equal_rows(text: str) -> None:
    assert table(text) == PRICES


def test_a_first_row_with_figures_names_no_columns() -> None:
    assert table("Pool;9-17\nSauna;10-22\n") == "|  |  |\n| --- | --- |\n| Pool | 9-17 |\n| Sauna | 10-22 |"


def test_cells_are_text_and_no_markdown() -> None:
    assert table("Was;Wie\na|b;*nur* samstags\n") == "| Was | Wie |\n| --- | --- |\n| a\\|b | \\*nur\\* samstags |"


@pytest.mark.parametrize("text", ["", "one line", "A text, with commas\nand lines.\n", "a;b\n" + ";" + "x" * 200_000])
def test_what_is_no_table_is_none(text: str) -> None:
    assert table(text) is None


def test_a_file_that_is_no_table_keeps_its_text() -> None:
    assert [each.text for each in read("csv", b"Open on Monday,\nclosed on Sunday.", 1000).sections] == [
        "Open on Monday,\nclosed on Sunday."
    ]


def test_a_file_s_encoding_is_found() -> None:
    [found] = read("csv", "Angebot;Preis\nKinder;6 €\n".encode("cp1252"), 1000).sections
    assert "| Kinder | 6 € |" in found.text
