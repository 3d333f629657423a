"""Protocols of the models that the query stages call, and the errors of models and trials."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pipelines.runtime.errors import Kind, PagewireError, Permanent, Retryable
from pipelines.runtime.settings import StepName, StepSettings
from prompts.loader import ChatMessage, Example, ToolCall
from schemas.answer import Usage
from schemas.example import ExampleKind
from schemas.query import Question


class ModelError(PagewireError):
    """The model gave no answer. pipelines.query.answer.answering decides what follows."""

    code = "model-failed"


class RateLimited(ModelError, Retryable):
    """The model's server has too much to do."""

    code = "model-busy"

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        """`retry_after`: seconds to wait, as the server asks; None without such a header."""
        super().__init__(message)
        self.retry_after = retry_after


class ModelDown(ModelError, Retryable):
    """The model's server is away or broken."""

    code = "model-down"


class ModelSilent(ModelDown):
    """The model was silent for too long, or wrote nothing at all."""

    code = "model-silent"


class ModelThoughtTooLong(ModelError, Retryable):
    """The model's token limit came before its first word: it was still thinking. With a larger limit it may answer."""

    code = "model-thought-out"


class ModelCut(ModelDown):
    """The model's stream broke off in the middle."""

    code = "model-cut"


class ModelSlow(ModelError, Retryable):
    """The model was still writing when the question's deadline came near."""

    code = "model-slow"


class ModelUnfounded(ModelError, Permanent):
    """The sources support no sentence that the model wrote."""

    code = "model-unfounded"


class ContentFiltered(ModelError, Permanent):
    """The model's provider refuses to answer this."""

    code = "content-filtered"


class ContextTooLong(ModelError, Permanent):
    """The prompt is longer than the model can read: lower `context_chars` or take another model."""

    code = "context-too-long"


class ModelDenied(ModelError, Permanent):
    """The key is wrong, has no right to the model, or no credit left."""

    code = "model-denied"
    kind = Kind.SERVICE


class BadRequest(ModelError, Permanent):
    """The model's server does not understand the request, or has no such model."""

    code = "model-refused"
    kind = Kind.UNKNOWN


class TokensSpent(ModelError, Permanent):
    """The site's tokens of the day are spent: until the next one its answers quote the pages."""

    code = "tokens-spent"


class QuestionSpent(TokensSpent):
    """The tokens of this question are spent: it is answered by quoting the pages."""

    code = "question-spent"


class NoToolCalls(BadRequest):
    """The model cannot call tools. Without `tools` it may answer."""


class BadTrial(Permanent):
    """A trial's settings do not fit this worker. Only the operator who started the trial sees the error."""


class NoTrialIndex(BadTrial):
    """A trial names an index that cannot be searched."""

    code = "index-not-tried"


class NoTrialReranker(BadTrial):
    """A trial needs a reranker, and this worker has none."""

    code = "reranker-not-tried"


class BadTrialPrompt(BadTrial):
    """A trial's prompt does not fit this worker, whose version differs from that of the gateway."""

    code = "prompt-not-tried"


@dataclass(frozen=True)
class ToolSpec:
    """A tool as the model sees it. `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Delta:
    """A piece of a model's text.

    The last one of a stream has the usage (zeros if the server does not count), the tool calls, and whether the limit
    of output tokens cut the text short.
    """

    text: str = ""
    usage: Usage | None = None
    calls: tuple[ToolCall, ...] = ()
    cut: bool = False


@dataclass(frozen=True)
class Completion:
    """A model's whole text, and its tool calls. `cut`: the limit of output tokens cut the text short."""

    text: str
    usage: Usage
    calls: tuple[ToolCall, ...] = ()
    cut: bool = False


class ChatModel(Protocol):
    """A chat model.

    Both calls raise ModelError: a Retryable one when the model is away, busy or silent for too long, a Permanent one
    when it would refuse the same messages again; NoToolCalls for `tools` with a model that takes none.
    """

    def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_tokens: int | None = None,
        tools: Sequence[ToolSpec] = (),
    ) -> AsyncGenerator[Delta, None]:
        """The answer in pieces; the last Delta, and only that, has `usage`. Closing the iterator stops the model."""

    async def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_tokens: int | None = None,
        tools: Sequence[ToolSpec] = (),
    ) -> Completion:
        """The answer at once."""


class ChatModels(Protocol):
    """The models of each site's steps (adapters.llm.registry)."""

    def of(self, site: str, step: StepName, question: str = "", own: StepSettings | None = None) -> ChatModel:
        """The model, with the step's parameters and within the token budget.

        Args:
            question: the request's id; tokens are counted by it.
            own: settings that go before those of the step.
        """


class ExamplePicker(Protocol):
    """Worked examples for a prompt (pipelines.query.examples)."""

    async def pick(self, kind: ExampleKind, request: Question, lang: str, question: str = "") -> Sequence[Example]:
        """Examples in the language, the one most like the question last.

        Args:
            question: a self-contained question; default: the request's, together with its history.
        """
