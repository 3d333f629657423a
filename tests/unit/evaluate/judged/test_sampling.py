"""Which answers are chosen to be judged."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.evaluate.judged.sampling import chosen, chosen_again, readable
from schemas.outcome import Outcome, OutcomeEvent
from tests.asking import NOON

ANSWERED = Outcome(asked_at=NOON, asked_in="en", lang="en", question="When?", became="answered", answer="At nine.")


def event(n: int, site: str = "town") -> OutcomeEvent:
    return OutcomeEvent(site=site, request_id=f"request-{n:06}", conversation="c", event=ANSWERED)


def test_about_the_share_is_chosen_and_the_same_ones_each_time() -> None:
    for share in (0.05, 0.5):
        found = [n for n in range(4_000) if chosen(event(n), share)]
        assert abs(len(found) - 4_000 * share) < 4 * (4_000 * share * (1 - share)) ** 0.5  # four standard deviations
        assert found == [n for n in range(4_000) if chosen(event(n), share)]


def test_those_that_are_judged_twice_are_of_all_that_are_judged_alike() -> None:
    judged = [event(n) for n in range(4_000) if chosen(event(n), 0.2)]
    again = sum(chosen_again(each, 0.1) for each in judged)
    assert abs(again - len(judged) * 0.1) < 4 * (len(judged) * 0.09) ** 0.5  # four standard deviations
    assert not any(chosen_again(each, 0.0) for each in judged)


def test_all_or_none() -> None:
    assert all(chosen(event(n), 1.0) for n in range(500))
    assert not any(chosen(event(n), 0.0) for n in range(500))


def test_a_larger_share_keeps_those_of_the_smaller_one() -> None:
    smaller = {n for n in range(2_000) if chosen(event(n), 0.1)}
    assert smaller < {n for n in range(2_000) if chosen(event(n), 0.2)}


def test_sites_are_chosen_from_apart() -> None:
    here, there = ({n for n in range(2_000) if chosen(event(n, site), 0.3)} for site in ("town", "village"))
    assert here - there
    assert there - here


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, True),
        ({"became": "page"}, True),
        ({"became": "refused"}, False),
        ({"became": "courtesy"}, False),
        ({"became": "failed"}, False),
        ({"question": None, "answer": None}, False),  # a site without text
        ({"answer": None}, False),  # of a visitor with access groups
        ({"answer": " "}, False),
        ({"question": ""}, False),
        ({"stopped": True}, False),
    ],
)
def test_only_what_can_be_read_is_judged(changes: dict[str, Any], wanted: bool) -> None:
    assert readable(ANSWERED.model_copy(update=changes)) is wanted
