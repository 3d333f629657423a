"""Texts made to hurt: short units, said again and again."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator

# Signs of Markdown, HTML, addresses and numbers, beginnings that nothing ends, words of ours, scripts of every kind.
_OTHERS = (
    *("- ", "- a\n", "| ", "| a |\n", "|-", "|---|", "1. ", "# ", "> ", "```\n", "~~", "**a", "`a", "[](", "](", "[1]"),
    *("[a](b)", "<b>", "<a", "</", "<!--", "<script>", "&amp;", "&#", "\\*", "\\|", "http://a.b/", "www.a.", "%41"),
    *("a@", "a@a.", "a@b.cc ", "1/", "1/1 ", "1-", "1.", "1:", "1,", "(1", "+1", "12 ", "10:30 ", "1.1.2020 ", "1 € "),
    *("0171 2345678 ", "DE89 3704 ", "4111 ", "a ", "a. ", "a? ", "a, ", "a; ", "a\n", "A. ", "a'", "a-", "aB", "x1"),
    *("?\n", "! ", "ok ", "hi, ", "thanks ", "and ", "not ", "what and ", "is it ", "Mo, ", "Mon ", "May ", "Nr. "),
    *("January 1 ", "library card ", "dont' ", "zwei ", "ä", "ß", "ı", "é\u0301", "\u0301", "a\u0301\u0302\u0303"),
    *("Ω", "я", "א\u05b0", "ا\u064b", "हि", "ไ", "ก ", "က", "漢", "漢。", "か", "カ", "한", "ﷺ", "ﬃ", "👍", "👍🙏"),
    *("👨\u200d👩\u200d👧", "🏽", "🇩🇪", "\u200d", "\u200f", "\u202e", "\u00ad", "\ufffd", "…", "—", "¿", "«", "“"),
    *("。", "、", "\xa0", "\u2028", "\x00", "\t", "\n", "\r\n", "  ", " \n"),
)
UNITS = (*string.punctuation, "1", "a", "A", " ", *_OTHERS)
ENDS = ("", "a", "1", "!", "\0")  # that may keep all before them from being what it looked like


def long(unit: str, size: int, end: str = "") -> str:
    """A text of `size` characters, about."""
    return unit * max((size - len(end)) // len(unit), 1) + end


def mixed(size: int, count: int) -> Iterator[str]:
    """Units in a row that is said again and again, and units one after the other as chance has it."""
    chance = random.Random(29)
    for _ in range(count):
        yield long("".join(chance.sample(UNITS, 3)), size)
        yield "".join(chance.choices(UNITS, k=size // 2))[:size]
