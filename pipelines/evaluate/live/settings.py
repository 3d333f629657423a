"""Who judges answers."""

from __future__ import annotations

from pydantic import Field

from pipelines.runtime.settings import SettingsGroup


class JudgingSettings(SettingsGroup):
    """Judging answers."""

    judging_model: str | None = Field(
        default=None,
        min_length=1,
        description="Model of the same server that `pagewire eval run --judge` and the stage `judge` ask. Default: "
        "`llm_model`; another one than writes the answers is better, as a model likes its own.",
    )
