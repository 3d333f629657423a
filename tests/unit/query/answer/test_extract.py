"""Answers that quote."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from adapters.embedders.lite import LiteEmbedder
from connectors.cms.documents import Left, documents
from pipelines.ingest.documents.convert import convert
from pipelines.query.answer.extract import LONGEST, MAX_EMBEDDED, _quotation, candidates, extract
from pipelines.query.answer.quotation import Quotation
from pipelines.runtime.embedder import Matrix32
from schemas.query import Source
from sites.content import DEMO
from tests.asking import source
from text.words import stems


class BagOfWords:
    """Vectors whose cosine grows with the words two texts share."""

    dims = 512

    def __init__(self) -> None:
        self.embedded: list[str] = []

    async def passages(self, texts: Sequence[str]) -> Matrix32:
        self.embedded += texts
        return np.stack([self._vector(text) for text in texts])

    async def query(self, text: str) -> Matrix32:
        return self._vector(text)

    def _vector(self, text: str) -> Matrix32:
        vector = np.zeros(self.dims, dtype=np.float32)
        for stem in stems(text):
            vector[zlib.crc32(stem.encode()) % self.dims] += 1
        return vector / (np.linalg.norm(vector) or 1)


POOL = source(
    1,
    "# Swimming pool\n\nThe pool lies by the lake. It opens daily at 9. Dogs must stay outside. "
    "A ticket to the pool costs 4 euros.",
)
LIBRARY = source(2, "The library lends site_prompts and films. A library card costs 12 euros a year.")


async def quoted(question: str, *sources: Source, limit: int = 3) -> tuple[str, list[tuple[int, str]]]:
    extract_ = await extract(question, sources, BagOfWords(), "The website says:", limit)
    return extract_.text, [(c.n, extract_.text[c.start : c.end]) for c in extract_.citations]


async def test_the_sentence_that_answers_is_quoted_and_cited() -> None:
    text, citations = await quoted("What does a ticket to the pool cost?", POOL, LIBRARY, limit=1)
    assert text == "The website says:\n\n> A ticket to the pool costs 4 euros."
    assert citations == [(1, "A ticket to the pool costs 4 euros.")]


async def test_sentences_of_a_source_stay_in_reading_order_and_gaps_show() -> None:
    text, citations = await quoted("When daily does the pool by the lake open, and what does a ticket cost?", POOL)
    assert text == (
        "The website says:\n\n> The pool lies by the lake. It opens daily at 9. … A ticket to the pool costs 4 euros."
    )
    assert [n for n, _ in citations] == [1, 1, 1]


async def test_what_is_far_behind_the_best_is_not_quoted_to_fill_up() -> None:
    pages = [POOL, LIBRARY, source(3, "The mayor opens the market. Bring coins.")]
    _, citations = await quoted("What does a ticket to the pool cost?", *pages)
    assert citations[-1] == (1, "A ticket to the pool costs 4 euros.")
    assert all("mayor" not in text and "coins" not in text and "Dogs" not in text for _, text in citations)


async def test_every_source_has_its_own_quotation() -> None:
    text, citations = await quoted("What does a library card and a ticket cost?", POOL, LIBRARY, limit=2)
    assert text.count("\n\n> ") == 2
    assert [n for n, _ in citations] == [1, 2]


async def test_citations_carry_the_sentence_as_it_reads_on_the_page() -> None:
    page = source(1, "The pool opens at **9** on [weekdays](/hours).")
    extract_ = await extract("When does the pool open?", [page], BagOfWords(), "It says:")
    assert [c.quote for c in extract_.citations] == ["The pool opens at 9 on weekdays."]


async def test_a_slightly_better_sentence_far_below_does_not_win() -> None:
    others = [source(n, f"Number {n} is about something else entirely.") for n in (2, 3, 4)]
    good, better = source(1, "A ticket costs 4 euros today."), source(5, "A ticket costs 4 euros.")
    assert (await quoted("What does a ticket cost?", better, *others, good, limit=1))[1][0][0] == 5
    assert (await quoted("What does a ticket cost?", good, *others, better, limit=1))[1][0][0] == 1


async def test_a_short_list_is_quoted_with_the_words_that_introduce_it() -> None:
    page = source(1, "Come early.\n\nFor a passport bring:\n\n- a photo\n- 60 euros\n\nWe are closed on Mondays.")
    text, citations = await quoted("What do I need for a passport?", page, limit=1)
    assert text == "The website says:\n\n> For a passport bring:\n> \n> - a photo\n> - 60 euros"
    assert len(citations) == 1


async def test_a_short_list_under_a_heading_is_quoted_whole() -> None:
    page = source(1, "Come in.\n\n## Fees\n\n- Annual card: 18 euros\n- Children: free\n\nBring coins.")
    text, citations = await quoted("What does an annual card cost?", page, limit=1)
    assert text == "The website says:\n\n> **Fees**\n>\n> - Annual card: 18 euros\n> - Children: free"
    assert citations == [(1, "- Annual card: 18 euros\n> - Children: free")]


async def test_items_of_a_long_list_keep_its_introduction() -> None:
    items = "".join(f"- document number {i} of the long list of papers\n" for i in range(20)) + "- a recent photo\n"
    text, _ = await quoted("Is a recent photo needed?", source(1, f"Please bring:\n\n{items}"), limit=1)
    assert text == "The website says:\n\n> **Please bring:**\n>\n> - a recent photo"


FEES = "| Day | Hours |\n| --- | --- |\n| Monday | 9-18 |\n| Sunday | closed |"


def test_definitions_of_a_long_list_keep_their_terms() -> None:
    listed = "\n\n".join(f"Day {n}\n:   {'from nine to five, ' * 5}" for n in range(9))
    found = [candidate.text for candidate in candidates([source(1, listed)])]
    assert found == [term.strip() for term in listed.split("\n\n")]


async def test_a_short_table_is_quoted_whole_under_its_heading() -> None:
    page = source(1, f"Come early.\n\n## Hours\n\n{FEES}\n\nBring coins.")
    text, citations = await quoted("Hours on Sunday?", page, limit=1)
    assert text == f"The website says:\n\n> **Hours**\n>\n> {FEES.replace(chr(10), f'{chr(10)}> ')}"
    assert citations == [(1, FEES.replace("\n", "\n> "))]


async def test_the_caption_of_a_table_is_quoted_with_it() -> None:
    extract_ = await extract(
        "Hours on Sunday?", [source(1, f"Come early.\n\nOur hours\n\n{FEES}")], BagOfWords(), "It says:", 1
    )
    assert extract_.text.startswith("It says:\n\n> Our hours\n> \n> | Day | Hours |\n> | --- | --- |\n")
    assert [c.quote for c in extract_.citations] == ["Our hours Day Hours Monday 9-18 Sunday closed"]


def test_a_table_under_nothing_is_read_under_the_title_of_its_page() -> None:
    (table,) = candidates([source(1, FEES, title="Opening hours")])
    assert table.read == "Opening hours Day Hours Monday 9-18 Sunday closed"


def test_a_sentence_above_a_table_is_a_sentence_still() -> None:
    assert [c.text for c in candidates([source(1, f"These are our hours.\n\n{FEES}")])] == [
        "These are our hours.",
        FEES,
    ]


def long_table(rows: int) -> str:
    lines = [f"| street number {n} | bin {n} |" for n in range(rows)]
    return "\n".join(["| Street | Bin |", "| --- | --- |", *lines])


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("bin 7 of street number 7", ["| … | … |", "| street number 7 | bin 7 |", "| … | … |"]),
        ("bin 0 of street number 0", ["| street number 0 | bin 0 |", "| … | … |"]),
        ("bin 39 of street number 39", ["| … | … |", "| street number 39 | bin 39 |"]),
    ],
)
async def test_what_is_left_out_of_a_long_table_shows(question: str, rows: list[str]) -> None:
    text, citations = await quoted(question, source(1, f"## Bins\n\n{long_table(40)}"), limit=1)
    assert text.split("\n> ") == ["The website says:\n", "| Street | Bin |", "| --- | --- |", *rows]
    assert [cited for _, cited in citations] == [row for row in rows if "…" not in row]


def test_a_long_row_is_shortened_cell_by_cell() -> None:
    text = f"| Day | Text \\| more |\n| --- | --- |\n| Monday | {'word ' * 200}|"
    (row,) = candidates([source(1, text)])
    assert row.text.startswith("| Monday | word word")
    assert row.text.endswith("word … |")
    assert len(row.text) <= LONGEST
    assert row.above == "| Day | Text \\| more |"


async def test_a_table_that_began_before_its_source_shows_its_gaps_too() -> None:
    rows = "\n".join(long_table(40).split("\n")[2:])
    text, _ = await quoted("bin 7 of street number 7", source(1, rows), limit=1)
    assert text == "The website says:\n\n> | … | … |\n> | street number 7 | bin 7 |\n> | … | … |"


async def test_two_short_lists_and_tables_do_not_run_into_each_other() -> None:
    page = source(1, f"## Pool\n\nPool hours:\n\n- pool 9\n\nPool prices:\n\n- pool 4 euros\n\n{FEES}\n\n{FEES}!")
    text, citations = await quoted("pool Day Hours?", page, limit=4)
    assert len(citations) == 3
    assert all(f"\n>\n> {cited}" in text for _, cited in citations)


@cache
def demo_content(lang: str) -> dict[str, str]:
    """Of the sample site's pages, by their ids."""
    return {page.id: convert(page).fields["content"] for page in documents(DEMO / "pages" / lang, Left())}


