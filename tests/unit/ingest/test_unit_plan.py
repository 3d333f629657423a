"""What of a page is embedded by itself: from its chunks, however they were cut, and within bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ingest import embedding_plan as module
from pipelines.ingest.chunk import AttachmentPiece, chunk_page
from pipelines.ingest.embedding_plan import KnownUnits, known_vectors, plan_units, sense
from schemas.ingest import Chunker, PageChunks
from schemas.page import AttachmentPlace, FieldName, PageMeta
from tests.making import change
from text.units import units

PAGE = """# Library

Open on weekdays. Closed on Sundays.

## Fees

A card costs, for a year:

- Adults: €12
- Children: nothing

| Day | Hours |
| --- | --- |
| Monday | 9-17 |
| Tuesday | 10-19 |
"""


def page(text: str = PAGE, size: int = 60, title: str = "Town library", *pieces: AttachmentPiece) -> PageChunks:
    chunker = Chunker(mode="content", size=size, overlap=0.2)
    texts: dict[FieldName, str] = {"title": title, "content": text}
    chunks = chunk_page(texts, chunker, pieces)
    return PageChunks(change=change(), meta=PageMeta(title=title, url="/library"), chunker=chunker, chunks=chunks)


def test_only_content_has_units_and_all_of_it() -> None:
    cut = page()
    planned = plan_units(cut)
    assert len(planned) == len(cut.chunks) > 4
    assert planned[0] == ()  # the title
    assert [u.unit.text for own in planned for u in own] == [unit.text for unit in units(PAGE, "en")]


def test_what_is_embedded_says_where_it_stands() -> None:
    said = [u.sense for own in plan_units(page()) for u in own]
    assert said[0] == "Town library. Library. Open on weekdays."
    assert "Town library. Library. Fees. A card costs, for a year:. Adults: €12" in said
    assert said[-1] == "Town library. Library. Fees. Day: Tuesday; Hours: 10-19"


@given(text=st.text(alphabet="ab .\n|-#*1é", max_size=300), size=st.integers(32, 100))
def test_a_unit_belongs_to_the_chunk_it_starts_in(text: str, size: int) -> None:
    cut = page(text, size)
    begin = 0
    for chunk, own in zip(cut.chunks, plan_units(cut), strict=True):
        if chunk.field != "content":
            continue
        for planned in own:
            assert begin <= planned.unit.start < begin + len(chunk.text)
            assert text[planned.unit.start :].startswith(planned.unit.text)
        begin += len(chunk.text)


def test_an_attachment_has_units_of_its_own_places_under_their_titles() -> None:
    rules = [
        AttachmentPiece(AttachmentPlace(file=0, title=f"Rules · {n}/2", url=f"/rules.pdf#page={n}"), text)
        for n, text in ((1, "No dogs. No"), (2, "ball games."))
    ]
    planned = plan_units(page("Open daily.", 500, "Park", *rules))
    assert [[(u.unit.start, u.unit.text, u.sense) for u in own] for own in planned] == [
        [],
        [(0, "Open daily.", "Park. Open daily.")],
        [(0, "No dogs.", "Rules · 1/2. No dogs."), (9, "No", "Rules · 1/2. No")],
        [(0, "ball games.", "Rules · 2/2. ball games.")],
    ]


def test_what_is_above_a_unit_makes_no_message_larger_than_it_may_be() -> None:
    header = "| " + "long header " * 10 + "|"
    rows = "\n".join(f"| {n} |" for n in range(2_000))
    cut = page(f"# {'heading ' * 100}\n\n{header}\n| --- |\n{rows}\n", 512, "title " * 3_000)
    for chunk, own in zip(cut.chunks, plan_units(cut), strict=True):
        weight = sum(len(u.unit.model_dump_json()) for u in own)
        assert weight < 2 * (module.ROOM * len(chunk.text) + module.SPARE)
        assert all(len(u.sense) < 1_000 for u in own)


def test_no_unit_is_longer_than_a_quotation_or_has_a_header_that_is() -> None:
    assert not any(plan_units(page("word " * 500, 10_000)))
    header = "| " + "long header " * 100 + "|"
    *_, own = plan_units(page(f"{header}\n| --- |\n| 5 |\n", 10_000))
    assert [(u.unit.text, u.unit.header) for u in own] == [("| 5 |", "")]


def test_a_page_has_so_many_units_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 3)
    planned = plan_units(page())
    assert len(planned) == len(page().chunks)
    assert [u.unit.text for own in planned for u in own] == [unit.text for unit in units(PAGE, "en")][:3]


def test_units_are_looked_for_in_so_much_of_a_page_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "READ", 3 * module.LINE + 6)
    made = page("- a\n- b\n- c\n- d\n- e\n- f\n", 8)
    planned = plan_units(made)
    assert len(planned) == len(made.chunks)
    assert [u.unit.text for own in planned for u in own] == ["- a", "- b", "- c"]


def test_a_deleted_page_has_none() -> None:
    cut = page().model_copy(update={"chunks": (), "meta": None})
    assert plan_units(cut) == []


def test_vectors_are_known_by_what_was_embedded() -> None:
    [_, own] = plan_units(page("Open daily. Free of charge.", 500))
    found = [KnownUnits("Town library", [u.unit for u in own], b"aabb"), KnownUnits("Fees", (), b"")]
    assert known_vectors(found) == {
        "Town library. Open daily.": b"aa",
        "Town library. Free of charge.": b"bb",
    }
    assert sense(own[0].unit, "x" * 300) == "x" * 200 + ". Open daily."
