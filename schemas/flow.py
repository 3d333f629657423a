"""The flow of a question: the settings by which it is searched and answered, each null where another layer says it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MAX_HITS = 100  # content hits of a question
MAX_NEIGHBOURS = 10

FlowName = Literal["pagewire", "original"]
# How sources are found:
#   hybrid    by vector and by keywords, fused; the best units of the hits order the pages
#   vectors   the same, without the keywords
#   keywords  the same, without the vectors
#   original  by vector, the best of each field, in the order of their cosines: each hit with its neighbours is a source
#   none      nothing is searched; a model answers from what it knows
Retriever = Literal["hybrid", "vectors", "keywords", "original", "none"]
Rephrasing = Literal["repeat", "expand"]
SentenceCheck = Literal["mark", "drop", "off"]


class FlowParts(BaseModel):
    """The flow of a question."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    flow: FlowName | None = Field(
        default=None,
        description="`pagewire` (the default), or `original`, the flow of the system that Pagewire re-creates: a value "
        "for each of the settings below. What is set besides it goes before it.",
    )
    retriever: Retriever | None = Field(
        default=None,
        description="How sources are found: `hybrid`, by vector and by keywords; `vectors` or `keywords` alone; "
        "`original`, the best hits of each field by vector, each a source; `none`.",
    )
    short_floor: float | None = Field(
        default=None, ge=-1, le=1, description="Least cosine of a hit in a short field; default: the embedder's own."
    )
    content_floor: float | None = Field(
        default=None, ge=-1, le=1, description="Least cosine of a hit in the content; default: the embedder's own."
    )
    hits: int | None = Field(
        default=None, ge=1, le=MAX_HITS, description="Content hits that the sources are made of, at most."
    )
    short_hits: int | None = Field(
        default=None, ge=1, le=MAX_HITS, description="Hits by vector in each of the four short fields, at most."
    )
    neighbours: int | None = Field(
        default=None, ge=0, le=MAX_NEIGHBOURS, description="Chunks before and after a hit that are read with it."
    )
    short_question_words: int | None = Field(
        default=None, ge=0, description="A question of fewer words is looked up by its keywords."
    )
    context_chars: int | None = Field(
        default=None, ge=200, description="Characters of sources that an answer may read."
    )
    rephrase: Rephrasing | None = Field(
        default=None,
        description="What a model makes of the question before it is searched: `repeat` it, made understandable "
        "without the conversation, or `expand` it by the words that a page would use.",
    )
    sentence_check: SentenceCheck | None = Field(
        default=None,
        description="A model's sentence that its sources do not bear out: `mark` it for the visitor, `drop` it, or "
        "`off`, which compares nothing.",
    )
    courtesies: bool | None = Field(
        default=None, description="Whether greetings, thanks and the like are answered without a search."
    )
    gate: bool | None = Field(
        default=None,
        description="Whether a question that no page answers gets a canned reply and the nearest pages, without asking "
        "the answer's model; strategies that search themselves ask it all the same.",
    )
    gate_threshold: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="Least score of a question that can be answered; higher refuses more. Default: the embedder's own, "
        "chosen to refuse few that can (docs/reference/quality.md).",
    )

    def parts(self) -> dict[str, Any]:
        """What is set of the flow, by name."""
        return {name: value for name in FlowParts.model_fields if (value := getattr(self, name)) is not None}
