"""HTML's entities in a model's text are read once, and make nothing of it that it was not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.query.answer.entities import EntityReader


def read(*pieces: str) -> str:
    reader = EntityReader()
    return "".join(map(reader.feed, pieces)) + reader.finish()


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("In AT&amp;T Park", "In AT&T Park"),
        ("12&nbsp;euros, 5&#8364;, 5&#X20AC;, &quot;yes&quot;, it&#39;s", '12\u00a0euros, 5€, 5€, "yes", it\'s'),
        ("&lt;b&gt;", "<b>"),
        ("&amp;nbsp;", "&nbsp;"),  # once
        ("AT&T, R&D; &c., &notit; &copy=2 &", "AT&T, R&D; &c., &notit; &copy=2 &"),  # none, or no end
        ("`&amp;` and &amp;", "`&amp;` and &"),
        ("```\n&lt;b&gt;\n```\n&lt;", "```\n&lt;b&gt;\n```\n<"),
        ("&#42;&#91;x&#93;&lowbar;", r"\*\[x\]\_"),  # an asterisk, no emphasis
        ("a&NewLine;- b&#10;- c&#0;", "a&NewLine;- b&#10;- c\ufffd"),  # no line of a list
        ("&#x110000; &#55357;", "\ufffd \ufffd"),
    ],
)
def test_what_is_read_and_what_stays(said: str, shown: str) -> None:
    assert read(said) == shown
    assert read(*said) == shown


@given(st.text("&amp;#39x`\n t", max_size=30))
def test_however_it_is_cut_it_is_the_same(said: str) -> None:
    assert read(*said) == read(said)
