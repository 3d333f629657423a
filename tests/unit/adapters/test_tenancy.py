"""Which shared index a generation of a site goes into."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.elastic.tenancy import SHARED_INDEXES, Tenancy
from pipelines.runtime.indexes import IndexUnfit

NONE: Any = None  # nothing is asked of Elasticsearch
MAKING = {"model": "fake-4"}


def test_it_follows_from_the_name_alone_and_spreads_sites() -> None:
    chosen = {site: Tenancy(NONE, NONE).index_for(site, 1, MAKING, ()) for site in map(str, range(200))}
    again = {site: Tenancy(NONE, NONE).index_for(site, 1, MAKING, ()) for site in chosen}
    assert chosen == again
    assert len(set(chosen.values())) == 8
    assert Tenancy(NONE, NONE).index_for("1", 1, {"model": "other"}, ()) not in chosen.values()


@pytest.mark.parametrize("site", ["town", "shop", "club"])
def test_two_that_do_not_see_each_other_do_not_meet(site: str) -> None:
    tenancy = Tenancy(NONE, NONE)
    assert tenancy.index_for(site, 1, MAKING, ()) != tenancy.index_for(site, 2, MAKING, ())


def test_what_is_taken_is_passed_over_until_there_is_none() -> None:
    tenancy, taken = Tenancy(NONE, NONE), list[str]()
    for _ in range(SHARED_INDEXES):
        taken.append(tenancy.index_for("town", 5, MAKING, taken))
    assert len(set(taken)) == SHARED_INDEXES
    with pytest.raises(IndexUnfit, match="in each of 8 shared indexes"):
        tenancy.index_for("town", 6, MAKING, taken)
