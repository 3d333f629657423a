"""What is planted on the sites of `bench coverage`, and how a report of them is judged."""

from __future__ import annotations

import pytest

from bench.coverage import Drawn, drawn, judged, lacking
from bench.visitors import Case, Part

NAMES = ("coverage-0", "coverage-1", "coverage-2")


@pytest.mark.parametrize("part", ["tune", "hold-out"])
def test_pages_are_missing_and_others_are_not_asked_for(part: Part) -> None:
    sites = list(drawn(part, NAMES))
    assert [site.missing for site in sites] == [site.missing for site in drawn(part, NAMES)]
    assert len({site.missing for site in sites}) == len(NAMES)
    for site in sites:
        assert len(site.missing) == len(site.unasked) > 3
        assert not site.missing & (site.unasked | {page.id for page in site.pages})
        assert not any(site.unasked & {*case.pages} for case in site.asked)
        answers = [lacking(case, site.missing) for case in site.asked]
        assert 0.2 < sum(answers) / len(answers) < 0.8
        there = {page.id for page in site.pages}
        assert all({*case.pages} <= there for case in site.asked if not lacking(case, site.missing))


def test_the_parts_ask_other_questions() -> None:
    tune, held = (next(drawn(part, NAMES)) for part in ("tune", "hold-out"))
    assert tune.missing == held.missing
    assert not {case.id for case in tune.asked} & {case.id for case in held.asked}


def case(question: str, *pages: str) -> Case:
    said = {"id": question, "question": question, "lang": "en", "kind": "everyday"}
    return Case.model_validate(said | {"pages": pages, "expect": "answer" if pages else "refuse"})


def test_a_report_is_judged_by_what_was_planted() -> None:
    [page, *_] = next(drawn("tune", NAMES)).pages
    pages = [page.model_copy(update={"id": id}) for id in ("library", "chess", "pool")]
    asked = [case("cards", "library"), case("boats", "boat"), case("a boat", "boat"), case("moon"), case("bus", "bus")]
    site = Drawn("s", pages, frozenset({"boat", "bus", "zoo"}), frozenset({"chess", "pool"}), asked)
    found = judged(site, [["boats", "a boat", "cards"], ["cards"]], {"chess", "library"})
    assert found.asked == 5
    assert found.questions == (2, 2, 2)  # the moon and the bus are missed
    assert found.topics == (1, 1)
    assert found.planted == (1, 2)  # the boat, not the bus; nobody asks for the zoo
    assert found.pages == (1, 1, 1)
