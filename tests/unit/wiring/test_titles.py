"""Titles are a nicety: what is wrong with one site's prompts keeps no gateway from starting."""

from __future__ import annotations

from pathlib import Path

from pipelines.runtime.counts import SharedCounts
from tests.fakes.stores import FakeTextStore
from wiring.settings import Settings
from wiring.titles import titles


async def test_a_wrong_prompt_of_one_site_keeps_no_gateway_from_starting(tmp_path: Path) -> None:
    for name, text in (("good", "nothing-found: {en: Nothing.}\n"), ("bad", "nothing-found: [\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "canned.yaml").write_text(text)
    (tmp_path / "good" / "canned.yaml").unlink()
    settings = Settings(
        llm_model="m",
        sites={name: {"prompts": tmp_path / name} for name in ("good", "bad", "missing")},  # type: ignore[dict-item]
    )
    async with titles(settings, lambda _, seconds: SharedCounts(seconds), FakeTextStore()) as writing:
        assert writing is not None
