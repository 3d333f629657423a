"""Visitors' questions grouped by meaning; groups that the site does not answer are its gaps."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field

from schemas.base import Lang, PageId, SiteId, Wire
from schemas.outcome import Became
from schemas.query import RequestId

# How often it was asked or missed, against the period before: `up` and `down` are a quarter and two questions apart.
Trend = Literal["new", "up", "same", "down", "gone"]
# The gate's finding for most of the missed questions:
#   nothing  visitors got nothing: a page is missing
#   near     they were shown pages, but no answer: a page lacks something, or uses other words
#   there    they got an answer, which did not help or was not borne out: look at it
Covered = Literal["nothing", "near", "there"]


class GapQuestion(Wire):
    """A question of a group, in the words of a visitor."""

    request_id: RequestId
    question: str
    lang: Lang = Field(description="Asked in.")
    asked_at: AwareDatetime
    asked: int = Field(ge=1, description="So often in the same words, in this period.")
    became: Became
    missed: bool


class GapPage(Wire):
    """A page near to a group's questions."""

    page_id: PageId
    lang: Lang
    title: str = ""
    url: str = ""
    distance: float | None = Field(
        description="Cosine distance of its nearest chunk, mean over those questions; null: found by words alone."
    )
    found: int = Field(ge=1, description="For so many of the group's questions; if any were missed, of those.")
    cited: int = Field(ge=0, description="In so many of the answers to these.")


class QuestionGroup(Wire):
    """Questions that mean the same."""

    id: RequestId = Field(description="Of the question that gave it its label.")
    label: str = Field(description="The question that is nearest to the middle of the group.")
    words: tuple[str, ...] = Field(default=(), description="What its questions speak of, and others do not.")
    asked: int = Field(ge=0)
    asked_before: int = Field(ge=0, description="In the period before.")
    missed: int = Field(
        ge=0, description="Refused, disliked, unsure or unfounded, once each; the last two not if the answer was liked."
    )
    missed_before: int = Field(ge=0)
    trend: Trend = Field(description="Of what was missed; of a group that misses nothing, of what was asked.")
    refused: int = Field(default=0, ge=0)
    disliked: int = Field(default=0, ge=0)
    unsure: int = Field(default=0, ge=0, description="Shown a page, where nothing was sure enough to be an answer.")
    unfounded: int = Field(default=0, ge=0, description="Sentences of the model were left out: no source bears them.")
    covered: Covered | None = Field(default=None, description="What most visitors got; null: nothing was missed.")
    languages: dict[str, int] = Field(description="How many were asked in each, the most first.")
    questions: tuple[GapQuestion, ...] = Field(description="Samples: those that were missed and asked most go first.")
    pages: tuple[GapPage, ...] = Field(default=(), description="Found for most questions, and nearest to them, first.")
    last_asked: AwareDatetime
    last_missed: AwareDatetime | None = None
    closing: bool = Field(default=False, description="Something was missed, but not when it was asked last.")


class GapCounts(Wire):
    """Counts of all questions of a period, without courtesies."""

    asked: int = Field(default=0, ge=0)
    missed: int = Field(default=0, ge=0)
    refused: int = Field(default=0, ge=0)
    disliked: int = Field(default=0, ge=0)
    unsure: int = Field(default=0, ge=0)
    unfounded: int = Field(default=0, ge=0)
    without_words: int = Field(default=0, ge=0, description="Not grouped: the site keeps no text, or it was erased.")


class GapReport(Wire):
    """Asked and missed questions of a period, and of the one before it."""

    site: SiteId
    before: AwareDatetime = Field(description="Where the period before begins.")
    since: AwareDatetime
    until: AwareDatetime
    made_at: AwareDatetime
    counts: GapCounts
    counts_before: GapCounts
    cut: bool = Field(default=False, description="There were more questions than are read; the oldest are left out.")
    groups: tuple[QuestionGroup, ...] = Field(description="Those that miss most first.")
    total: int = Field(ge=0, description="Groups there are, listed or not.")


class GapsUnderWay(Wire):
    """The questions are still being grouped: ask again."""

    site: SiteId
    began_at: AwareDatetime
