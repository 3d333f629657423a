from __future__ import annotations

import random
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.ingest.chunk import chunk_field, chunk_page, embedded_text
from schemas.ingest import Chunker

FAMILY = "\U0001f469‍\U0001f469‍\U0001f467‍\U0001f466"
FLAG = "\U0001f1e9\U0001f1ea"
PIECES = st.one_of(
    st.sampled_from(
        [" ", "\n", "\r\n", "\n\n", "\t", "word", "A", "1", ". ", ". A", "? ", "。", "| a | b |\n", "- item\n", "```\n"]
    ),
    st.sampled_from(
        ["\n\n## Heading\n\n", "é", "e\u0301", FAMILY, FLAG, "\u200d", "\ufe0f", "שלום", "مرحبا", "\ufeff", "\0"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
)
TEXTS = st.lists(PIECES, max_size=200).map("".join)


def content(size: int, overlap: float = 0.2) -> Chunker:
    return Chunker(mode="content", size=size, overlap=overlap)


def prose(rng: random.Random, paragraphs: int, *, sentences: int = 7) -> list[list[str]]:
    """Paragraphs of sentences of made-up words, like a page's in length and shape."""
    return [[sentence(rng) for _ in range(rng.randint(2, sentences))] for _ in range(paragraphs)]


def sentence(rng: random.Random) -> str:
    words = ["".join(rng.choices("abcdefghijklmnoprstuvz", k=rng.randint(2, 9))) for _ in range(rng.randint(8, 28))]
    return " ".join(words).capitalize() + "."


def page_text(paragraphs: list[list[str]]) -> str:
    return "\n\n".join(" ".join(sentences) for sentences in paragraphs if sentences)


@given(TEXTS, st.integers(1, 120), st.sampled_from(["content", "fixed"]))
@settings(max_examples=4 * settings().max_examples)
def test_cores_end_to_end_are_the_text_and_none_is_too_long(text: str, size: int, mode: str) -> None:
    cores = chunk_field(text, Chunker.model_validate({"mode": mode, "size": size, "overlap": 0.2}))
    assert "".join(cores) == text
    assert all(1 <= len(core) <= size for core in cores)


@given(TEXTS, st.integers(1, 120))
@settings(max_examples=2 * settings().max_examples)
def test_no_two_neighbours_would_fit_into_one_core(text: str, size: int) -> None:
    cores = chunk_field(text, content(size))
    assert all(len(a) + len(b) > size for a, b in pairwise(cores))


@given(TEXTS, st.integers(24, 120))
@settings(max_examples=2 * settings().max_examples)
def test_no_core_is_white_space_only(text: str, size: int) -> None:
    longest = max((len(run) for run in re.findall(r"\s+", text)), default=0)
    if text.strip() and 2 * longest + 1 < size:
        assert all(core.strip() for core in chunk_field(text, content(size)))


def test_a_text_that_fits_is_one_core() -> None:
    assert chunk_field("Opening hours", content(512)) == ["Opening hours"]
    assert chunk_field("", content(512)) == []


def test_fixed_mode_cuts_after_every_size_characters_whatever_they_are() -> None:
    fixed = Chunker(mode="fixed", size=4, overlap=0.25)
    assert chunk_field("ab\n\ncd 😀😀x", fixed) == ["ab\n\n", "cd 😀", "😀x"]


@pytest.mark.parametrize(
    ("text", "size", "cores"),
    [
        ("One two.\n\nThree four. Five six.", 24, ["One two.\n\n", "Three four. Five six."]),
        ("One two three. Four five six.", 20, ["One two three. ", "Four five six."]),
        ("- one two three\n- four five six\n", 20, ["- one two three\n", "- four five six\n"]),
        ("| a. B | c |\n| d. E | f |\n", 16, ["| a. B | c |\n", "| d. E | f |\n"]),
        ("Text one two.\n\n## Head\n\nText under it.", 24, ["Text one two.\n\n", "## Head\n\nText under it."]),
        ("Am 12. März um 9 Uhr. Danach nicht.", 24, ["Am 12. März um 9 Uhr. ", "Danach nicht."]),
        ("一二三四五。六七八九十。", 8, ["一二三四五。", "六七八九十。"]),
    ],
    ids=["paragraph", "sentence", "list item", "table row", "heading", "no end after a number", "no spaces"],
)
def test_cuts_at_the_strongest_border(text: str, size: int, cores: list[str]) -> None:
    assert chunk_field(text, content(size)) == cores


def test_a_heading_stays_with_its_text_when_the_section_is_too_long() -> None:
    text = "Before it " + "x" * 60 + ".\n\n# Prices\n\n" + " ".join(f"Sentence {i} of the section." for i in range(9))
    cores = chunk_field(text, content(100))
    assert next(core for core in cores if "# Prices" in core).count("Sentence") >= 1


def test_a_comment_in_code_is_no_heading() -> None:
    code = "```python\nfirst = 1\n# a comment\nsecond = 2\n```\n"
    text = "Intro words here.\n\n" + code
    assert chunk_field(text, content(len(code) + 1))[-1] == code


@pytest.mark.parametrize("cluster", [FAMILY, FLAG, "e\u0301\u0323", "\r\n"])
def test_a_hard_cut_keeps_what_is_read_as_one_character(cluster: str) -> None:
    # No white space: only hard cuts are possible.
    for core in chunk_field(cluster * 300, content(100)):
        assert core == cluster * (len(core) // len(cluster))


def test_a_hard_cut_parts_no_flag() -> None:
    """A flag is two letters; which two belong together is told by where the row of them begins."""
    rng = random.Random(1)
    for _ in range(50):
        flags = "".join(chr(rng.randint(0x1F1E6, 0x1F1FF)) for _ in range(60))
        cores = chunk_field(flags, content(33))
        assert len(cores) > 1
        assert [len(core) % 2 for core in cores] == [0] * len(cores)


def test_hard_cuts_come_even_without_any_place_to_cut() -> None:
    cores = chunk_field("e" + "\u0301" * 500, content(100))
    assert max(map(len, cores)) == 100


def test_repeated_rows_are_cut_between_rows() -> None:
    row = "| Monday | 9:00 | 17:00 |\n"
    cores = chunk_field(row * 400, content(512))
    assert all(core == row * (len(core) // len(row)) for core in cores)


@pytest.mark.parametrize("longest", [3, 7], ids=["short paragraphs", "long paragraphs"])
@pytest.mark.parametrize("size", [512, 1000])
def test_an_edit_changes_few_embedded_texts(size: int, longest: int) -> None:
    # A one-sentence edit in a long page should cost 3 embeddings in the median and 6 at worst.
    rng = random.Random(20)
    costs: dict[str, list[int]] = {"insert": [], "change": [], "remove": []}
    for _ in range(8):
        # 50 chunks of 0.7 size; a sentence has some 118 characters.
        paragraphs = prose(rng, round(50 * 0.7 * size / (118 * (2 + longest) / 2)), sentences=longest)
        before = embedded(page_text(paragraphs), size)
        assert 35 <= len(before) <= 80
        for edit in ["insert", "change", "remove"] * 10:
            edited = [list(sentences) for sentences in paragraphs]
            target = rng.choice(edited)
            at = rng.randrange(len(target))
            target[at : at + (edit != "insert")] = [] if edit == "remove" else [sentence(rng)]
            costs[edit].append(len(embedded(page_text(edited), size) - before))
    everything = sorted(cost for found in costs.values() for cost in found)
    assert everything[len(everything) // 2] <= 3
    assert everything[int(len(everything) * 0.95)] <= 5
    assert everything[-1] <= 6


def embedded(text: str, size: int) -> set[str]:
    cores = chunk_field(text, content(size))
    return {embedded_text(cores, i, 0.2) for i in range(len(cores))}


def test_words_put_at_the_start_leave_the_end_alone() -> None:
    paragraphs = prose(random.Random(3), 60)
    before = chunk_field(page_text(paragraphs), content(1000))
    after = chunk_field("A few words more. " + page_text(paragraphs), content(1000))
    assert before[-20:] == after[-20:]


def test_words_inside_a_sentence_without_end_fall_back_into_step() -> None:
    rng = random.Random(4)
    words = " ".join("".join(rng.choices("abcdefgh", k=6)) for _ in range(4000))
    before, after = chunk_field(words, content(512)), chunk_field("inserted " + words, content(512))
    assert len(set(after) - set(before)) <= 4


def test_letters_inside_a_word_without_end_fall_back_into_step() -> None:
    letters = "".join(random.Random(5).choices("abcdefghijklmnop", k=40_000))
    before, after = chunk_field(letters, content(512)), chunk_field("zz" + letters, content(512))
    assert len(set(after) - set(before)) <= 4


def test_cores_are_well_filled() -> None:
    cores = chunk_field(page_text(prose(random.Random(6), 80)), content(1000))
    assert sum(map(len, cores)) / len(cores) > 600


def test_embedded_text_takes_a_share_of_both_neighbours() -> None:
    cores = ["a" * 10, "b" * 10, "c" * 12]
    assert embedded_text(cores, 0, 0.2) == "a" * 10 + "bb"
    assert embedded_text(cores, 1, 0.2) == "aa" + "b" * 10 + "cc"  # 2.4 is 2
    assert embedded_text(cores, 2, 0.2) == "bb" + "c" * 12
    assert embedded_text(cores, 1, 0.0) == "b" * 10
    assert embedded_text(["alone"], 0, 0.2) == "alone"


def test_a_page_is_cut_field_by_field_in_order() -> None:
    chunks = chunk_page(
        {"content": "One two. " * 10, "title": "Title", "name": " \n ", "keywords": "", "description": "About"},
        content(50),
    )
    assert [(chunk.field, chunk.ord) for chunk in chunks] == [
        ("title", 0),
        ("description", 0),
        ("content", 0),
        ("content", 1),
    ]
    assert "".join(chunk.text for chunk in chunks if chunk.field == "content") == "One two. " * 10
