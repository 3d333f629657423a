"""What is tried again."""

from __future__ import annotations

import pytest

from pipelines.query.answer.remedies import BUSY_TRIES, BUSY_WAIT, DOWN_WAIT, Remedy, remedy
from pipelines.query.ports import (
    BadRequest,
    ContentFiltered,
    ContextTooLong,
    ModelCut,
    ModelDenied,
    ModelDown,
    ModelError,
    ModelSilent,
    ModelSlow,
    RateLimited,
)


@pytest.mark.parametrize(
    ("failures", "what"),
    [
        ([RateLimited("busy", 7.0)], Remedy(7.0)),
        ([RateLimited("busy")], Remedy(BUSY_WAIT)),
        ([RateLimited("busy")] * 3, Remedy(4 * BUSY_WAIT)),
        ([RateLimited("busy", 0.0)] * (BUSY_TRIES + 1), None),
        ([ModelDown("502")], Remedy(DOWN_WAIT)),
        ([ModelDown("502")] * 2, None),
        ([ModelDown("502"), RateLimited("busy", 1.0)], Remedy(1.0)),
        ([ContextTooLong("4096")], Remedy(shorter=True)),
        ([ContextTooLong("4096")] * 2, None),
        ([ModelSilent("30 s")], None),
        ([ModelCut("half-way")], None),
        ([ModelSlow("85 s")], None),
        ([ContentFiltered("no")], None),
        ([ModelDenied("no credit")], None),
        ([BadRequest("no model")], None),
    ],
    ids=str,
)
def test_a_failure_has_its_remedy(failures: list[ModelError], what: Remedy | None) -> None:
    assert remedy(failures, seconds_left=60) == what


@pytest.mark.parametrize(("seconds_left", "tried"), [(20.0, True), (19.9, False), (-1.0, False)])
def test_nothing_is_waited_for_longer_than_half_of_what_is_left(seconds_left: float, tried: bool) -> None:
    assert (remedy([RateLimited("busy", 10.0)], seconds_left) is not None) is tried
