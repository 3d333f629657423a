"""What a page calls itself."""

from __future__ import annotations

import pytest

from connectors.cms.page_fields import title_in

SITE = '<meta property="og:site_name" content="Town of X">'


@pytest.mark.parametrize(
    ("page", "title"),
    [
        ("<title>Library - Town of X</title><h1>Library</h1>", "Library"),
        ("<title>Library</title><h1>Welcome to the library</h1>", "Library"),
        (f"<title>Library | Town of X</title>{SITE}<p>text</p>", "Library"),
        (f"<title>Town of X · Library</title>{SITE}", "Library"),
        (f"<title>Town of X</title>{SITE}", "Town of X"),
        (f"<title>Parking in the Town of X</title>{SITE}", "Parking in the Town of X"),
        ("<title>A - B</title><h1>A</h1><h1>B</h1>", "A - B"),
        ("<h1> The <b>fees</b>\n of 2026</h1><p>x</p>", "The fees of 2026"),
        ("<h1></h1><h1>Second</h1>", "Second"),
        ('<meta property="og:title" content="Shared">', "Shared"),
        ("<title>  </title><p>text</p>", ""),
        ("just text", ""),
        ("", ""),
        ("<!-- -->", ""),
    ],
)
def test_a_page_is_called_what_it_calls_itself(page: str, title: str) -> None:
    assert title_in(page) == title
