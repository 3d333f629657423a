"""Blocks of Markdown, of whole pages and of fragments of them, and what a reader sees."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from text.markdown import MAX_NESTING, as_text, blocks, cells, plain, to_html


def units(text: str) -> list[tuple[str, str]]:
    return [(block.kind, text[block.start : block.end]) for block in blocks(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("> a\n>\n> b", [("prose", "> a"), ("prose", "> b")]),
        ("> - a\n> - b", [("item", "> - a"), ("item", "> - b")]),
        ("- a\n  - b\n    c\n\n  d\n- e", [("item", "- a"), ("item", "- b\n    c"), ("prose", "d"), ("item", "- e")]),
        ("- ### a\n\n  b", [("item", "- ### a"), ("prose", "b")]),
        ("1. a\n   1. b\n2. c", [("item", "1. a"), ("item", "1. b"), ("item", "2. c")]),
        ("a:\n- b\n- c", [("prose", "a:"), ("item", "- b"), ("item", "- c")]),
        ("1998. Then came the pool.", [("prose", "1998. Then came the pool.")]),
        ("````\n```\na\n```\n````\nb", [("code", "```\na\n```"), ("prose", "b")]),
        ("```ls -l``` lists.\n\n# b", [("prose", "```ls -l``` lists."), ("heading", "# b")]),
        ("- a\n\n  ```\n  b\n  ```", [("item", "- a"), ("code", "b")]),
        ("a\n    b", [("prose", "a\n    b")]),
        ("    a", [("prose", "a")]),
        ("a\n---\nb", [("prose", "a"), ("prose", "b")]),
        ("[a]: /b", [("prose", "[a]: /b")]),
        ("<p>a</p>", [("prose", "<p>a</p>")]),
        ("a\r\n\r\nb", [("prose", "a"), ("prose", "b")]),
        ("```\r\na\r\n```\r\nb", [("code", "a"), ("prose", "b")]),
        ("a\\\nb", [("prose", "a\\"), ("prose", "b")]),
        ("a\n: b\n: c\n\nd\n:   e\n\n    f", [("item", t) for t in ("a", ": b", ": c", "d", ":   e", "f")]),
        ("- a\n\n  b\n  : c", [("item", "- a"), ("item", "b"), ("item", ": c")]),
        ("a: b\n:) c", [("prose", "a: b\n:) c")]),
        ("", []),
    ],
)
def test_blocks(text: str, expected: list[tuple[str, str]]) -> None:
    assert units(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A passage begins where the one before it ended.
        ("| b | 2 |\n| c | 3 |\n\nd", [("row", "| b | 2 |"), ("row", "| c | 3 |"), ("prose", "d")]),
        ("| --- | --- |\n| c | 3 |", [("row", "| c | 3 |")]),
        ("of a list.\n- b", [("prose", "of a list."), ("item", "- b")]),
        ("   - b\n2. c", [("item", "- b"), ("item", "2. c")]),
        ("a\n7. b\n8. c", [("prose", "a"), ("item", "7. b"), ("item", "8. c")]),
        ("a()\n```\nb", [("prose", "a()"), ("code", "b")]),
        (": b\n: c", [("item", ": b"), ("item", ": c")]),  # of a term in the passage before
        # As office files and the text of PDFs have them.
        ("• a\n• b", [("item", "• a"), ("item", "• b")]),
    ],
)
def test_fragments(text: str, expected: list[tuple[str, str]]) -> None:
    assert units(text) == expected


def test_rows_know_their_header() -> None:
    text = "a\n| b |\n| --- |\n| c |\nd\n\n| e |"
    found = [(text[b.start : b.end], b.header and text[slice(*b.header)]) for b in blocks(text)]
    assert found == [("a", None), ("| b |", None), ("| c |", "| b |"), ("d", None), ("| e |", None)]


def test_a_blank_header_is_none() -> None:
    text = "| a |\n| --- |\n| b |\n\n|  |\n| --- |\n| c |"
    found = [(text[b.start : b.end], b.header and text[slice(*b.header)]) for b in blocks(text)]
    assert found == [("| a |", None), ("| b |", "| a |"), ("| c |", None)]


def test_definitions_know_their_terms() -> None:
    text = "a\nb\n: c\n\n    d\n\ne"
    terms = [block.header and text[slice(*block.header)] for block in blocks(text)]
    assert terms == [None, "a\nb", "a\nb", None]


@pytest.mark.parametrize("mark", ["> ", "- ", "> - ", "1. "])
@pytest.mark.parametrize("depth", [MAX_NESTING // 2, 3 * MAX_NESTING, 400])
def test_what_is_nested_deeply_is_read_all_the_same(mark: str, depth: int) -> None:
    text = f"{mark * depth}deep\n\nafter"
    [(_, nested), after] = units(text)
    assert nested.endswith("deep")
    assert after == ("prose", "after")


@given(st.text(alphabet="aB1. \n|-#`*>~•\t\\", max_size=200))
@example("> " * 20 + "a\nb")
def test_blocks_are_in_order_apart_and_lose_no_word(text: str) -> None:
    found = list(blocks(text))
    assert all(a.end <= b.start for a, b in pairwise(found))
    assert all(text[b.start : b.end] == text[b.start : b.end].strip() != "" for b in found)
    inside = {at for b in found for at in range(b.start, b.end)}
    if "```" not in text and "~~~" not in text:  # what stands behind a fence says how to colour the code
        assert [at for at, ch in enumerate(text) if ch.isalnum() and at not in inside] == []


@pytest.mark.parametrize(
    ("markdown", "words"),
    [
        ("## **Opening** hours", "Opening hours"),
        ("- [Fees](/fees 'x') and _more_", "[Fees](/fees 'x') and more"),
        ('1. [Fees](/fees "All fees") for snake_case', "Fees for snake_case"),
        ("| Mon | 9–18 |", "Mon 9–18"),
        ("| Day | Hours |\n| --- | --- |\n| Mon | 9–18 |", "Day Hours Mon 9–18"),
        ("Mon\n:   9–18", "Mon 9–18"),
        ("Press |Ctrl| or a | b.\n\n| \\|x\\| | y |", "Press |Ctrl| or a | b. |x| y"),
        ("> Quote \\* `code`\n> more", "Quote * code more"),
        ("![Map](map.png) here", "Map here"),
        ("**Open daily.", "Open daily."),  # half of `**Open daily. Closed on Sundays.**`
        ("hours](/hours) and prices", "hours](/hours) and prices"),
        ("A*A*A or A*AA, 5*3=15", "A*A*A or A*AA, 5*3=15"),
        ("`__init__.py`, __init__.py and `*.txt`", "__init__.py, __init__.py and *.txt"),
        ("这是*重要*的, _so_, __and__ \\_so\\_.", "这是重要的, so, and _so_."),
        ("**https://t.example/Foo_(bar)_a_**, _b_", "https://t.example/Foo_(bar)_a, b"),
    ],
)
def test_plain_is_what_a_reader_sees(markdown: str, words: str) -> None:
    assert plain(markdown) == words


def test_cells_of_a_row() -> None:
    assert cells("| a | b \\| c |") == cells("| a | b \\| c") == ["a", "b \\| c"]
    assert cells("| a | |") == ["a", ""]


def test_a_document_becomes_html() -> None:
    assert to_html("# A\n\n| b |\n| - |\n| c |").startswith("<h1>A</h1>\n<table>")


def test_what_an_editor_writes_links_to_pages_mail_and_telephones_alone() -> None:
    for kept in ("[a](https://town.example/x)", "[m](mailto:a@town.example)", "[t](tel:112)", "[r](/page)", "(112): x"):
        assert as_text(kept) == kept
    assert as_text("![p](https://town.example/x.png)") == "[p](https://town.example/x.png)"
    for link in (
        "[x](javascript:a)",
        "[x]( JavaScript:a)",
        "[x](java&#115;cript:a)",
        "[x](<data:a>)",
        "[x]: data:a\n[x]",
    ):
        assert "href" not in to_html(as_text(link)), link
