"""Prices in the tree of a page: former ones are marked as deleted, and a price is in one paragraph with its name.

<div>Soup</div> <div>$7.50</div>                      ─▶ Soup, $7.50: one paragraph of two lines
<span class="old-price">50</span> <span>40</span>     ─▶ the 50 is deleted, since a style sheet strikes it
"""

from __future__ import annotations

import re

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString

MOST = 500  # prices and labels of a page that are looked at, each with a few short elements around it
AROUND = 4  # levels above a price where its name, or the new price, is looked for
LONGEST = 200  # characters of a price with its name
_FORMER = frozenset(
    ("compare", "crossed", "former", "msrp", "old", "original", "previous", "rrp", "strike", "striked",
     "strikethrough", "uvp", "was")
)  # fmt: skip
_SIGN = r"(?:[€$£¥₹₺]|\b(?:CHF|EUR|Euro|Fr|GBP|Kč|kr|PLN|USD|zł)\b\.?)"
_AMOUNT = r"\d(?:[\d.,'’ ]{0,12}\d)?(?:[.,][-–—]{1,2})?"
_PRICE = re.compile(rf"(?:{_SIGN}\s?{_AMOUNT}|{_AMOUNT}\s?{_SIGN})", re.IGNORECASE)
_BARE = re.compile(rf"\A\s*(?:[^\W\d]{{1,8}} )?{_PRICE.pattern}\*?\s*\Z", re.IGNORECASE)
_NUMBER = re.compile(r"\d(?:[\d.,'’]{0,12}\d)?")
_CENTS = re.compile(r"[.,](\d\d)\Z")
_LABEL = re.compile(r"\A\s*[^\W\d][^\n:]{1,38}:\s*\Z")
_LINES = frozenset(("div", "p"))
_APART = frozenset(
    ("article", "blockquote", "button", "details", "dl", "form", "h1", "h2", "h3", "h4", "h5", "h6", "ol", "pre",
     "section", "table", "td", "th", "tr", "ul")
)  # fmt: skip


_ROWS = _LINES | {"li"}
_BLOCKS = _APART | _LINES


def is_former(words: set[str]) -> bool:
    """Whether the words of a class name a price that was valid before, as shops' themes do."""
    return "price" in words and bool(words & _FORMER)


def mark_former(soup: BeautifulSoup) -> None:
    """Keep the deletion of a former price only where a lower one stands beside it."""
    for tag in soup.find_all("s", attrs={"former": True}, limit=MOST):
        own = _numbers(_beginning(tag))
        if len(own) != 1 or not any(number < own[0] for number in _beside(tag)):
            tag.insert_before(" ")
            tag.insert_after(" ")
            tag.unwrap()


def join_prices(soup: BeautifulSoup) -> None:
    """Make one paragraph of a price that stands alone and the short blocks beside it."""
    found = [text for text in soup.find_all(string=_BARE) if text.parent is not None][:MOST]
    for text in found:
        row = _row(text.parent) if len(text) <= LONGEST else None
        if row is None:
            continue
        for block in row.find_all(tuple(_LINES)):
            block.insert_before(soup.new_tag("br"))
            block.insert_after(soup.new_tag("br"))
            block.unwrap()
        row.name = "li" if row.name == "li" else "p"
        _break_once(row)


def _break_once(row: Tag) -> None:
    """Leave one break between two lines, and none at the ends."""
    ended = True
    for part in [*row.children]:
        if isinstance(part, Tag) and part.name == "br":
            if ended:
                part.decompose()
            ended = True
        elif part.get_text().strip():
            ended = False
    last = row.contents[-1] if row.contents else None
    if isinstance(last, Tag) and last.name == "br":
        last.decompose()


def join_labels(soup: BeautifulSoup) -> None:
    """Make one paragraph of a label with a colon and the short block directly behind it."""
    for text in soup.find_all(string=_LABEL)[:MOST]:
        label: Tag | NavigableString = text
        if text.parent is not None and text.parent.name in ("b", "strong") and len(text.parent.contents) == 1:
            label = text.parent
        if (parent := label.parent) is not None and parent.name in _LINES and len(parent.contents) == 1:
            label = parent
        value = label.next_sibling
        while isinstance(value, NavigableString) and not value.strip():
            value = value.next_sibling
        if not isinstance(value, Tag) or value.name not in _LINES or not (said := _beginning(value)):
            continue
        if len(said) > LONGEST or _LABEL.match(said) or any(each.name in _BLOCKS for each in value.find_all(True)):
            continue
        label.insert_before(value)
        if not text.endswith(" "):
            value.insert(0, " ")
        value.insert(0, label)
        if isinstance(label, Tag) and label.name in _LINES:
            label.unwrap()


def _row(inside: Tag | None) -> Tag | None:
    """The smallest element that has a price and, before it, its name; None if there is other content in it."""
    row = None
    own = _beginning(inside) if inside is not None else ""
    for _ in range(AROUND):
        if inside is None or inside.name not in _ROWS:
            break
        said = _beginning(inside)
        if len(said) > LONGEST:
            break
        deleted = sum(len(_PRICE.findall(_beginning(tag))) for tag in inside.find_all(("del", "s"), limit=2))
        if len(_PRICE.findall(said)) - deleted != 1:
            break
        if any(tag.name in _APART for tag in inside.find_all(True, limit=50)):
            break
        if said != own:
            row = inside
            if not said.startswith(own):
                break
        inside = inside.parent
    return row


def _beside(tag: Tag) -> list[float]:
    """The prices in the smallest element around it that has others."""
    own, around = _beginning(tag), tag.parent
    for _ in range(AROUND):
        if around is None or len(said := _beginning(around)) > LONGEST:
            break
        if numbers := _numbers(said.replace(own, " ", 1)):
            return numbers
        around = around.parent
    return []


def _numbers(text: str) -> list[float]:
    return [_value(found) for found in _NUMBER.findall(text)]


def _value(number: str) -> float:
    cents = _CENTS.search(number)
    whole = number[: cents.start()] if cents else number
    return float("".join(filter(str.isdecimal, whole)) or 0) + (int(cents[1]) / 100 if cents else 0)


def _beginning(tag: Tag) -> str:
    """Its text, or more than `LONGEST` characters of it."""
    found: list[str] = []
    length = 0
    for text in tag.strings:
        said = " ".join(text.split())
        if said:
            found.append(said)
            length += len(said)
        if length > LONGEST:
            break
    return " ".join(found)
