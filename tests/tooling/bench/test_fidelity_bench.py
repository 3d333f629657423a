"""Fidelity: what is missing of a page, or altered, is seen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from bench import strings
from bench.fidelity import COLUMNS, FRAME, Page, main, measured, pages_in, sample

SAID = """<h1>Swimming pool</h1><p>The pool opens on 3. May at nine o'clock and is heated to 24 degrees.</p>
<p>Towels are not for hire, so bring your own. Whoever swims before breakfast finds the water calm, and the kiosk at the
gate sells rolls, coffee and tea from the moment the first guests have left the changing rooms.</p>
<ul><li>Adults pay 9 euros<li>Children pay nothing</ul><table><tr><th>Day<th>Hours<tr><td>Monday<td>9-12</table>"""


def row(*pages: Page) -> dict[str, object]:
    return dict(zip(COLUMNS, measured(pages).line("here"), strict=True))


def test_what_arrives_whole_has_all_of_its_words_figures_and_structure() -> None:
    found = row(Page("pool", FRAME.format(SAID).encode(), SAID))
    assert (found["words kept"], found["precision"], found["altered"], found["in no unit"]) == (1.0, 1.0, 0, 0)
    assert [found[name] for name in ("headings", "items", "cells")] == ["1/1", "2/2", "4/4"]
    assert (found["lacking"], found["flagged"]) == (0, 0)


def test_what_does_not_arrive_is_counted_and_the_page_is_flagged() -> None:
    lost = SAID.replace("<ul>", "<form>").replace("</ul>", "</form>").replace("9-12", "10-12")
    found = row(Page("pool", FRAME.format(lost).encode(), SAID))
    assert (found["altered"], found["items"], found["cells"]) == (1, "0/2", "3/4")
    assert (found["lacking"], found["flagged"], found["of these lacking"]) == (1, 1, 1)


def test_pages_of_a_folder_are_those_with_what_should_be_read(tmp_path: Path) -> None:
    for name, files in {"a": ("source", "expected"), "b": ("source",)}.items():
        (tmp_path / name).mkdir()
        for file in files:
            (tmp_path / name / f"{file}.html").write_text(SAID)
    assert [page.name for page in pages_in(tmp_path)] == ["a"]
    assert len([*sample()]) > 40
    with pytest.raises(typer.BadParameter, match="no NAME"):
        main([tmp_path / "b"])


def test_strings_that_arrive_are_counted_in_the_halves_that_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "eval").mkdir()
    listed = {}
    for name in ("a.html", "b.html", "c.html", "d.html"):
        (tmp_path / "eval" / name).write_text(f"<body><main>{SAID}</main><footer>Imprint</footer>")
        listed[f"https://www.town.example/{name}"] = {
            "file": name, "with": ["Swimming pool", "not there"], "without": ["Imprint", "kiosk at the gate"]
        }  # fmt: skip
    listed["https://www.town.example/gone"] = {"file": "gone.html", "with": [], "without": []}
    (tmp_path / strings.LIST).write_text(json.dumps(listed))
    [tuned] = strings.lines(tmp_path, ("tuned",))
    both = [*strings.lines(tmp_path, ("tuned", "held out"))]
    assert both[0] == tuned
    assert sum(int(str(line[1])) for line in both) == 4
    pages = tuned[1]
    assert tuned[2:] == (pages, 2 * int(str(pages)), pages, 2 * int(str(pages)), 0.5)
