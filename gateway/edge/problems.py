"""Every refusal in one shape: RFC 9457 problem documents with a stable `code`, and never the input's content.

The few sentences that the edge itself says to a visitor stand with all others in `prompts/`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from pipelines.runtime.errors import PagewireError, Retryable, UnknownSite
from pipelines.runtime.record import trace_id
from prompts.loader import PromptError
from prompts.phrases import Phrases
from schemas.base import message as field_message

RETRY_AFTER = 2  # seconds; the local Kafka and Elasticsearch restart in 3-4 s
MAX_ERRORS = 20  # a document with more mistakes than this is not the page its author meant
MAX_NAME = 100  # characters of a field's name that are repeated

# Codes a port may refuse with, where the status is not the general 422.
STATUS_OF_CODE = {
    "no-source": 409,
    "too-large": 413,
    "bad-position": 400,
    "bad-cursor": 400,
    "rebuild-running": 409,
    "rebuild-refused": 409,
    "not-verified": 409,
    "generation-live": 409,
    "no-such-generation": 404,
    "unknown-letter": 404,
    "letter-handled": 409,
    "unknown-question": 404,
    "unknown-run": 404,
    "key-taken": 409,
    "key-in-file": 409,
    "chat-off-in-file": 409,
    "too-many-keys": 409,
    "unknown-key": 404,
    "text-changed": 409,
    "no-earlier-text": 409,
    "would-delete": 409,
    "too-many-texts": 409,
    "unknown-text": 404,
    "unknown-correction": 404,
    "audit-running": 409,
    "evaluation-running": 409,
    "log-lost": 409,
    "no-such-index": 404,
    "unknown-conversation": 404,
    "unknown-handover": 404,
    "handover-waiting": 409,
    "unknown-answer": 404,
    "answer-under-way": 409,
    "no-turn": 409,
}
log = structlog.get_logger(__name__)
Trouble = Literal["timeout", "unavailable", "internal", "chat-off"]


class FieldProblem(BaseModel):
    """What is wrong with one field."""

    field: str = Field(description="Dotted path, for example `attachments.0.url`.")
    code: str
    message: str


class ProblemDocument(BaseModel):
    """`application/problem+json` (RFC 9457)."""

    type: str = Field(description="`urn:pagewire:problem:` + code")
    title: str
    status: int
    code: str = Field(description="Stable, for programs.")
    detail: str = Field(description="For people.")
    instance: str = Field(description="Trace id of the request, to find it in the logs.")
    errors: list[FieldProblem] | None = None


class Problem(Exception):
    """A refusal at the edge; `extra` becomes further members of the document."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        errors: Iterable[FieldProblem] = (),
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = dict(headers or {})
        self.errors = tuple(errors)
        self.extra = dict(extra or {})

    def response(self) -> Response:
        """The document as a response; encodable whatever the input was (surrogates become `?`)."""
        body: dict[str, Any] = {
            "type": f"urn:pagewire:problem:{self.code}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
            "instance": trace_id.get(),
            **self.extra,
        }
        if self.errors:
            body["errors"] = [e.model_dump() for e in self.errors]
        return Response(
            json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"),
            status_code=self.status,
            headers=self.headers,
            media_type="application/problem+json",
        )


REFUSALS = (Problem, PagewireError, RequestValidationError)


def field_problems(errors: Iterable[Any]) -> list[FieldProblem]:
    """Pydantic's errors without the input they complain about."""
    problems = []
    for error in errors:
        name = ".".join(str(part) for part in error["loc"]) or "body"
        problems.append(
            FieldProblem.model_construct(
                field=name[:MAX_NAME], code=error["type"].replace("_", "-"), message=field_message(error)
            )
        )
        if len(problems) == MAX_ERRORS:
            break
    return problems


def invalid(errors: Iterable[Any]) -> Problem:
    """422 that names the fields."""
    problems = field_problems(errors)
    detail = "; ".join(f"{p.field}: {p.message}" for p in problems[:3])
    return Problem(422, "invalid", detail, errors=problems)


def problem_of(error: PagewireError) -> Problem:
    """How a port's own error looks from outside."""
    if isinstance(error, UnknownSite):
        return Problem(404, error.code, "no such site")  # its message lists the others
    if isinstance(error, Retryable):
        return Problem(503, error.code, str(error), headers={"Retry-After": str(RETRY_AFTER)})
    return Problem(STATUS_OF_CODE.get(error.code, 422), error.code, str(error))


def problem_from(error: Exception) -> Problem:
    """What a route raises, as the problem that it is. `error`: one of REFUSALS, or an HTTPException."""
    match error:
        case Problem():
            return error
        case PagewireError():
            return problem_of(error)
        case RequestValidationError():
            # The first part of each place is "path" or "query": noise to a reader.
            return invalid({**each, "loc": each["loc"][1:]} for each in error.errors())
        case HTTPException():
            code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
            return Problem(error.status_code, code, error.detail, headers=error.headers)
    raise error


def install(app: FastAPI, respond: Callable[[Request, Problem], Response]) -> None:
    """Answer every error of `app` with what `respond` makes of its problem."""

    async def refused(request: Request, error: Exception) -> Response:
        return respond(request, problem_from(error))

    for kind in (*REFUSALS, HTTPException):
        app.add_exception_handler(kind, refused)


@cache
def _phrases(folder: Path | None) -> Phrases:
    """Ours, where what the folder holds cannot be read: its workers do not even start."""
    try:
        return Phrases.load(folder)
    except PromptError as err:
        log.warning("a site's own sentences cannot be read; ours are said", error=str(err))
        return Phrases.load()


def message(trouble: Trouble, lang: str, folder: Path | None = None) -> str:
    """In `lang`, or in English where we do not speak it. `folder`: of a site that says some things its own way."""
    return _phrases(folder).error("error" if trouble == "internal" else trouble, lang)
