"""Worked examples that operators add to a running site, beside those in `prompts/examples/`."""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, Field, StringConstraints

from schemas.base import Lang, SiteId, Wire
from schemas.query import MAX_QUESTION, Turn

Line = Annotated[str, StringConstraints(min_length=1, max_length=MAX_QUESTION, strip_whitespace=True)]


class RephraseExample(Wire):
    """How one question should be rewritten."""

    id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{8,64}$")]
    site: SiteId
    lang: Lang = Field(description="The site's language that the question was rewritten into.")
    history: tuple[Turn, ...] = Field(default=(), description="What was said before, oldest first.")
    question: Line = Field(description="As a visitor asks it.")
    output: Line = Field(description="As it should be searched; the same where it needs nothing.")
    added_at: AwareDatetime
