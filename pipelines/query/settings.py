"""How questions are searched and answered."""

from __future__ import annotations

from pydantic import Field

from pipelines.query.flow import Flow, resolved
from pipelines.runtime.settings import (
    ChunkerSettings,
    JudgeName,
    Site,
    SitesSettings,
    StepName,
    Steps,
    StepSettings,
    ToolCalling,
)
from schemas.flow import FlowParts
from schemas.query import Tuned


class QuerySettings(FlowParts, SitesSettings, ChunkerSettings):
    """The query stages."""

    reranker: str = Field(
        default="none",
        pattern=r"^(none|(bge|onnx):\S.*)$",
        description="`none`, or a folder with weights: `bge:FOLDER` (a bge reranker, for machines with a GPU) or "
        "`onnx:FOLDER` (a cross-encoder as ONNX). It reads the best 20 hits and 24 sentences again, keeps 5 hits, and "
        "chooses the sentence to quote.",
    )
    steps: Steps = Field(
        default_factory=dict, description="How the steps of all sites ask their models, each by its name: see below."
    )
    tool_calls: ToolCalling = Field(
        default="auto",
        description="Whether the model calls tools: `native`, by its server's API; `text`, in writing; `auto`, "
        "natively until its server says that it cannot.",
    )
    judge: JudgeName = Field(
        default="none",
        description="Who is asked, beside the rules, whether a model's sentences are borne out by what they cite: "
        "`none`, the chat `model` (a call more for each answer), or the `reranker`.",
    )
    judge_least: float = Field(
        default=0.5, gt=0, lt=1, description="Chance below which the judge's sentence is left out; a model says 0 or 1."
    )

    def step(self, site: str, name: StepName) -> StepSettings:
        own = self.sites.get(site, Site()).steps.get(name, StepSettings())
        return own.over(self.steps.get(name, StepSettings()))

    def flow_of(self, site: str, tuned: Tuned | None = None) -> Flow:
        """How a question to a site is searched and answered.

        Args:
            tuned: the settings in the question's message (schemas.query.Question.under).
        """
        own = self.sites.get(site, Site())
        return resolved(self.parts(), own.parts(), tuned.parts() if tuned else {})
