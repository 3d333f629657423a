"""The part of OpenAI's chat completions that we speak; a site stands where a model would."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.answer import Citation
from schemas.base import GivenLang, SiteId
from schemas.query import Source

MAX_MESSAGES = 1_000


class _Theirs(BaseModel):
    """What chat programs send besides is for models (temperature, tools, ...) and means nothing here."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Part(_Theirs):
    """A piece of a message. Only text can be asked about."""

    type: Literal["text"]
    text: str


class ChatMessage(_Theirs):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | tuple[Part, ...] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, tuple):
            return "\n".join(part.text for part in self.content)
        return self.content or ""


class StreamOptions(_Theirs):
    include_usage: bool = False


class CompletionRequest(_Theirs):
    """The last message of the user is the question, what was said before it its history."""

    model: SiteId
    messages: Annotated[tuple[ChatMessage, ...], Field(min_length=1, max_length=MAX_MESSAGES)] = Field(
        description="Of the history the newest that is read is taken; from visitors only what they asked."
    )
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: Literal[1] | None = Field(default=None, description="There is one answer.")
    lang: GivenLang | None = Field(default=None, description="Ours: language to answer in; default: as in chat.")


class CompletionUsage(BaseModel):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


class CompletionMessage(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: str
    sources: tuple[Source, ...] = Field(description="Ours: what was read, `cited` true on those the answer uses.")
    citations: tuple[Citation, ...] = Field(description="Ours: which source supports which part of `content`.")


FinishReason = Literal["stop", "length"]  # by itself, or at the model's token limit


class Choice(BaseModel):
    index: int = 0
    message: CompletionMessage
    logprobs: None = None
    finish_reason: FinishReason


class Completion(BaseModel):
    """A whole answer."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: SiteId
    choices: tuple[Choice]
    usage: CompletionUsage


class Delta(BaseModel):
    """A piece of the message; the last one carries `sources` and `citations`."""

    role: Literal["assistant"] | None = None
    content: str | None = None
    sources: tuple[Source, ...] | None = None
    citations: tuple[Citation, ...] | None = None


class ChunkChoice(BaseModel):
    index: int = 0
    delta: Delta
    logprobs: None = None
    finish_reason: FinishReason | None = None


class CompletionChunk(BaseModel):
    """An event of a streamed answer."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: SiteId
    choices: tuple[ChunkChoice, ...]
    usage: CompletionUsage | None = None


class Model(BaseModel):
    """A site."""

    id: SiteId
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "pagewire"


class ModelList(BaseModel):
    object: Literal["list"] = "list"
    data: tuple[Model, ...]


class CompletionError(BaseModel):
    message: str
    type: str
    param: str | None = None
    code: str


class CompletionErrorDocument(BaseModel):
    """How a refusal looks on these routes."""

    error: CompletionError
