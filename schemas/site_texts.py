"""A site's fixed texts for visitors and models, and their origin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from schemas.base import SiteId, Wire
from schemas.query import Tuned
from schemas.text_version import EditedKind, TextName, VersionNote

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
