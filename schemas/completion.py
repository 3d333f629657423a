"""The part of OpenAI's chat completions that we speak; a site stands where a model would."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from schemas.answer import Citation
from schemas.base import GivenLang, SiteId, optional
from schemas.labels import LabelFilter
from schemas.query import Source

MAX_MESSAGES = 1_000
PARTS = {"type": "array", "items": {"type": "object", "properties": {"type": {"type": "string"}}}}
CONTENT = {"anyOf": [{"type": "string"}, PARTS, {"type": "null"}]}


class _Theirs(BaseModel):
    """Ignores other fields that chat programs send for models (temperature, tools, ...)."""

    model_config = ConfigDict(frozen=True, extra="ignore")


def _text(content: Any) -> Any:
    """The text of a message's content. Images, audio and files are ignored."""
    if content is None:
        return ""
    if not isinstance(content, list):
        return content
    parts = [part.get("text") or part.get("refusal") for part in content if isinstance(part, dict)]
    return "\n".join(part for part in parts if isinstance(part, str))


class RequestMessage(_Theirs):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Annotated[str, BeforeValidator(_text), WithJsonSchema(CONTENT)] = Field(
        default="", description="Of an array of parts the text is read, or what an assistant refused with."
    )
    refusal: str | None = None

    @property
    def text(self) -> str:
        return self.content or self.refusal or ""


class StreamOptions(_Theirs):
    include_usage: bool | None = None


class ResponseFormat(_Theirs):
    type: str = "text"


class CompletionRequest(_Theirs):
    """The last message of the user is the question; the earlier messages are its history.

    Other fields of OpenAI's API are ignored. `null` is the default of every field.
    """

    model: str
    # A list, no tuple: at its limit pydantic stops reading, and a body may have 70,000 of them.
    messages: list[RequestMessage] = Field(
        min_length=1,
        max_length=MAX_MESSAGES,
        description="Of the history the newest that is read is taken; from visitors only what they asked.",
    )
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = Field(default=None, description="There is one answer; more are refused.")
    response_format: ResponseFormat | None = Field(default=None, description="`text`; others are refused.")
    tool_choice: Any = Field(default=None, description="`auto` or `none`: no tool is called; others are refused.")
    function_call: Any = Field(default=None, description="As `tool_choice`.")
    lang: GivenLang | None = Field(default=None, description="Ours: language to answer in; default: as in chat.")
    labels: LabelFilter | None = Field(default=None, description="Ours: which pages to answer from, as in chat.")


class CompletionUsage(BaseModel):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


class CompletionMessage(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: str
    sources: tuple[Source, ...] = Field(description="Ours: what was read, `cited` true on those the answer uses.")
    citations: tuple[Citation, ...] = Field(description="Ours: which source supports which part of `content`.")


FinishReason = Literal["stop", "length"]  # complete, or cut at the limit of tokens


class Choice(BaseModel):
    index: int = 0
    message: CompletionMessage
    logprobs: None = None
    finish_reason: FinishReason


class ChatCompletion(BaseModel):
    """A whole answer."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: SiteId
    choices: tuple[Choice]
    usage: CompletionUsage


class CompletionDelta(BaseModel):
    """A piece of the message; the last one carries `sources` and `citations`."""

    role: Literal["assistant"] | None = optional()
    content: str | None = optional()
    sources: tuple[Source, ...] | None = optional()
    citations: tuple[Citation, ...] | None = optional()


class ChunkChoice(BaseModel):
    index: int = 0
    delta: CompletionDelta
    logprobs: None = None
    finish_reason: FinishReason | None = None


class CompletionChunk(BaseModel):
    """An event of a streamed answer."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: SiteId
    choices: tuple[ChunkChoice, ...]
    usage: CompletionUsage | None = optional()


class CompletionModel(BaseModel):
    """A site."""

    id: SiteId
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "pagewire"


class ModelList(BaseModel):
    object: Literal["list"] = "list"
    data: tuple[CompletionModel, ...]


class CompletionError(BaseModel):
    message: str
    type: str
    param: str | None = None
    code: str


class CompletionErrorDocument(BaseModel):
    """An error on these routes."""

    error: CompletionError
