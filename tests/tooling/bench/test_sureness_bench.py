"""What is fitted on one site and judged on another uses nothing of the other's answers."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from bench.sureness import Sample, elsewhere_fitted
from bench.visitors import Case, Verdict
from cli.main import app

CASE = Case(id="en-1", kind="price", lang="en", question="card?", pages=("a",), facts=(("€18",),), expect="answer")


def sample(ahead: float, useful: bool) -> Sample:
    verdict = Verdict(CASE, useful, not useful, False, True, 80)
    return Sample(CASE, {"ahead": ahead}, verdict, verdict, page_right=useful)


def test_chances_on_one_site_come_from_the_answers_of_the_other() -> None:
    town = [sample(float(n), useful=n > 5) for n in range(12)]
    shop = [sample(float(n), useful=n < 3) for n in (1, 10)]  # the other way round, which must not matter
    unit, page = elsewhere_fitted(town, shop)
    assert unit[0] < 0.5 < unit[1]
    assert page[0] < 0.5 < page[1]


@pytest.mark.parametrize("said", [["visitors", "--site", "nowhere"], ["sureness", "--site", "nowhere"]])
def test_only_the_sites_that_there_are_can_be_asked(said: list[str]) -> None:
    done = CliRunner().invoke(app, ["bench", *said])
    assert done.exit_code == 2
    assert "nowhere" in done.output
