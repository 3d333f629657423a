"""Charts: what they show is where it belongs."""

from __future__ import annotations

from xml.etree import ElementTree

from pipelines.evaluate.experiments import page as charts

SVG = "{http://www.w3.org/2000/svg}"


def texts(root: ElementTree.Element) -> list[str | None]:
    return [each.text for each in root.iter(f"{SVG}text")]


def test_a_chart_shows_its_curves() -> None:
    drawn = charts.lines({"a < b": [(0.0, 0.0), (2.0, 1.0)]}, "across", "up", (0, 1), (0, 1), diagonal=True)
    root = ElementTree.fromstring(drawn)
    curves = [each.get("points") for each in root.iter(f"{SVG}polyline")]
    assert curves == [f"60.0,350.0 {charts.WIDTH - charts.RIGHT}.0,20.0"] * 2  # cut off at the edge
    assert "a < b" in texts(root)


def test_bars_are_as_long_as_what_they_stand_for() -> None:
    root = ElementTree.fromstring(charts.bars({"a < b": 50.0, "c": 100.0, "d" * 50: 0.0}, "ms"))
    _, half, whole, none = [float(each.get("width") or 0) for each in root.iter(f"{SVG}rect")]
    assert (half * 2, none) == (whole, 0)
    assert {"a < b", "c", "50", "100", "0", "ms", f"{'d' * (charts.LONGEST - 1)}…"} == set(texts(root))
    assert ElementTree.fromstring(charts.bars({"a": 0.0}, "ms")) is not None  # nothing to divide by
