"""Notices are cut where a person would cut them, in all languages."""

from __future__ import annotations

import pytest

from bench.fidelity import Notice, notices


def test_a_notice_and_its_cuts() -> None:
    [first, *_] = notices("hard")
    assert first == Notice(
        "de",
        "<p>Geöffnet Mo. bis Fr. 9 bis 12 Uhr. Am Samstag ist geschlossen.</p>",
        ("Geöffnet Mo. bis Fr. 9 bis 12 Uhr.", "Am Samstag ist geschlossen."),
    )
    assert not Notice("de", first.html, first.parts[:1]).is_right


@pytest.mark.parametrize("part", ["hard", "new"])
def test_nearly_all_are_cut_right(part: str) -> None:
    wrong = [notice.found for notice in notices(part) if not notice.is_right]
    assert len(wrong) < 0.05 * len(list(notices(part))), wrong
