"""Texts of a site that are changed while the system runs. Each change is a version of its own; none is overwritten."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, StringConstraints

from schemas.base import SiteId, Wire
from schemas.query import MAX_PROMPT

MAX_SENTENCE = 2_000  # characters of what is said to visitors; the longest of ours has some 300
MAX_NOTE = 500  # characters

# `canned` and `errors` are sentences, by name and language: `nothing-found.de`. `contact` has a text a language: `de`;
# `glossary` has one, `terms`: YAML, as pagewire.yaml has it; so has `settings`, `answers`: how questions are answered.
EditedKind = Literal["prompts", "canned", "errors", "contact", "glossary", "settings"]
# `privacy` has one, `rules`, and is none for editors: what a site keeps of its visitors, as JSON.
TextKind = Literal[EditedKind, "privacy"]
TextName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]{0,63}(\.[A-Za-z0-9-]{2,35})?$")]
Note = Annotated[str, StringConstraints(max_length=MAX_NOTE, strip_whitespace=True)]
Version = Annotated[int, Field(ge=1, le=999_999)]


class TextChange(Wire):
    """What goes with a change."""

    note: Note = Field(default="", description="Why, for whoever reads the history.")
    over: int | None = Field(
        default=None,
        ge=0,
        description="The version that was live when you looked, 0 for none: when another is live by now, nothing is "
        "changed. Default: whatever is live.",
    )


class NewText(TextChange):
    """What is to be said from now on."""

    text: Annotated[str, StringConstraints(min_length=1, max_length=MAX_PROMPT, strip_whitespace=True)] = Field(
        description=f"Of a prompt the text of a file, as a site has it in its folder of prompts; of the glossary "
        f"YAML, as pagewire.yaml has it; of the settings YAML, a line for each; else what visitors read, "
        f"{MAX_SENTENCE:,} characters at most."
    )


class TextVersion(Wire):
    """One version of a text, as it is kept."""

    site: SiteId
    kind: TextKind
    name: TextName
    version: Version = Field(description="They are counted for each text, from 1.")
    text: str | None = Field(description="Null: from here on the site's files are in force.")
    candidate: bool = Field(default=False, description="It was kept to be tried, and was not live itself.")
    of: int | None = Field(
        default=None, ge=0, description="The version whose words it brings back, or puts to use; 0: those of the files."
    )
    back: bool = Field(default=False, description="It was a step back, to what was live before.")
    by: str = Field(description="Name of the key, or the machine's user.")
    at: AwareDatetime
    note: str = ""


class TextHistory(Wire):
    """A text and how it came to be."""

    site: SiteId
    kind: TextKind
    name: TextName
    text: str | None = Field(description="What is said now; null: in this language nothing is.")
    live: int = Field(description="The version that is live; 0: the site's files are, or ours.")
    filed: str | None = Field(description="What is said without a live version: the site's file, or ours.")
    versions: tuple[TextVersion, ...] = Field(description="The newest first, two hundred at most.")
