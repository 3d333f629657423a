"""Worked examples that operators add to a running site, in addition to those in `prompts/examples/`."""

from __future__ import annotations

import re
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, Field, StringConstraints, model_validator

from schemas.base import GivenLang, Lang, SiteId, Wire, form
from schemas.query import MAX_QUESTION, Turn

MAX_SOURCES = 3  # of one example
MAX_SOURCE = 2_000  # characters

ExampleKind = Literal["rephrase", "answer"]
ExampleId = Annotated[str, form(r"^[A-Za-z0-9_-]{8,64}$", "8 to 64 letters, digits, `_` and `-`")]
Line = Annotated[str, StringConstraints(min_length=1, max_length=MAX_QUESTION, strip_whitespace=True)]

_CITED = re.compile(r"\[(\d+)\]")


class ExampleSource(Wire):
    """A source of an example's answer."""

    title: Annotated[str, StringConstraints(max_length=200, strip_whitespace=True)] = ""
    text: Annotated[str, StringConstraints(min_length=1, max_length=MAX_SOURCE, strip_whitespace=True)]


class NewExample(Wire):
    """How one question should be rewritten, or answered."""

    kind: ExampleKind = Field(
        default="rephrase", description="What `output` is: the question as it should be searched, or a good answer."
    )
    lang: GivenLang | None = Field(
        default=None,
        description="Of `output`: for `rephrase` a language of the site, for `answer` the visitor's; default: the "
        "site's first.",
    )
    history: tuple[Turn, ...] = Field(default=(), max_length=4, description="What was said before, oldest first.")
    question: Line = Field(description="As a visitor asks it.")
    sources: tuple[ExampleSource, ...] = Field(
        default=(),
        max_length=MAX_SOURCES,
        description="Of an answer: what it was written from, cited in `output` as `[1]`, `[2]`, ... Without any, the "
        "answer counts as its own source.",
    )
    output: Line = Field(description="As it should be searched (the same where it needs nothing), or answered.")
    declines: bool = Field(
        default=False, description="Of an answer: it says that the sources do not hold what was asked."
    )

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        if self.kind == "rephrase" and (self.sources or self.declines):
            raise ValueError("sources and declines are for examples of kind answer")
        beyond = [n for n in map(int, _CITED.findall(self.output)) if not 1 <= n <= len(self.sources)]
        if self.kind == "answer" and beyond:
            raise ValueError(f"output cites [{beyond[0]}], and the example has {len(self.sources)} sources")
        return self


class WorkedExample(NewExample):
    """A stored example."""

    id: ExampleId
    site: SiteId
    lang: Lang
    added_at: AwareDatetime

    @classmethod
    def of(cls, new: NewExample, site: str, lang: str, added_at: datetime) -> Self:
        """The stored example. Its id follows from the question, so another example of the same question replaces it.

        Args:
            lang: of the site, if the example names none.
        """
        spoken = new.lang or lang
        asked = repr((new.kind, spoken, [(turn.question, turn.answer) for turn in new.history], new.question))
        return cls(
            **new.model_dump(exclude={"lang"}),
            id=sha256(asked.encode()).hexdigest()[:16],
            site=site,
            lang=spoken,
            added_at=added_at,
        )


class ExampleList(Wire):
    examples: tuple[WorkedExample, ...] = Field(description="The oldest first.")


class ExampleFilter(Wire):
    """Filters of examples; all given ones must match."""

    kind: ExampleKind | None = None
    lang: str = Field(default="", max_length=35, description="Of the example: `pt` fits `pt-BR` as well.")
    text: str = Field(default="", max_length=200, description="Words in any part of it, in this order.")

    def fits(self, one: WorkedExample) -> bool:
        lang = self.lang.lower()
        return (
            self.kind in (None, one.kind)
            and (not lang or one.lang.lower() == lang or one.lang.lower().startswith(f"{lang}-"))
            and any(self.text.casefold() in said.casefold() for said in _texts(one))
        )


class LikeExample(Wire):
    """An example of a site, compared with a new one."""

    example: WorkedExample
    cosine: float | None = Field(description="Of the two questions; null: they could not be compared by meaning.")
    same: bool = Field(description="Both ask in the same words: of the two the newer is used.")
    replaced: bool = Field(description="The new one would take its place.")


class LikeExamples(Wire):
    """The examples of a site that are like a new one."""

    like: tuple[LikeExample, ...] = Field(description="Of its kind and language; the nearest first.")
    least: float | None = Field(
        description="The least cosine of a listed example; null: no model answered, so only the words count."
    )


def _texts(one: NewExample) -> list[str]:
    said = [text for turn in one.history for text in (turn.question, turn.answer)]
    return [one.question, one.output, *said, *(text for source in one.sources for text in (source.title, source.text))]
