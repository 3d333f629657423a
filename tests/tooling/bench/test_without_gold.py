"""What is lost of pages and documents without a gold is seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.without_gold import COLUMNS, lines

TABLE = "<table><tr><th>Tag<th colspan=2>Preis in €<tr><td rowspan=2>Montag<td>9<td>8<tr><td>7<td>6</table>"


def of(folder: Path, html: str) -> dict[str, Any]:
    (folder / "a.html").write_text(f"<main><h1>Gebühren für alle</h1><p>Seit 2026.</p>{html}</main>", "utf-8")
    [line] = lines([folder])
    return dict(zip(COLUMNS, line, strict=True))


def test_what_arrives_whole_is_whole(tmp_path: Path) -> None:
    found = of(tmp_path, TABLE)
    assert (found["mojibake, of"], found["tables with th whole, of"], found["cells in no unit, of"]) == (
        "0, 1",
        "1, 1",
        "0, 7",
    )
    assert (found["figures altered, of"], found["in no unit"]) == ("0, 5", 0)
    assert of(tmp_path, TABLE.replace("th", "td"))["others whole, of"] == "1, 1"


def test_what_is_lost_is_counted(tmp_path: Path) -> None:
    hidden = TABLE.replace("<td>8", "<td><form>8</form>")
    found = of(tmp_path, hidden)
    assert (found["tables with th whole, of"], found["cells in no unit, of"]) == ("0, 1", "1, 7")
    wrong = of(tmp_path, f'<meta charset="windows-1251">{TABLE}')
    assert wrong["mojibake, of"] == "1, 1"
