"""Keys and ids: two pages never share one, and every one fits where it must go."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas.keys import MAX_ID_PREFIX, chunk_id, head_id, page_key, page_of_part, parse_page_key, part_key
from schemas.page import FIELDS

ELASTICSEARCH_ID = 512  # bytes

sites = st.from_regex(r"[a-z0-9][a-z0-9-]{0,20}", fullmatch=True)
langs = st.sampled_from(["de", "en", "pt-BR"])
page_ids = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=256)
addresses = st.tuples(sites, langs, page_ids)


def test_a_key_as_the_contract_has_it() -> None:
    assert page_key("town", "de", "news/12") == "town:de:news%2F12"


@given(address=addresses)
@example(address=("town", "de", "a:b#c%2F/?\u00fc🏊"))
def test_a_key_splits_in_exactly_one_way(address: tuple[str, str, str]) -> None:
    assert parse_page_key(page_key(*address)) == address
    assert page_key(*address).isascii()


@given(one=addresses, other=addresses)
@example(one=("town", "de", "a:b"), other=("town", "de:a", "b"))
@example(one=("town", "de", "a%2Fb"), other=("town", "de", "a/b"))
def test_different_pages_have_different_keys_and_ids(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    same = one == other
    assert (page_key(*one) == page_key(*other)) is same
    assert (head_id(page_key(*one)) == head_id(page_key(*other))) is same


@pytest.mark.parametrize("key", ["", "town", "town:de", "town:de:a:b"])
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="not a page key"):
        parse_page_key(key)


@given(address=addresses, part=st.integers(0, 10_000))
def test_the_parts_of_a_page_have_keys_that_name_it(address: tuple[str, str, str], part: int) -> None:
    key = page_key(*address)
    assert page_of_part(part_key(key, part)) == key
    assert page_of_part(key) == key


@pytest.mark.parametrize(
    "page_id", ["a", "x" * 256, "ü" * 256, "🏊" * 256], ids=["short", "long", "2 bytes", "4 bytes"]
)
def test_every_id_fits_into_elasticsearch(page_id: str) -> None:
    key = page_key("s" * 63, "pt-BR", page_id)
    ids = [head_id(key), *(chunk_id(key, field, 999_999) for field in FIELDS)]
    assert max(len(id.encode()) for id in ids) <= ELASTICSEARCH_ID
    assert len(set(ids)) == len(ids)


def test_long_ids_that_begin_alike_stay_different() -> None:
    one, other = (page_key("town", "de", "ü" * 255 + last) for last in "ab")
    assert head_id(one) != head_id(other)
    assert head_id(one) == head_id(one)


def test_a_short_key_is_its_own_id() -> None:
    key = page_key("town", "de", "x" * (MAX_ID_PREFIX - len("town:de:")))
    assert head_id(key) == key
    assert head_id(key + "x") != key + "x"


def test_no_page_can_be_named_like_the_shortened_id_of_another() -> None:
    shortened = head_id(page_key("town", "de", "x" * 2000))
    posing = page_key("town", "de", shortened.removeprefix("town:de:"))
    assert head_id(posing) != shortened
