"""Trials: an operator asks one question under several settings at once, to compare the answers."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from schemas.answer import TrialFindings
from schemas.base import GivenLang, Lang, SiteId, Wire, form
from schemas.http import ChatResponse
from schemas.page import Group
from schemas.query import MAX_PROMPT, MAX_QUESTION, ShotChoice, Tuned, Turn

MAX_TRIALS = 3  # at once: as many as fit side by side on a screen
MAX_EXAMPLES = 8  # worked answers in a prompt; twice as many as questions of visitors get
MAX_TURNS = 10  # of what was said before
MAX_SEED = 1_000_000
MAX_SAMPLES = 20

# The strategies of pipelines.runtime.settings, and to do without the model.
TrialStrategy = Literal["quote", "plain", "retrieval-gate", "self-ask", "react", "chain-of-thought", "tools"]
# All that a question of its own reads: not the titles of conversations, nor the translation of our own sentences.
TrialPrompt = Literal[
    "answer", "courtesy", "decide", "expand", "judge", "react", "rephrase", "self-ask", "short", "think", "tools"
]
IndexChoice = Annotated[str, form(r"^[a-z0-9][a-z0-9-]{0,99}$", "small letters, digits and `-`, 100 at most")]
# A tenth is as fine as anybody hears, and each temperature has a connection of its own in the workers.
Temperature = Annotated[float, Field(ge=0, le=2), AfterValidator(lambda value: round(value, 1))]


class AnswerSettings(Tuned):
    """Settings of answering that can be tried and then made live; default: as in pagewire.yaml."""

    strategy: TrialStrategy | None = Field(
        default=None, description="How a model comes to the answer; `quote`: no model writes it."
    )
    temperature: Temperature | None = Field(default=None, description="Of the same steps, in tenths.")
    examples: int | None = Field(
        default=None, ge=0, le=MAX_EXAMPLES, description="Worked answers in the prompt, at most."
    )


class TrialSettings(AnswerSettings):
    """The settings of a trial; default: as for a visitor of the site."""

    filed: bool = Field(
        default=False,
        description="What is not given is as `pagewire.yaml` has it, not as the settings that were made live since.",
    )
    lang: GivenLang | None = Field(
        default=None, description="Language to answer in; default: the question's, else the site's first."
    )
    groups: tuple[Group, ...] | None = Field(
        default=None, max_length=1_000, description="Access groups, of those of the key; default: all of these."
    )
    history: tuple[Turn, ...] = Field(
        default=(), max_length=MAX_TURNS, description="What was said before, the oldest first."
    )
    index: IndexChoice | None = Field(
        default=None,
        description="What is searched: `live`, which is the default, `candidate`, the newest rebuilt index that was "
        "verified and is not live yet, or the name of one of the site's indexes.",
    )
    prompt: str | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_PROMPT,
        description="Instead of a prompt: the text of a file as a site has it in its folder of prompts.",
    )
    prompt_name: TrialPrompt = Field(
        default="answer", description="Which prompt `prompt` takes the place of: one that answers hang on."
    )
    order: int | None = Field(
        default=None,
        ge=0,
        le=MAX_SEED,
        description="Seed by which the worked answers are put in order; default: the one most like the question last.",
    )
    shot_choice: ShotChoice | None = Field(
        default=None,
        description="`dynamic`, the default: the worked answers most like the question; `fixed`: the prompt's first "
        "ones, in their order, for every question.",
    )
    short: bool | None = Field(
        default=None,
        description="Whether a model answers in as few words as it takes, by the prompt `short` in place of `answer`: "
        "so that exact matches with reference answers say something.",
    )
    samples: int | None = Field(
        default=None,
        ge=1,
        le=MAX_SAMPLES,
        description="Self-consistency: asked so many times, and the answer is that which agrees most with the others. "
        "Use a `temperature` above 0.",
    )

    @model_validator(mode="after")
    def _one_prompt(self) -> Self:
        if self.short and self.prompt is not None and self.prompt_name == "answer":
            raise ValueError("short: has a prompt of its own; name it with prompt_name: short")
        return self


class TrialChoices(Wire):
    """The choices for a site's trials, and the other settings that affect its answers."""

    site: SiteId
    models: tuple[str, ...] = Field(description="Those that `pagewire.yaml` names; none: answers quote the pages.")
    reranker: bool = Field(description="Whether one is configured.")
    live: str | None = Field(description="Name of the index that visitors search; null: there is none yet.")
    indexes: tuple[str, ...] = Field(description="All of the site's, the live one among them.")
    hits: int = Field(description="Content hits of a question, where a trial does not say.")
    strategy: str = Field(description="Of the site; `quote` where there is no model.")
    system: str = Field(
        description="Fingerprint of this version, of the settings and prompts that the site's answers hang on, and of "
        "the live index by its name, embedder and chunks: not of its pages."
    )
    ingest_lag: int = Field(
        default=0, description="Messages about changed pages, of all sites, that are not indexed yet."
    )


class TrialOrder(Wire):
    """A question, and the settings of its trials."""

    question: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUESTION)]
    trials: tuple[TrialSettings, ...] = Field(default=(TrialSettings(),), min_length=1, max_length=MAX_TRIALS)


class TrialError(Wire):
    """Why there is no answer."""

    code: str
    message: str


class TrialResult(Wire):
    """The result of one trial."""

    settings: TrialSettings
    lang: Lang = Field(description="It was to be answered in.")
    answer: ChatResponse | None = Field(default=None, description="As a visitor gets it, with its steps.")
    findings: TrialFindings | None = Field(
        default=None, description="Null: it failed, or an older worker has answered, which does not know of trials."
    )
    error: TrialError | None = Field(default=None, description="Null: it was answered.")
    first_token_ms: float | None = Field(default=None, description="Until the answer's first word.")
    ms: float = Field(description="Until its end.")


class TrialReport(Wire):
    """All results, in the order of the request."""

    site: SiteId
    question: str
    trials: tuple[TrialResult, ...]
