"""Corrections: what an editor puts right about a site's answers, from a logged question or by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from schemas.base import GivenLang, Lang, PageId, Revision, SiteId, Wire, form
from schemas.outcome import Became
from schemas.query import RequestId
from schemas.text_version import MAX_SENTENCE, TextChange, TextName, VersionNote

MAX_QUESTIONS = 20  # of one correction
MAX_ASKED = 300  # characters of one of them
MAX_WORD = 100  # characters of a synonym

#   page      this page is right: it comes first
#   answer    this is the answer: a fixed text with its page
#   refusal   we do not answer this: words of one's own
#   synonym   this word means that
CorrectionKind = Literal["page", "answer", "refusal", "synonym"]
# Which questions it answers besides its own words:
#   same   none
#   alike  those that ask the same in other words
#   wide   those about the same thing
Reach = Literal["same", "alike", "wide"]
# in-force  it is used
# hidden    it is used, and its page is for access groups that the reader does not have
# page-changed  a fixed answer is not used: its page says something else by now
# page-gone     it is not used: its page is deleted
CorrectionState = Literal["in-force", "hidden", "page-changed", "page-gone", "removed"]

# Why a correction is not kept:
#   catches-all   it would answer a great part of all that is asked
#   says-nothing  its question or word says nothing of what it is about
#   circle        words would mean each other in a circle
RefusedFor = Literal["catches-all", "says-nothing", "circle"]

AskedText = Annotated[str, StringConstraints(min_length=1, max_length=MAX_ASKED, strip_whitespace=True)]
Word = Annotated[str, form(r"^[^\x00-\x1f]*$", "one line", max_length=MAX_WORD, strip_whitespace=True)]


class CorrectedPage(Wire):
    """The page of a correction, as it was when the correction was made."""

    page_id: PageId
    lang: Lang
    title: str = ""
    url: str = ""
    revision: Revision = 0
    content: str = Field(default="", description="A hash of what it said.")


class _Said(Wire):
    kind: CorrectionKind
    questions: tuple[AskedText, ...] = Field(
        default=(), max_length=MAX_QUESTIONS, description="As visitors ask, in one language; of a synonym none."
    )
    reach: Reach = Field(
        default="alike",
        description="Which other questions it answers: `same` none, `alike` those that ask the same in other words, "
        "`wide` those about the same thing.",
    )
    text: Annotated[str, StringConstraints(max_length=MAX_SENTENCE, strip_whitespace=True)] = Field(
        default="", description="Of an answer and of a refusal: what visitors read, as Markdown."
    )
    all_languages: bool = Field(
        default=False,
        description="Of an answer and of a refusal: visitors of every language read it, as it stands. A page and a "
        "synonym are for all of them anyway.",
    )
    word: Word = Field(default="", description="Of a synonym: what visitors say.")
    means: Word = Field(default="", description="Of a synonym: what it means.")
    both: bool = Field(default=False, description="Of a synonym: each means the other.")

    def _check(self, page: bool) -> None:
        asks, says = self.kind != "synonym", self.kind in ("answer", "refusal")
        lacking = {
            "questions": asks and not self.questions,
            "page": self.kind in ("page", "answer") and not page,
            "text": says and not self.text,
            "word": not asks and not self.word,
            "means": not asks and not self.means,
        }
        beyond = {
            "questions": not asks and self.questions,
            "page": self.kind in ("refusal", "synonym") and page,
            "text": not says and self.text,
            "word": asks and self.word,
            "means": asks and self.means,
        }
        if names := [name for name, lacks in lacking.items() if lacks]:
            raise ValueError(f"a correction of kind {self.kind} needs {' and '.join(names)}")
        if names := [name for name, given in beyond.items() if given]:
            raise ValueError(f"a correction of kind {self.kind} has no {' and no '.join(names)}")


class Correction(_Said):
    """A correction as it is kept."""

    lang: Lang = Field(description="Of its questions and of its text.")
    page: CorrectedPage | None = None

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        self._check(self.page is not None)
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """What it is called by: its questions, or the two words."""
        return self.questions or (self.word, self.means)


class NewCorrection(_Said, TextChange):
    """What an editor gives for a correction."""

    lang: GivenLang | None = Field(
        default=None, description="Of its questions and of its text. Default: as its words show, else the site's first."
    )
    page: Annotated[str, StringConstraints(max_length=2_000, strip_whitespace=True)] = Field(
        default="", description="Of a page and of an answer: the page's id, or its address."
    )

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        self._check(bool(self.page))
        return self


class ListedCorrection(VersionNote):
    """A correction, with what has become of it."""

    id: TextName
    correction: Correction = Field(
        description="Without its page's title and address and without its text, if the reader may not read the page."
    )
    state: CorrectionState
    gone_in: tuple[Lang, ...] = Field(
        default=(),
        description="Of a page in force: languages whose visitors do not get it, since it was deleted there.",
    )
    used: int = Field(default=0, ge=0, description="Questions in the log that it has answered.")


class CorrectionList(Wire):
    """A site's corrections."""

    site: SiteId
    corrections: tuple[ListedCorrection, ...] = Field(description="The newest first.")


class CorrectionVersion(VersionNote):
    """One version of a correction; null where it was taken back."""

    of: int | None = None
    correction: Correction | None


class CorrectionHistory(Wire):
    """A correction and its versions."""

    site: SiteId
    id: TextName
    live: ListedCorrection | None = Field(description="Null: it was taken back.")
    versions: tuple[CorrectionVersion, ...] = Field(description="The newest first, two hundred at most.")


class TriedQuestion(Wire):
    """A logged question, and how near it is to a correction's own."""

    request_id: RequestId
    question: str
    lang: Lang
    asked: int = Field(ge=1, description="So often, in the same words.")
    became: Became
    likeness: float = Field(ge=0, le=1, description="1: in the correction's own words.")


class Rival(Wire):
    """Another correction that answers the same question."""

    id: TextName
    kind: CorrectionKind
    names: tuple[str, ...] = Field(description="Its questions.")
    question: str = Field(description="Which both answer.")
    wins: bool = Field(description="The other one is used: it is nearer to the question.")


class CorrectionTrial(Wire):
    """What a correction would do, before it is kept."""

    id: TextName = Field(description="Its id when it is kept; a correction of this id is replaced.")
    correction: Correction
    replaces: ListedCorrection | None = None
    logged: int = Field(default=0, description="Different questions of the log, of the last 90 days, looked at.")
    answered: int = Field(default=0, description="Those of them that it would answer.")
    questions: tuple[TriedQuestion, ...] = Field(default=(), description="Of those the nearest ones.")
    beyond: tuple[TriedQuestion, ...] = Field(default=(), description="The nearest that it would not answer.")
    by_reach: Mapping[Reach, int] = Field(default_factory=dict, description="How many it would answer by each reach.")
    rivals: tuple[Rival, ...] = ()
    refused: RefusedFor | None = Field(default=None, description="Why it would not be kept; null: it would.")
    circle: tuple[str, ...] = Field(default=(), description="The words that would mean each other in a circle.")
