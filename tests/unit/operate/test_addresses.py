"""Two addresses of one page."""

from __future__ import annotations

import pytest

from schemas.keys import is_address, same_address


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ("https://www.town.example/pool", True),
        ("http://WWW.town.example/pool/#fees", True),
        ("/pool", True),
        ("https://www.town.example/p%6Fol", True),
        ("https://www.town.example/pool?lang=de", False),
        ("https://www.village.example/pool", False),
        ("https://www.town.example/Pool", False),
        ("https://www.town.example/", False),
        ("http://[::1", False),
    ],
)
def test_what_leads_to_the_same_page_is_the_same(other: str, same: bool) -> None:
    assert same_address("https://www.town.example/pool", other) is same
    assert same_address(other, "https://www.town.example/pool") is same


def test_the_first_page_has_an_address_too() -> None:
    assert same_address("https://www.town.example", "https://www.town.example/")


def test_a_page_id_is_no_address() -> None:
    assert is_address("https://www.town.example/pool")
    assert not is_address("news/2026:pool")
