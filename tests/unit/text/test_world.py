"""What countries and large cities are called."""

from __future__ import annotations

from text.world import world


def test_places_are_names_and_words_that_time_zones_are_called_by_are_none() -> None:
    assert {"paris", "berlin", "norway"} <= world("en")
    assert world("en").isdisjoint(("christmas", "easter", "mountain", "central", "general", "north"))
    assert "norwegen" in world("de")
