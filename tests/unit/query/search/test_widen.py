"""From hits to sources, within a budget."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipelines.query.search.ports import Hit
from pipelines.query.search.widen import MIN_CUT, fit, nearest, passages, wanted
from schemas.page import FieldName


def hit(
    page: str, ord: int, text: str, field: FieldName = "content", cosine: float | None = 0.9, score: float = 0.7
) -> Hit:
    return Hit(
        page_key=f"town:en:{page}",
        page_id=page,
        lang="en",
        title=page.title(),
        url=f"/{page}",
        field=field,
        ord=ord,
        text=text,
        revision=3,
        cosine=cosine,
        score=score,
    )


def core(page: str, ord: int, length: int = 300) -> str:
    """Sentences that name their place, so that every character can be traced."""
    sentence = f"The {page}{ord} says so. "
    return (sentence * (length // len(sentence) + 1))[: length - 1].rstrip(". ") + ". "


def chunk(page: str, ord: int, length: int = 300) -> Hit:
    return hit(page, ord, core(page, ord, length))


def test_content_hits_want_both_sides_nearest_first_best_hit_first_and_no_hit_again() -> None:
    places = wanted([chunk("a", 1), chunk("a", 2), chunk("b", 0)], around=2)
    key_a, key_b = "town:en:a", "town:en:b"
    assert places == [
        (key_a, "content", 0),
        (key_a, "content", 3),
        (key_b, "content", 1),
        (key_a, "content", 4),
        (key_b, "content", 2),
    ]


def test_a_weak_hits_neighbours_and_far_ones_are_not_among_the_nearest() -> None:
    best, weak = chunk("a", 5), hit("b", 5, core("b", 5), score=0.3)  # 0.85 and -0.85 standard deviations
    places = [(place[0], place[2]) for place in wanted([best, weak], around=2)]
    assert places == [(f"town:en:{page}", ord) for page, ord in zip("aaaabbbb", (4, 6, 3, 7, 4, 6, 3, 7), strict=True)]
    for room, few in ((1, 0), (3, 2), (4, 2), (6, 4), (7, 5), (100, 8)):  # `weak` itself is the fourth
        assert [(place[0], place[2]) for place in nearest([best, weak], 2, room)] == places[:few]


def test_a_title_hit_wants_the_beginning_of_the_page() -> None:
    places = wanted([hit("a", 0, "Library", "title")], around=2)
    assert places == [("town:en:a", "content", 0), ("town:en:a", "content", 1)]


def test_nothing_is_wanted_around_nothing() -> None:
    assert wanted([chunk("a", 1)], around=0) == []


def test_sources_are_numbered_in_the_order_of_the_hits() -> None:
    sources = passages([chunk("b", 0), chunk("a", 5), chunk("b", 7)], [], 5_000)
    assert [(s.n, s.page_id, s.ord) for s in sources] == [(1, "b", 0), (2, "a", 5), (3, "b", 7)]
    assert sources[0].text == core("b", 0).strip()
    assert (sources[0].title, sources[0].url, sources[0].revision, sources[0].cosine) == ("B", "/b", 3, 0.9)


def test_windows_that_touch_become_one_source_in_reading_order() -> None:
    hits = [chunk("a", 3), chunk("b", 0), chunk("a", 5)]
    neighbours = [chunk("a", 4), chunk("a", 2), chunk("a", 6)]
    first, second = passages(hits, neighbours, 5_000)
    assert first.text == "".join(core("a", i) for i in (2, 3, 4, 5, 6)).strip()
    assert (first.ord, second.page_id) == (3, "b")


def test_a_neighbour_of_the_best_hit_comes_before_a_hit_worth_less() -> None:
    best, weak = chunk("a", 1), hit("b", 1, core("b", 1), score=0.4)  # 0.85 and -0.41 standard deviations
    sources = passages([best, weak], [chunk("a", 0), chunk("b", 0)], 650)
    assert [s.text for s in sources] == [(core("a", 0) + core("a", 1)).strip()]
    near = hit("b", 1, core("b", 1), score=0.6)  # 0.41: less than a step away
    assert [s.page_id for s in passages([best, near], [chunk("a", 0)], 650)] == ["a", "b"]


def test_hits_of_a_kind_come_before_any_neighbour() -> None:
    hits = [chunk("a", 1), chunk("b", 1)]
    sources = passages(hits, [chunk("a", 0), chunk("b", 0)], 650)
    assert [s.text for s in sources] == [core("a", 1).strip(), core("b", 1).strip()]


def test_the_nearest_neighbours_of_all_hits_come_before_farther_ones() -> None:
    hits = [chunk("a", 2), chunk("b", 2)]
    neighbours = [chunk(page, i) for page in "ab" for i in (0, 1)]
    a, b = passages(hits, neighbours, 300 * 4 + 10)
    assert a.text == (core("a", 1) + core("a", 2)).strip()
    assert b.text == (core("b", 1) + core("b", 2)).strip()


def test_whole_fields_are_filled_one_after_the_other() -> None:
    hits = [chunk("a", 2), chunk("b", 2)]
    neighbours = [chunk(page, i) for page in "ab" for i in (0, 1)]
    a, b = passages(hits, neighbours, 300 * 4 + 10, whole_fields=True)
    assert a.text == "".join(core("a", i) for i in range(3)).strip()
    assert b.text == core("b", 2).strip()


def test_a_neighbour_that_touches_nothing_is_left_out() -> None:
    (source,) = passages([chunk("a", 0)], [chunk("a", 2), chunk("z", 0)], 5_000)
    assert source.text == core("a", 0).strip()


def test_a_short_field_is_the_heading_of_its_pages_best_passage() -> None:
    hits = [hit("a", 0, "A", "title"), hit("a", 0, "All about\nit. ", "description"), chunk("b", 4), chunk("a", 7)]
    sources = passages(hits, [chunk("a", 0), chunk("a", 1)], 5_000)
    assert [(s.n, s.page_id, s.field, s.ord) for s in sources] == [
        (1, "a", "content", 0),
        (2, "b", "content", 4),
        (3, "a", "content", 7),
    ]
    first, *others = sources
    assert (first.heading, first.text) == ("Description: All about it.", (core("a", 0) + core("a", 1)).strip())
    assert (first.cosine, [each.heading for each in others]) == (0.9, ["", ""])


def test_a_title_costs_nothing_and_short_fields_without_content_are_one_source() -> None:
    hits = [hit("a", 0, "A", "title"), hit("a", 0, "A", "name"), hit("a", 0, "All about it.", "description")]
    [source] = passages(hits, [], len("All about it."))
    assert (source.field, source.heading, source.text) == ("title", "", "All about it.\n\nA")
    [source] = passages([hits[0], chunk("a", 3)], [], len(core("a", 3)))
    assert source.text == core("a", 3).strip()


def test_the_hit_that_does_not_fit_is_cut_at_a_sentence_and_lower_ones_are_dropped() -> None:
    hits = [chunk("a", 0), chunk("b", 0, 600), chunk("c", 0, 50)]
    first, second = passages(hits, [], 300 + 400)
    assert first.text == core("a", 0).strip()
    assert core("b", 0, 600).startswith(second.text)
    assert second.text.endswith(".")
    assert MIN_CUT <= len(second.text) <= 400


def test_a_stump_is_not_a_source() -> None:
    sources = passages([chunk("a", 0), chunk("b", 0)], [], 300 + MIN_CUT // 2)
    assert [s.page_id for s in sources] == ["a"]


def test_a_cut_hit_is_not_joined_to_what_follows_it() -> None:
    hits = [chunk("a", 1), hit("a", 0, core("a", 0, 600))]
    sources = passages(hits, [], 300 + 400)
    assert [s.ord for s in sources] == [1, 0]
    assert sources[0].text == core("a", 1).strip()


def test_a_first_hit_longer_than_the_budget_is_cut_too() -> None:
    (source,) = passages([chunk("a", 0, 2_000)], [], 300)
    assert 0 < len(source.text) <= 300


def test_no_hits_no_sources() -> None:
    assert passages([], [chunk("a", 1)], 5_000) == ()


PLACES = st.tuples(st.sampled_from("abc"), st.integers(0, 6))
LENGTH = st.integers(30, 400)


@given(
    st.lists(PLACES, min_size=1, max_size=6, unique=True),
    st.data(),
    st.integers(0, 3),
    st.integers(0, 3_000),
    st.booleans(),
)
def test_no_character_twice_within_budget_in_rank_order(
    ranked: list[tuple[str, int]], data: st.DataObject, around: int, budget: int, whole_fields: bool
) -> None:
    texts = {place: core(*place, data.draw(LENGTH)) for place in {(p, o) for p in "abc" for o in range(10)}}
    hits = [hit(page, o, texts[page, o]) for page, o in ranked]
    around_them = [hit(k.rpartition(":")[2], o, texts[k.rpartition(":")[2], o]) for k, _, o in wanted(hits, around)]
    sources = passages(hits, around_them, budget, whole_fields=whole_fields)

    assert sum(len(s.text) for s in sources) <= budget
    assert [s.n for s in sources] == list(range(1, len(sources) + 1))
    best = [min(r for r, (p, o) in enumerate(ranked) if (p, o) == (s.page_id, s.ord)) for s in sources]
    assert best == sorted(best)
    for place, text in texts.items():  # every core names its place, so it can be found wherever it stands
        mark = f"{place[0]}{place[1]} says"
        assert sum(s.text.count(mark) for s in sources) <= text.count(mark)
    joined = {p: "".join(texts[p, o] for o in range(10)) for p in "abc"}
    for source in sources:
        assert source.text in joined[source.page_id]


def test_fit_keeps_numbers_and_cuts_the_last() -> None:
    sources = passages([chunk("a", 0), chunk("b", 0, 600), chunk("c", 0)], [], 5_000)
    kept = fit(sources, 650)
    assert [s.n for s in kept] == [1, 2]
    assert kept[0] == sources[0]
    assert sources[1].text.startswith(kept[1].text)
    assert fit(sources, 5_000) == sources
