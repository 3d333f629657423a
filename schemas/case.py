"""A case of an evaluation, made from an answer that an operator has reviewed."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from schemas.base import GivenLang, PageId, Wire, form
from schemas.query import MAX_QUESTION

MAX_PAGES = 40  # of a case
MAX_TAGS = 20
MAX_ANSWER = 8_000  # characters
MAX_NOTE = 2_000  # characters
MAX_BEFORE = 10  # questions

CaseFormat = Literal["ndjson", "yaml"]
Asked = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUESTION)]
Tag = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=64)]


class NewCase(Wire):
    """A question, with the criteria of a right answer."""

    question: Asked
    lang: GivenLang | None = Field(default=None, description="Of the question, and of the answer.")
    history: tuple[Asked, ...] = Field(
        default=(), max_length=MAX_BEFORE, description="What was asked before, the oldest first."
    )
    pages: tuple[PageId, ...] = Field(default=(), max_length=MAX_PAGES, description="Where the answer stands.")
    answer: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_ANSWER)] = Field(
        default="", description="A right one, to compare with."
    )
    expect: Literal["answer", "refuse", "courtesy"] | None = Field(
        default=None, description="Default: `answer`, where there are pages or an answer."
    )
    tags: tuple[Tag, ...] = Field(default=(), max_length=MAX_TAGS)
    note: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_NOTE)] = Field(
        default="", description="For people."
    )
    id: Annotated[str, form(r"^[\w.:-]{1,100}$", "letters, digits, `_`, `.`, `:` and `-`, 100 at most")] | None = Field(
        default=None, description="Default: made from the question, its language and its history."
    )

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.expect in ("refuse", "courtesy") and (self.pages or self.answer):
            raise ValueError(f"pages and answer are of what is answered, not of expect {self.expect}")
        return self