@pytest.mark.parametrize(
    ("lang", "question", "amounts"),
    [
        ("en", "What does a dog cost?", ("€84", "€132", "€168", "€540")),
        ("en", "What is the dog tax?", ("€84", "€132", "€168", "€540")),
        ("en", "How much is the dog tax for a second dog?", ("€84", "€132", "€168", "€540")),
        ("de", "Wie hoch ist die Hundesteuer?", ("84 Euro", "132 Euro", "168 Euro", "540 Euro")),
        ("de", "Was kostet ein Hund?", ("84 Euro", "132 Euro", "168 Euro", "540 Euro")),
    ],
)
async def test_the_dog_tax_is_quoted_with_all_its_amounts(lang: str, question: str, amounts: tuple[str, ...]) -> None:
    content = demo_content(lang)
    best = [source(n, content[name], lang=lang) for n, name in enumerate(("dog-tax", "water-supply", "wedding"), 1)]
    embedder = LiteEmbedder()
    try:
        text = (await extract(question, best, embedder, "The website says:")).text
    finally:
        await embedder.aclose()
    assert [amount for amount in amounts if f"| {amount} |" in text] == list(amounts)


def _table_of(rows: int, width: int) -> str:
    return "\n".join(["| n | text |", "| --- | --- |", *(f"| r{n} | {'x' * width} |" for n in range(rows))])


