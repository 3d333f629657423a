"""Topics of a site's pages and of its visitors' questions together."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field

from schemas.base import Lang, PageId, SiteId, Wire
from schemas.gaps import GapQuestion

# Of a topic:
#   uncovered  asked, and not covered: most of its questions were not answered
#   unasked    covered, and not asked: its pages are cited at most half as often as the average page
#   covered    covered and asked
TopicKind = Literal["uncovered", "unasked", "covered"]


class TopicPage(Wire):
    """A page of a topic, or a page near to an uncovered topic."""

    page_id: PageId
    lang: Lang
    title: str = ""
    url: str = ""
    distance: float | None = Field(
        description="Cosine distance of the middle of its chunks to the topic's questions, mean; of a topic that has "
        "none, to the nearest question of all. Null: there are no questions."
    )
    cited: int = Field(ge=0, description="In so many answers of the period.")


class CoverageTopic(Wire):
    """Pages and questions on one subject."""

    kind: TopicKind
    label: str = Field(description="Title of the page, else the question, that is nearest to the middle of the topic.")
    words: tuple[str, ...] = Field(default=(), description="What its titles and questions speak of, and others do not.")
    pages: int = Field(ge=0, description="That it consists of.")
    asked: int = Field(ge=0, description="Questions of the period that mean it.")
    answered: int = Field(default=0, ge=0)
    refused: int = Field(default=0, ge=0)
    missed: int = Field(default=0, ge=0, description="As gaps count them; refused ones among them.")
    distance: float | None = Field(
        description="Of its questions to the page that is nearest to each, mean; of a topic that has none, of "
        "its pages to the nearest question of all. Null: there is no page, or no question."
    )
    languages: dict[str, int] = Field(default_factory=dict, description="How many were asked in each, the most first.")
    page_samples: tuple[TopicPage, ...] = ()
    questions: tuple[GapQuestion, ...] = Field(default=(), description="Samples, those asked most first.")


class CoverageCount(Wire):
    """Counts over all topics of a kind, listed or not."""

    topics: int = Field(default=0, ge=0)
    pages: int = Field(default=0, ge=0)
    asked: int = Field(default=0, ge=0)
    answered: int = Field(default=0, ge=0)
    refused: int = Field(default=0, ge=0)


class CoverageReport(Wire):
    """A site's pages, and the questions of a period, by topic."""

    site: SiteId
    since: AwareDatetime
    until: AwareDatetime
    made_at: AwareDatetime
    pages: int = Field(ge=0, description="In all languages; those that the caller may read.")
    hidden: int = Field(default=0, ge=0, description="Pages for groups that the caller has not: not in any topic.")
    asked: int = Field(ge=0, description="Without courtesies.")
    without_words: int = Field(default=0, ge=0, description="Not grouped: the site keeps no text, or it was erased.")
    pages_cut: bool = Field(default=False, description="There are more pages than are read.")
    questions_cut: bool = Field(default=False, description="There were more questions than are read, the oldest.")
    uncovered: CoverageCount
    unasked: CoverageCount
    covered: CoverageCount
    topics: tuple[CoverageTopic, ...] = Field(
        description="Uncovered ones first, then unasked ones; of each kind those with most questions and pages first."
    )


class CoverageUnderWay(Wire):
    """Pages and questions are still being grouped: ask again."""

    site: SiteId
    began_at: AwareDatetime
