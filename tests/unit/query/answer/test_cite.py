"""Citation markers in a stream."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.query.answer.cite import LONGEST, CitationParser, Origins, used_sources
from schemas.query import Source
from text.words import stems


def source(n: int, text: str = "The pool opens at 9. It costs 4 euros.", lang: str = "en") -> Source:
    return Source(
        n=n,
        page_id=f"p{n}",
        lang=lang,
        title="Pool",
        url="/p",
        field="content",
        ord=0,
        text=text,
        score=0.5,
        revision=1,
    )


SOURCES = [source(1), source(2), source(3)]


def parse(text: str) -> CitationParser:
    parser = CitationParser(SOURCES)
    parser.feed(text)
    parser.finish()
    return parser


def cited(parser: CitationParser) -> list[tuple[int, str]]:
    return [(c.n, parser.part()[c.start : c.end]) for c in parser.citations]


@pytest.mark.parametrize(
    ("said", "text", "citations"),
    [
        ("Open at 9 [1].", "Open at 9.", [(1, "Open at 9")]),
        ("Open at 9. [1]", "Open at 9.", [(1, "Open at 9.")]),
        ("Open at 9.[1]", "Open at 9.", [(1, "Open at 9.")]),
        ("Open at 9[1][2].", "Open at 9.", [(1, "Open at 9"), (2, "Open at 9")]),
        ("Open at 9 [1] [2].", "Open at 9.", [(1, "Open at 9"), (2, "Open at 9")]),
        ("Open at 9 [1, 2].", "Open at 9.", [(1, "Open at 9"), (2, "Open at 9")]),
        ("Open at 9 [1-3].", "Open at 9.", [(1, "Open at 9"), (2, "Open at 9"), (3, "Open at 9")]),
        ("Open at 9 【1】.", "Open at 9.", [(1, "Open at 9")]),
        ("Open at 9 【2†source】.", "Open at 9.", [(2, "Open at 9")]),
        ("Open at 9 [^1].", "Open at 9.", [(1, "Open at 9")]),
        ("Open at 9 ［1］.", "Open at 9.", [(1, "Open at 9")]),
        ("九点开门［１］。", "九点开门。", [(1, "九点开门")]),
        ("Open at 9 [[1]].", "Open at 9.", [(1, "Open at 9")]),
        ("Open at 9 【【1】】.", "Open at 9.", [(1, "Open at 9")]),
        ("Open at 9 [[1, 2]].", "Open at 9.", [(1, "Open at 9"), (2, "Open at 9")]),
        ("Open at 9 [[1], [2]].", "Open at 9.", [(1, "Open at 9"), (2, "Open at 9")]),
        ("Open at 9 [ [1][^2] ].", "Open at 9.", [(1, "Open at 9"), (2, "Open at 9")]),
        ("Open at 9 ([1]).", "Open at 9.", [(1, "Open at 9")]),
        ("Open at 9 【2†a[3】.", "Open at 9.", [(2, "Open at 9")]),
        ("九点开门（［1］；［2］）。", "九点开门。", [(1, "九点开门"), (2, "九点开门")]),
        ("九点开门［1、2］。", "九点开门。", [(1, "九点开门"), (2, "九点开门")]),
        (r"Open at 9 \[1\].", "Open at 9.", [(1, "Open at 9")]),
        (r"Open at 9 \[\[1\], \[2\]\].", "Open at 9.", [(1, "Open at 9"), (2, "Open at 9")]),
        ("Open at 9 [source 1].", "Open at 9.", [(1, "Open at 9")]),
        ("Open at 9 [Sources: 1, 3].", "Open at 9.", [(1, "Open at 9"), (3, "Open at 9")]),
        ("Ab neun [Quelle 1, Quelle 2].", "Ab neun.", [(1, "Ab neun"), (2, "Ab neun")]),
        ("Open at 9 【source 1†fees】.", "Open at 9.", [(1, "Open at 9")]),
        ("Open at 9 [[1] today", "Open at 9 [ today", [(1, "Open at 9 [")]),
        ("Open at 9 [[1]", "Open at 9 [", [(1, "Open at 9 [")]),
        ("It opens at 9 [1]. It costs 4 euros [2].", "It opens at 9. It costs 4 euros.",
         [(1, "It opens at 9"), (2, "It costs 4 euros")]),
        ("It opens at 9 [1] and costs 4 euros [2].", "It opens at 9 and costs 4 euros.",
         [(1, "It opens at 9"), (2, "and costs 4 euros")]),
        ("It opens at 9 [1]. [2]", "It opens at 9.", [(1, "It opens at 9"), (2, "It opens at 9.")]),
        ("- Adults [1]\n- Children [2]\n", "- Adults\n- Children", [(1, "Adults"), (2, "Children")]),
        ("- [1] Adults\n- [2] Children", "- Adults\n- Children", [(1, "Adults"), (2, "Children")]),
        ("[1] Adults pay.", "Adults pay.", [(1, "Adults pay.")]),
        ("1. Adults [1]\n2. Children [2]", "1. Adults\n2. Children", [(1, "Adults"), (2, "Children")]),
        ("Adults pay.\n\n[2] Children too.", "Adults pay.\n\nChildren too.", [(2, "Children too.")]),
        ("Adults pay [1]\n\nNext.", "Adults pay\n\nNext.", [(1, "Adults pay")]),
        ("Yes [1] (free).", "Yes (free).", [(1, "Yes")]),
        ("Yes [1]Then", "Yes Then", [(1, "Yes")]),
        ("**Yes [1]** no", "**Yes** no", [(1, "Yes")]),
        ("Öffnet um 9 [1] ? Ja", "Öffnet um 9? Ja", [(1, "Öffnet um 9")]),
        ("九点开门[1]。周日休息[2]。", "九点开门。周日休息。", [(1, "九点开门"), (2, "周日休息")]),
    ],
)  # fmt: skip
def test_markers_become_citations(said: str, text: str, citations: list[tuple[int, str]]) -> None:
    parser = parse(said)
    assert parser.part() == text
    assert cited(parser) == citations
    assert parser.dropped == 0


@pytest.mark.parametrize(
    "text",
    [
        "See [the fees](/fees) and [x].",
        "See [1](/fees).",
        "See [[1]](/fees).",
        "Open (9 to 18) (",
        "In [2024] it was free.",
        "An [unfinished",
        "Open at 9 (1), or (source 1).",
        "See [source one], [sources], [resource 1] and [the source 1].",
        r"A \[ and \* and \[x\] and a \\",
        "An [1",
        "A [] and [a1] and [ ].",
        "Use `a[1]` there.",
        "```\na[1] = b[2]\n```\nDone.",
        "Two  spaces   stay\n\n\nand lines.",
        "Prix : 4 € ! Vraiment ?",
    ],
)
def test_what_is_no_marker_stays(text: str) -> None:
    parser = parse(text)
    assert parser.part() == text
    assert parser.citations == []


@pytest.mark.parametrize(
    ("said", "dropped"), [("Yes [0].", 1), ("Yes [9].", 1), ("Yes [4, 5].", 2), ("Yes [1][7].", 1)]
)
def test_numbers_that_are_no_source_are_dropped_and_counted(said: str, dropped: int) -> None:
    parser = parse(said)
    assert parser.part() == "Yes."
    assert parser.dropped == dropped
    assert {c.n for c in parser.citations} <= {1}


def test_nothing_cited_nothing_invented() -> None:
    assert parse("The pool opens at 9.").citations == []


def test_the_same_statement_is_cited_once_by_a_source() -> None:
    assert cited(parse("Open at 9 [1][1] [1, 1].")) == [(1, "Open at 9")]


def test_text_after_a_code_block_is_cited_again() -> None:
    assert cited(parse("```\na[1]\n```\nRun it [2].")) == [(2, "Run it")]


def test_only_an_unfinished_marker_is_held_back() -> None:
    parser = CitationParser(SOURCES)
    for piece, text, citations in [
        ("Open", "Open", 0),
        (" at 9", "Open at 9", 0),
        (" [", "Open at 9", 0),
        ("1", "Open at 9", 0),
        ("]", "Open at 9", 0),  # may still be a link
        (". N", "Open at 9. N", 1),
    ]:
        parser.feed(piece)
        assert (parser.part(), len(parser.citations)) == (text, citations)


PIECES = st.lists(
    st.sampled_from(
        ["Open", " ", "at 9", ".", "\n", "\n\n", "- ", "[1]", "[2]", "[1, 2]", "[9]", "[", "]", "(", ")", "【3】", "`",
         "［1］", "［", "[[1]]", "\\[", "\\]", "[source ", "\\", "([2], [3])",
         "†", "x", "1", "```\n", "[a]", ",", "  ", "**"]
    ),
    max_size=25,
)  # fmt: skip


@given(PIECES, st.data())
def test_however_the_stream_is_cut_the_answer_is_the_same(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    whole = parse(text)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=10)))
    parser = CitationParser(SOURCES)
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        parser.feed(text[start:end])
    parser.finish()
    assert (parser.part(), parser.citations, parser.dropped) == (whole.part(), whole.citations, whole.dropped)
    for c in parser.citations:
        assert 0 <= c.start < c.end <= parser.length
        assert c.n in (1, 2, 3)


def test_the_origin_is_the_sentence_that_shares_most_words() -> None:
    page = source(1, "# Pool\n\nThe pool opens at 9 in **summer**. A ticket costs 4 euros. Dogs stay outside.")
    for said, sentence in [
        ("Tickets cost 4 euros", "A ticket costs 4 euros."),
        ("It opens at 9 in summer", "The pool opens at 9 in summer."),
        ("Der Eintritt ist frei", None),
    ]:
        assert Origins(page).of(frozenset(stems(said))) == sentence


def test_a_citation_quotes_its_origin() -> None:
    assert parse("The pool opens at 9 [1].").citations[0].quote == "The pool opens at 9."


def test_of_a_statement_without_end_the_last_part_is_cited() -> None:
    parser = parse("word " * LONGEST + "[1]. " + "[2] " + "other " * LONGEST)
    first, second = parser.citations
    assert (first.n, second.n) == (1, 2)
    assert all(LONGEST - 9 < citation.end - citation.start <= LONGEST for citation in (first, second))


def test_used_sources_are_marked() -> None:
    assert [s.cited for s in used_sources(SOURCES, parse("Yes [1]. No [3].").citations)] == [True, False, True]
