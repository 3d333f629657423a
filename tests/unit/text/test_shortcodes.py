"""Shortcodes that no plugin renders are no text of a page; words in brackets are."""

from __future__ import annotations

import pytest

from text.html import read
from text.shortcodes import is_shortcodes


@pytest.mark.parametrize(
    "text",
    [
        '[gallery ids="4,5"]',
        "[gallery]",
        "[contact-form-7 id=&quot;12&quot; title=“Ask us”]",
        "[contact-form-7 id=”12″ title=”Ask us”]",  # with WordPress's quotation marks
        "[vc_row]\n[vc_column width='1/2']",
        "[/vc_column][/vc_row]",
        "[tablepress id=3 /]",
    ],
)
def test_shortcodes(text: str) -> None:
    assert is_shortcodes(f" {text}\n")
    assert not is_shortcodes(f"Before {text}")
    assert not is_shortcodes(f"{text} behind")


@pytest.mark.parametrize(
    "text",
    ["", "[", "[]", "[1]", "[sic]", "[...]", "[see below]", "[x = 5]", "[to-do]", "[Bild]", "[gallery] [1]", "[a](b=c)",
     "[We meet at 7]", "[[gallery]"],
)  # fmt: skip
def test_words_in_brackets(text: str) -> None:
    assert not is_shortcodes(text)


def test_they_are_left_out_where_they_stand_alone() -> None:
    text = read("<p>Before.</p><p>[old_gallery ids=”4,5″]</p><p>Behind [sic].</p><p>[1]</p><p>As [gallery] says.</p>")
    assert text.markdown == "Before.\n\nBehind [sic].\n\n[1]\n\nAs [gallery] says."
    words = text.words({})
    assert words is not None
    assert words.left_out == {"shortcode": 4}


def test_code_shows_them() -> None:
    assert "[gallery ids=1]" in read("<p>Write</p><pre><code>[gallery ids=1]</code></pre>").markdown
    assert "[gallery ids=1]" in read("<p>Write</p><p><code>[gallery ids=1]</code></p>").markdown
