"""Dead letters as an operator sees them, over HTTP and as JSON of `pagewire dlq`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, Field, JsonValue

from schemas.base import Revision, Wire
from schemas.topics import TOPICS

Action = Literal["redriven", "edited", "dropped", "returned"]
UNREADABLE = "unreadable"  # the code of records in a dead letter topic that are no dead letters


def _buries(topic: str) -> str:
    known = [t.name for t in TOPICS if t.dead_letters]
    if topic not in known:
        raise ValueError(f"no topic with dead letters; there are {', '.join(known)}")
    return topic


TopicName = Annotated[str, AfterValidator(_buries), Field(description="Where the message came from.")]


class DeadLetterSummary(Wire):
    """One dead letter. Unknown fields of an unreadable one are null."""

    id: str = Field(description="`topic/partition/offset` of its place among the topic's dead letters.")
    topic: str = Field(description="Where the message came from, and where a redrive sends it.")
    state: Literal["open", "parked"] | Action = Field(
        description="`parked`: not dead, its stage takes it up again when the trouble is over, and then it `returned`."
    )
    stage: str | None = Field(description="Who gave up on it.")
    code: str = Field(description=f"Why, for programs; `{UNREADABLE}`: it is no dead letter of ours.")
    message: str = Field(description="Why, for people.")
    key: str | None
    site: str | None = Field(description="Null when the key is not a page's.")
    lang: str | None
    page_id: str | None
    attempts: int | None = Field(description="Tries in all, those before a redrive included.")
    redrives: int = Field(default=0, description="How often it was redriven before.")
    first_failed_at: AwareDatetime | None
    last_failed_at: AwareDatetime
    size: int = Field(ge=0, description="Bytes of its value.")
    handled_at: AwareDatetime | None = Field(default=None, description="When it was redriven, edited or dropped.")


class DeadLetterList(Wire):
    """The newest letters that match the filter."""

    total: int = Field(ge=0, description="How many fit, shown or not.")
    letters: tuple[DeadLetterSummary, ...]


class LetterHeader(Wire):
    name: str
    value: str | None = Field(description="Text, or `0x` and hex.")


class RevisionDiff(Wire):
    """The effect of the letter's change on the page: from the revision in the index to the letter's."""

    last_good: Revision | None = Field(description="The revision that the index shows; null when there is none.")
    revision: Revision | None = Field(description="The letter's; null when it cannot be read.")
    lines: tuple[str, ...] = Field(default=(), description="Unified diff, line by line.")
    note: str = Field(default="", description="Why there is no diff, or what to know about it.")


class DeadLetterDetail(Wire):
    """All details of one dead letter."""

    letter: DeadLetterSummary
    error_class: str | None = Field(description="The Python class of the error.")
    source_partition: int | None = Field(description="Where the message stood in its topic.")
    source_offset: int | None
    headers: tuple[LetterHeader, ...] = Field(description="All of them, in order.")
    value: JsonValue = Field(description="The message; null when it is none that its topic may carry.")
    text: str | None = Field(description="The value as text, else `0x` and hex, when it is no such message.")
    problem: str | None = Field(description="Why it is none.")
    diff: RevisionDiff | None = Field(description="Null when the letter is not about a page.")


class DeadLetterFilter(Wire):
    """Filters of letters; without any field all match."""

    stage: str | None = None
    topic: TopicName | None = None
    site: str | None = None
    page: str | None = Field(default=None, description="Page id, in any language.")
    code: str | None = None
    since: AwareDatetime | None = Field(default=None, description="Last failed then or later.")

    def said(self) -> str:
        """The filters in one line."""
        return self.model_dump_json(exclude_none=True)

    def fits(self, letter: DeadLetterSummary) -> bool:
        wanted = (
            (self.stage, letter.stage),
            (self.topic, letter.topic),
            (self.site, letter.site),
            (self.page, letter.page_id),
            (self.code, letter.code),
        )
        return all(want is None or want == have for want, have in wanted) and (
            self.since is None or letter.last_failed_at >= self.since
        )


class Redrive(Wire):
    """How to redrive: as it was, or with another value."""

    value: JsonValue = Field(default=None, description="The corrected message; default: as it was.")


class DeadLetterCounts(Wire):
    """The outcome of an act on many letters."""

    handled: int = 0
    refused: int = Field(default=0, description="Left as they are: unreadable ones can only be dropped.")


class OpenLetterCount(Wire):
    """Open letters of one kind."""

    topic: str
    stage: str | None
    code: str
    count: int = Field(ge=1)
    site: str | None = Field(default=None, description="Of parked ones; null for dead letters.")
    parked: bool = False
