"""What a judge said of an answer, as a run's file keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict


class VerdictKey(NamedTuple):
    """What was judged by whom, and how. Another model, or another wording of a prompt, is another judge."""

    case: str
    measure: str
    judge: str
    prompts: str
    repeat: int


class Verdict(BaseModel):
    """A judge's word on one answer, or why there is none."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    case: str
    measure: str
    judge: str  # the model
    prompts: str  # their fingerprints
    repeat: int = 0  # the same asked again, to see whether the judge agrees with itself
    figures: Mapping[str, float] = {}  # each between 0 and 1
    reason: str = ""
    unjudged: str | None = None  # the code of what went wrong; then there are no figures

    @property
    def key(self) -> VerdictKey:
        return VerdictKey(self.case, self.measure, self.judge, self.prompts, self.repeat)
