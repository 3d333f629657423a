"""Which of its visitors' words a site keeps, and for how long; changed while the system runs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from schemas.base import SiteId, Wire
from schemas.text_version import TextChange, VersionNote

MAX_DAYS = 36_500  # a hundred years; Elasticsearch and we can count back from today so far

# Whether a site's questions are logged, and whether with their words.
QuestionLogging = Literal["on", "off", "without-text"]
Days = Annotated[int, Field(ge=1, le=MAX_DAYS)]
_LOGGING = (
    "`on`, `without-text` (languages, outcomes, pages and figures, but no words of visitors), or `off`; of questions "
    "that are answered from now on."
)
_PROMPTS = (
    "Whether, with `log_questions: on`, the question log also keeps what models read and wrote for an answer, and "
    "which of their sentences were doubted."
)
_CONVERSATIONS = "Days after its last question that a conversation is deleted, with its feedback."
_OUTCOMES = "Days that the question log keeps a question with its feedback, and evaluations their runs."


class PrivacyRules(Wire):
    """The privacy rules of one site."""

    log_questions: QuestionLogging = Field(description=_LOGGING)
    conversations: Days = Field(description=_CONVERSATIONS)
    outcomes: Days = Field(description=_OUTCOMES)
    log_prompts: bool = Field(default=False, description=_PROMPTS)


class PrivacyChange(TextChange):
    """The options of a change."""

    sure: bool = Field(default=False, description="Also where the change deletes something; else that is refused.")


class PrivacyOrder(PrivacyChange):
    """A change of the rules. Fields that are not given stay unchanged."""

    log_questions: QuestionLogging | None = Field(default=None, description=_LOGGING)
    conversations: Days | None = Field(default=None, description=_CONVERSATIONS)
    outcomes: Days | None = Field(default=None, description=_OUTCOMES)
    log_prompts: bool | None = Field(default=None, description=_PROMPTS)


class PrivacyVersion(VersionNote):
    """One stored change."""

    rules: PrivacyRules | None = Field(description="Null: from here on pagewire.yaml counts.")
    of: int | None = Field(default=None, description="The version that it brings back; 0: pagewire.yaml.")


class PrivacyLoss(Wire):
    """What a change deletes. Null: none of these."""

    conversations_before: AwareDatetime | None = Field(description="Those whose last question was asked before.")
    outcomes_before: AwareDatetime | None = Field(description="Logged questions and runs from before.")
    not_until: AwareDatetime = Field(description="Until then nothing is deleted for it, and it can be undone.")


class PrivacyState(Wire):
    """A site's privacy rules and their history."""

    site: SiteId
    rules: PrivacyRules
    live: int = Field(description="The version that is in force; 0: pagewire.yaml is.")
    filed: PrivacyRules = Field(description="What pagewire.yaml says.")
    deleted_by: PrivacyRules | None = Field(
        description="By which is deleted now: for an hour after a change the longer of before and after. Null: nothing "
        "is, for another release has changed it."
    )
    versions: tuple[PrivacyVersion, ...] = Field(description="The newest first, two hundred at most.")
