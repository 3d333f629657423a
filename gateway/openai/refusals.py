"""Refusals in OpenAI's shape, on every path where its clients may come."""

from __future__ import annotations

import re

from fastapi import Request, Response

from gateway.edge.problems import MAX_NAME, FieldProblem, Problem
from pipelines.query.ports import ContentFiltered
from pipelines.runtime.record import trace_id
from schemas.completion import CompletionError, CompletionErrorDocument

# OpenAI's resources, for a client whose base URL lacks /v1 as well. Other paths may be misspelt ones of ours.
_THEIRS = re.compile(
    r"(?:/v1)?/(?:chat|models|responses|completions|embeddings|moderations|audio|images|videos|files|uploads|batches"
    r"|assistants|threads|conversations|vector_stores|fine_tuning|realtime)(?:/.*)?",
    re.DOTALL,
)
SERVED = "Use chat completions: POST /v1/chat/completions. Of OpenAI's interface there is besides only GET /v1/models."
# OpenAI's clients raise by status; programs read the type.
TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
# What pydantic says of these is about our code: names of types and patterns.
UNSPOKEN = frozenset({"string-pattern-mismatch", "model-type", "too-short", "too-long"})


def is_openai(path: str) -> bool:
    """Whether who asks for the path expects OpenAI's shape."""
    return _THEIRS.fullmatch(path) is not None


def respond(request: Request, problem: Problem) -> Response:
    """The problem in the shape that clients of this path read."""
    path: str = request.scope["path"]
    if not is_openai(path):
        return problem.response()
    status, code = _theirs(problem.status, problem.code)
    text, param = problem.detail, problem.errors[0].field if problem.errors else None
    if problem.code == "invalid" and problem.errors:
        param = re.sub(r"\.(\d+)", r"[\1]", problem.errors[0].field)  # `messages[0].role`, as they write it
        text = _wrong(param, problem.errors[0])
    elif problem.code in ("not-found", "method-not-allowed"):
        text = f"Invalid URL ({request.method} {path[:MAX_NAME]}). {SERVED}"
    document = CompletionErrorDocument(error=_error(status, code, text, param))
    return Response(
        document.model_dump_json(),
        status_code=status,
        headers={**problem.headers, "X-Request-Id": trace_id.get()},  # their clients show it with the error
        media_type="application/json",
    )


def failed(code: str, text: str) -> CompletionErrorDocument:
    """An answer that broke off, as an event of its stream."""
    return CompletionErrorDocument(error=_error(*_theirs(500, code), text))


def unsupported(param: str) -> Problem:
    """For what would silently be missing in the answer."""
    text = f"Unsupported value: '{param}'. This model answers with one message of plain text."
    return refused(400, "unsupported_value", param, text)


def refused(status: int, code: str, param: str, text: str) -> Problem:
    """A refusal because of one parameter."""
    return Problem(status, code, text, errors=[FieldProblem(field=param, code=code, message=text)])


def _theirs(status: int, code: str) -> tuple[int, str]:
    """Status and code that OpenAI has for the same."""
    if code == ContentFiltered.code:
        return 400, "content_filter"  # the caller's mistake, as there: a client would ask again after a 5xx
    # Their clients take 422 for one mistake among others; for them all are 400.
    return 400 if status == 422 else status, code


def _error(status: int, code: str, text: str, param: str | None = None) -> CompletionError:
    kind = TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return CompletionError(message=text, type=kind, param=param, code=code)


def _wrong(param: str, problem: FieldProblem) -> str:
    """What is wrong with the first parameter that does not fit; one mistake has one message."""
    if problem.code == "missing":
        return f"Missing required parameter: '{param}'."
    if problem.code in UNSPOKEN:
        return f"Invalid value for '{param}'."
    return f"Invalid value for '{param}': {problem.message}."
