"""What stands before a text: told from a line across the page, and read as it was meant."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from connectors.cms.front_matter import LONGEST_TOML, split


@pytest.mark.parametrize(
    ("text", "fields", "body"),
    [
        # prettier/prettier issue 9788
        ("---\n---\n# Title\n\ntext\n\n---\n\nmore", {}, "# Title\n\ntext\n\n---\n\nmore"),
        # sveltia/sveltia-cms issue 833
        ("---\ntitle: Fees: what they are\n---\nText", {"title": "Fees: what they are"}, "Text"),
        ('---\ntitle: A "b": \\c\nlang: de\n---\nT', {"title": 'A "b": \\c', "lang": "de"}, "T"),
        ("---\ntitle: A\nlang: no\n---\nT", {"title": "A", "lang": "no"}, "T"),
        ("---\npublished: no\n---\nT", {"published": False}, "T"),
        # billthefarmer/diary issue 229
        ("---\n\nIntro: here\n\n---\n\n# Title", {}, "---\n\nIntro: here\n\n---\n\n# Title"),
        ('+++\ntitle = "A"\ndate = 2026-05-04\n+++\nT', {"title": "A", "date": date(2026, 5, 4)}, "T"),
        ("+++\nno end", {}, "+++\nno end"),
    ],
)
def test_front_matter_is_what_it_says(text: str, fields: dict[str, Any], body: str) -> None:
    assert split(text) == (fields, body)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("---\ntitle: [\n---\n", "while parsing"),
        ("+++\ntitle = \n+++\n", "front matter: Invalid value"),
        (f"+++\n{'a.' * LONGEST_TOML}a = 1\n+++\n", "front matter: longer than 4,096 characters"),
        (f"+++\na = {'[' * 4_000}\n+++\n", "front matter: "),
    ],
)
def test_what_is_none_is_named(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        split(text)
