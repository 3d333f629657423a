"""A source ends where an attachment begins, and at each page of it: its link opens what it quotes."""

from __future__ import annotations

from pipelines.query.search.ports import Hit
from pipelines.query.search.widen import passages

PAGE = ("Fees", "/fees")
ONE = ("Fees – a.pdf · 1/2", "/a.pdf#page=1")
TWO = ("Fees – a.pdf · 2/2", "/a.pdf#page=2")
THERE = [PAGE, PAGE, ONE, ONE, TWO]  # the page's content, by ord


def chunk(ord_: int, score: float = 0.0, field: str = "content") -> Hit:
    title, url = THERE[ord_] if field == "content" else PAGE
    return Hit(
        page_key="town:en:fees",
        page_id="fees",
        lang="en",
        title=title,
        url=url,
        field=field,  # type: ignore[arg-type]
        ord=ord_,
        text=f"Core {ord_}. ",
        revision=1,
        score=score,
    )


NEIGHBOURS = [chunk(n) for n in range(len(THERE))]


def shown(*hits: Hit, whole: bool = False) -> list[tuple[str, str]]:
    return [(source.url, source.text) for source in passages(hits, NEIGHBOURS, 1_000, whole_fields=whole)]


def test_a_hit_in_the_page_is_not_widened_into_its_attachment() -> None:
    assert shown(chunk(1, 0.9)) == [("/fees", "Core 0. Core 1.")]


def test_a_hit_in_an_attachment_stays_on_its_page() -> None:
    assert shown(chunk(2, 0.9)) == [("/a.pdf#page=1", "Core 2. Core 3.")]
    assert shown(chunk(4, 0.9)) == [("/a.pdf#page=2", "Core 4.")]


def test_hits_side_by_side_at_different_places_are_sources_of_their_own() -> None:
    assert shown(chunk(3, 0.9), chunk(4, 0.8), chunk(1, 0.7)) == [
        ("/a.pdf#page=1", "Core 2. Core 3."),
        ("/a.pdf#page=2", "Core 4."),
        ("/fees", "Core 0. Core 1."),
    ]


def test_a_hit_in_the_title_opens_the_page_not_its_attachment() -> None:
    assert shown(chunk(0, 0.9, "title")) == [("/fees", "Core 0. Core 1.")]
    assert shown(chunk(4, 0.9), whole=True) == [("/a.pdf#page=2", "Core 4.")]
