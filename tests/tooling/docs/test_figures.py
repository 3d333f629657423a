"""The table of figures fits the pages, and stamps are read and written where they belong."""

from __future__ import annotations

import pytest

from docs import figures as module
from docs.figures import PAGES, ROOT, Figure, figures, notes, outdated

HALF_AN_HOUR = 30  # minutes
PAGE = "# Figures\n\n## Bus: `python -m bench latency`\n\n| a | b |\n\n## Memory\nMuch.\n"
BUS = Figure("bus", "figures.md", "Bus", 4, "python -m bench latency", ["pipelines"])
MEMORY = Figure("bus", "figures.md", "Memory", 4, "python -m bench footprint", ["wiring"])


@pytest.mark.parametrize("figure", figures(), ids=lambda figure: f"{figure.page}: {figure.section}")
def test_each_section_is_there_with_its_command_its_stamp_and_its_code(figure: Figure) -> None:
    text = (PAGES / figure.page).read_text(encoding="utf-8")
    section = text[figure.heading(text).start() :]
    command, _, options = figure.command.partition(" --")
    assert f"`{command}" in section or f"`{command}" in text, options
    assert figure.stamp(text)
    assert all((ROOT / path).exists() for path in figure.code)


def test_each_part_fits_half_an_hour() -> None:
    parts = {figure.part for figure in figures()}
    assert all(sum(f.minutes for f in figures() if f.part == part) <= HALF_AN_HOUR for part in parts)


def test_a_stamp_stands_below_its_heading_and_takes_the_place_of_the_one_before() -> None:
    once = BUS.stamped(PAGE, "2026-11-23", "0123456")
    assert "latency`\n\nTaken 2026-11-23 at 0123456.\n\n| a | b |" in once
    assert MEMORY.stamp(once) is None
    both = MEMORY.stamped(once, "2026-11-24", "89abcde")
    assert both.endswith("## Memory\n\nTaken 2026-11-24 at 89abcde.\n\nMuch.\n")
    again = BUS.stamped(both.replace("Taken 2026-11-23 at", "Written down 2026-11-22 in"), "2026-11-25", "fedcba9")
    assert [found["date"] for found in map(Figure.stamp, (BUS, MEMORY), (again, again)) if found] == [
        "2026-11-25",
        "2026-11-24",
    ]
    assert again.count("fedcba9") == 1
    assert "0123456" not in again


def test_a_section_that_is_gone_is_told() -> None:
    with pytest.raises(ValueError, match=r"figures.md has no section 'Bus'"):
        BUS.heading("# Figures\n")


@pytest.mark.parametrize(("since", "said"), [("0", []), ("3", ["3 commits since"]), (None, ["not in this clone"])])
def test_figures_are_old_when_their_code_has_changed(
    monkeypatch: pytest.MonkeyPatch, since: str | None, said: list[str]
) -> None:
    (first, *_) = figures()
    monkeypatch.setattr(module, "figures", lambda: [first])
    monkeypatch.setattr(module, "_git", lambda *arguments: since)
    found = [why for _, why in outdated()]
    assert len(found) == len(said)
    assert all(part in why for part, why in zip(said, found, strict=True))
    assert [first.section in line for line in notes()] == [True] * len(said)