PARTS = st.one_of(
    st.sampled_from(
        ["One sentence. And a second.", "## Heading", "Caption", "Bring:\n\n- a photo\n- money", "- alone"]
    ),
    st.builds(_table_of, st.integers(1, 12), st.integers(1, 700)),
)


@given(st.lists(st.lists(PARTS, min_size=1, max_size=5), min_size=1, max_size=3), st.data())
def test_positions_are_exact_and_no_row_is_left_out_in_silence(pages: list[list[str]], data: st.DataObject) -> None:
    pool = candidates([source(n, "\n\n".join(parts)) for n, parts in enumerate(pages, 1)])
    picked = data.draw(st.lists(st.sampled_from(pool), unique=True, max_size=6)) if pool else []
    events = list(_quotation(picked, "It says:"))
    made = Quotation(tuple(events))
    texts = [made.text[c.start : c.end].replace("\n> ", "\n") for c in made.citations]
    assert sorted(texts) == sorted(candidate.text for candidate in picked)
    for table in _tables(made.text):
        numbers = [None if row == "…" else int(row[1:]) for row in table]
        assert numbers[0] in (None, 0)
        assert numbers[-1] is None or any(_ends_at(pages, numbers[-1]))
        assert all(b == a + 1 for a, b in pairwise(numbers) if a is not None and b is not None)


def _tables(markdown: str) -> list[list[str]]:
    """The first cells of the rows of each table, as a reader of Markdown finds them."""
    quoted = "\n".join(line.removeprefix("> ").removeprefix(">") for line in markdown.split("\n"))
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(quoted)
    tables: list[list[str]] = []
    for row, cell, content in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if row.type == "tbody_open":
            tables.append([])
        if (row.type, cell.type) == ("tr_open", "td_open"):
            tables[-1].append(content.content)
    assert sum(len(table) for table in tables) == sum(
        line.startswith(("> | r", "> | …")) for line in markdown.split("\n")
    )
    return tables


def _ends_at(pages: list[list[str]], n: int) -> Iterator[bool]:
    for part in chain(*pages):
        yield part.startswith("| n") and part.count("\n") - 2 == n


async def test_nothing_to_quote_is_empty() -> None:
    for sources in [(), (source(1, "# Only a heading"),), (source(1, "***"),)]:
        assert (await extract("Why?", sources, BagOfWords(), "It says:")).events == ()


async def test_one_sentence_is_enough() -> None:
    text, _ = await quoted("Why?", source(1, "Because."))
    assert text == "The website says:\n\n> Because."


async def test_no_more_is_embedded_than_a_visitor_can_wait_for() -> None:
    long = source(1, " ".join(f"Sentence {i} says a thing." for i in range(200)) + " The pool opens at 9.")
    embedder = BagOfWords()
    extract_ = await extract("When does the pool open?", [long], embedder, "It says:", 1)
    assert len(embedder.embedded) == MAX_EMBEDDED
    assert extract_.text.endswith("> The pool opens at 9.")


def test_nothing_is_offered_twice_and_only_the_best_sources_are_read() -> None:
    same = [source(n, f"The same sentence. Only on page {n}.") for n in range(1, 8)]
    texts = [c.text for c in candidates(same)]
    assert texts.count("The same sentence.") == 1
    assert "Only on page 5." in texts
    assert "Only on page 6." not in texts


def test_what_a_page_is_about_is_quoted_only_where_it_says_nothing() -> None:
    about = source(1, "Opening hours and fees of the pool.").model_copy(update={"field": "description"})
    says = source(2, "The pool opens at seven.")
    assert [(c.n, c.rank) for c in candidates([about, says])] == [(2, 0)]
    assert [c.n for c in candidates([about])] == [1]


def test_an_endless_sentence_is_cut() -> None:
    (candidate,) = candidates([source(1, "word " * 500)])
    assert len(candidate.text) <= LONGEST + 2
    assert candidate.text.endswith(" …")


def test_the_header_row_alone_is_not_offered() -> None:
    assert len(candidates([source(1, long_table(40))])) == 40
    assert len(candidates([source(1, long_table(4))])) == 1
