"""Texts of a site that are changed while the system runs. Each change is a version of its own; none is overwritten.

A site's fixed texts for visitors and models, and their origin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field, StringConstraints

from schemas.base import SiteId, Wire, form
from schemas.query import MAX_PROMPT, Tuned

MAX_SENTENCE = 2_000  # characters of a sentence for visitors; our longest has some 300
MAX_NOTE = 500  # characters

# Names of texts. `canned`, `errors`: a sentence and its language, `nothing-found.de`. `contact`: a language, `de`.
# `glossary`: only `terms`; `settings`: only `answers`; both YAML as in pagewire.yaml.
EditedKind = Literal["prompts", "canned", "errors", "contact", "glossary", "settings"]
# `privacy` has only `rules`, JSON; editors cannot change it. `corrections`: one a text, JSON, by its id.
TextKind = Literal[EditedKind, "privacy", "corrections"]
TextName = Annotated[
    str,
    form(
        r"^[A-Za-z0-9][A-Za-z0-9-]{0,63}(\.[A-Za-z0-9-]{2,35})?$",
        "letters, digits and `-`, 64 at most, and perhaps a dot and a language: `nothing-found.de`",
    ),
]
Note = Annotated[str, StringConstraints(max_length=MAX_NOTE, strip_whitespace=True)]
Version = Annotated[int, Field(ge=1, le=999_999)]


class TextChange(Wire):
    """The options of a change."""

    note: Note = Field(default="", description="Why, for readers of the history.")
    over: int | None = Field(
        default=None,
        ge=0,
        description="The version that was live when you looked, 0 for none: when another is live by now, nothing is "
        "changed. Default: whatever is live.",
    )


class NewText(TextChange):
    """A new text."""

    text: Annotated[str, StringConstraints(min_length=1, max_length=MAX_PROMPT, strip_whitespace=True)] = Field(
        description=f"Of a prompt the text of a file, as a site has it in its folder of prompts; of the glossary "
        f"YAML, as pagewire.yaml has it; of the settings YAML, a line for each; else what visitors read, "
        f"{MAX_SENTENCE:,} characters at most."
    )


class VersionNote(Wire):
    """Who made a version, when, and why."""

    version: Version = Field(description="Counted from 1, for each text or site.")
    by: str = Field(description="Name of the key, or the machine's user.")
    at: AwareDatetime
    note: str = ""

    def noted(self) -> dict[str, Any]:
        """These fields, for another view of the version."""
        return {name: getattr(self, name) for name in VersionNote.model_fields}


class TextVersion(VersionNote):
    """One stored version of a text."""

    site: SiteId
    kind: TextKind
    name: TextName
    text: str | None = Field(description="Null: from here on the site's files are in force.")
    candidate: bool = Field(default=False, description="It was kept to be tried, and was not live itself.")
    of: int | None = Field(
        default=None, ge=0, description="The version whose words it brings back, or puts to use; 0: those of the files."
    )
    back: bool = Field(default=False, description="It was a step back, to what was live before.")


class TextHistory(Wire):
    """A text and its history."""

    site: SiteId
    kind: TextKind
    name: TextName
    text: str | None = Field(description="What is said now; null: in this language nothing is.")
    live: int = Field(description="The version that is live; 0: the site's files are, or ours.")
    filed: str | None = Field(description="What is said without a live version: the site's file, or ours.")
    versions: tuple[TextVersion, ...] = Field(description="The newest first, two hundred at most.")


SentenceKind = Literal["canned", "errors"]
_LIVE = "set while the system runs, by its number"
_OWN = "from a file of the site's own (its setting `prompts`); else it comes with Pagewire"


class SiteSentence(Wire):
    """A fixed sentence for visitors, which no model writes."""

    kind: SentenceKind = Field(description="A reply, or the sentence for an error; the name of its file.")
    name: str
    said: Mapping[str, str] = Field(description="By language; in others as a model translates it, or in English.")
    own: tuple[str, ...] = Field(description=f"The languages whose words are {_OWN}.")
    live: Mapping[str, int] = Field(default_factory=dict, description=f"By language: the version that was {_LIVE}.")


class PromptPart(Wire):
    """A titled part of a prompt. `{name}` in it is a variable."""

    role: Literal["system", "user"]
    title: str
    text: str
    when: str | None = Field(description="Left out where this variable is empty.")


class PromptExamples(Wire):
    """The worked examples of a prompt in one language."""

    lang: str
    count: int
    own: bool = Field(description=f"They are {_OWN}.")


class SitePrompt(Wire):
    """A model's prompt at one step."""

    name: str
    fingerprint: str = Field(description="Version and content, as traces name it.")
    own: bool = Field(description=f"It is {_OWN}.")
    live: int | None = Field(default=None, description=f"The version that was {_LIVE}; null: none.")
    parts: tuple[PromptPart, ...]
    examples: tuple[PromptExamples, ...]


class GlossaryTerm(Wire):
    """A term of the site, and visitors' names for it."""

    term: str
    names: Mapping[str, tuple[str, ...]] = Field(description="By language; the first of several is said.")


class ChangedText(VersionNote):
    """A text whose live version was set while the system runs."""

    kind: EditedKind
    name: TextName


class SiteTexts(Wire):
    """All fixed texts of a site."""

    site: SiteId
    sentences: tuple[SiteSentence, ...]
    contact: Mapping[str, str] = Field(description="Said after every question that no page answers; by language.")
    contact_live: Mapping[str, int] = Field(
        default_factory=dict, description=f"By language: the version of it that was {_LIVE}."
    )
    glossary: tuple[GlossaryTerm, ...]
    glossary_live: int | None = Field(
        default=None, description=f"The version of it that was {_LIVE}; null: it is as pagewire.yaml has it."
    )
    prompts: tuple[SitePrompt, ...]
    settings: Tuned = Field(
        default=Tuned(), description="How its questions are answered, where it is not as pagewire.yaml has it."
    )
    settings_live: int | None = Field(
        default=None, description=f"The version of it that was {_LIVE}; null: all is as pagewire.yaml has it."
    )
    changed: tuple[ChangedText, ...] = Field(default=(), description="All live versions that were set so.")
