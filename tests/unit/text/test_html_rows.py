"""Short blocks that are one statement are read as one: a price with its name, a label with its value, a new price."""

from __future__ import annotations

import pytest

from text.html import read
from text.html_rows import LONGEST, MOST
from text.units import units


def said(html: str, lang: str = "en") -> list[str]:
    return [unit.said for unit in units(read(html, lang).markdown, lang)]


@pytest.mark.parametrize(
    ("html", "right"),
    [
        # a menu as Squarespace writes it
        (
            "<div><div>Pumpkin soup</div><div>Ginger, coconut</div><div><span>$</span>7.50</div></div>"
            "<div><div>Tomato soup</div><div><span>$</span>6.00</div></div>",
            ["Pumpkin soup Ginger, coconut $7.50", "Tomato soup $6.00"],
        ),
        # what the price is for stands below it, and both beside the name
        (
            "<div><div>Pool</div><div><p>4,00 €</p><p>pro Person</p></div></div>"
            "<div><div>Sauna</div><div><p>ab 12,– €</p></div></div>",
            ["Pool 4,00 € pro Person", "Sauna ab 12,– €"],
        ),
        ("<ul><li><p>Pool</p><p>4 €</p><li><p>Sauna</p><p>9 €</p></ul>", ["Pool 4 €", "Sauna 9 €"]),
        ("<div><div>Sauna</div><div><del>12 €</del> 10 €</div></div>", ["Sauna 10 €"]),
        # names of two prices, a heading, a list, a cell, a long text: as they are
        ("<div><p>Pool</p><p>4 €</p><p>Sauna</p><p>9 €</p></div>", ["Pool", "4 €", "Sauna", "9 €"]),
        ("<div><h3>Pool</h3><div>4 €</div></div>", ["4 €"]),
        ("<table><tr><td><p>Pool</p><p>4 €</p><td>x<tr><td>y<td>z</table>", ["Pool 4 €; x", "y; z"]),
        (f"<div><p>{'Pool ' * LONGEST}</p><p>4 €</p></div>", [("Pool " * LONGEST).strip(), "4 €"]),
        ("<div><p>Built in</p><p>1950</p></div>", ["Built in", "1950"]),
    ],
)
def test_a_price_is_said_with_its_name(html: str, right: list[str]) -> None:
    assert said(html) == right


@pytest.mark.parametrize(
    ("html", "right"),
    [
        # Magento, OpenCart, PrestaShop, Squarespace
        (
            '<div class="price-box"><span class="old-price"><span class="price">50,00 €</span></span>'
            '<span class="special-price"><span class="price">40,00 €</span></span></div>',
            ["40,00 €"],
        ),
        (
            '<p><span class="price-old">$122.00</span> <span class="price-new">$110.00</span></p>',
            ["$110.00"],
        ),
        (
            '<div><span class="regular-price">1.299,00 €</span> <span class="current-price">999,00 €</span></div>',
            ["999,00 €"],
        ),
        (
            '<div><span class="original-price">50.00</span> <span class="sale-price">40.00</span></div>',
            ["40.00"],
        ),
        ('<div><div class="price-compare">£50</div><div class="price">£40</div></div>', ["£40"]),
        # nothing lower beside it: it is the price
        (
            '<div class="price-box"><span class="regular-price"><span class="price">30,00 €</span></span></div>',
            ["30,00 €"],
        ),
        ('<p><span class="original-price">30 €</span> <span class="price">35 €</span></p>', ["30 € 35 €"]),
    ],
)
def test_a_former_price_is_not_said_beside_the_new_one(html: str, right: list[str]) -> None:
    assert said(html) == right


@pytest.mark.parametrize(
    ("html", "right"),
    [
        # a field as Drupal's views write it
        (
            '<div class="views-field"><span class="views-label">Date: </span>'
            '<div class="field-content"><time>3 May 2026</time></div></div>',
            ["Date: 3 May 2026"],
        ),
        ("<div><strong>Place:</strong><p>Town hall</p></div>", ["Place: Town hall"]),
        ("<div><div>Phone:</div><div>555 0101</div></div>", ["Phone: 555 0101"]),
        ("<p>Bring:</p><ul><li>a towel</ul>", ["Bring:", "a towel"]),
        ("<p>Phone:</p><p>Mail:</p><p>a@b.example</p>", ["Phone:", "Mail: a@b.example"]),
        (f"<p>Note:</p><p>{'word ' * LONGEST}</p>", ["Note:", ("word " * LONGEST).strip()]),
    ],
)
def test_a_label_is_said_with_its_value(html: str, right: list[str]) -> None:
    assert said(html) == right


def test_very_many_prices_are_left_as_they_are() -> None:
    rows = "<div><p>Pool</p><p>4 €</p></div>" * (MOST + 1)
    assert said(rows)[-2:] == ["Pool", "4 €"]
    assert said(rows)[:2] == ["Pool 4 €"] * 2
