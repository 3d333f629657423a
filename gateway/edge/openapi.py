"""The OpenAPI document: FastAPI's own, plus the bodies that routes read themselves and one shape for errors."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from gateway.edge.problems import ProblemDocument
from schemas.answer import AnswerEvent

REF = "#/components/schemas/{model}"
_named: dict[str, type[BaseModel]] = {}  # models that FastAPI does not see in any signature


def schema_of(model: type[BaseModel]) -> dict[str, str]:
    """The schema of a model that no signature of a route has: a reference; the document then has the model, too."""
    _named[model.__name__] = model
    return {"$ref": REF.format(model=model.__name__)}


def request_body(
    model: type[BaseModel], media_type: str = "application/json", *, required: bool = True
) -> dict[str, Any]:
    """`openapi_extra` of a route that reads its body itself."""
    return {"requestBody": {"required": required, "content": {media_type: {"schema": schema_of(model)}}}}


def any_json(description: str) -> dict[str, Any]:
    """`openapi_extra` of a route whose body another specification describes."""
    content = {"application/json": {"schema": {"type": "object"}}}
    return {"requestBody": {"required": True, "description": description, "content": content}}


def event_stream(description: str) -> dict[str, Any]:
    """A response that streams answer events; the `event` of AnswerEvent is what an SSE `data` line holds."""
    return {"description": description, "content": {"text/event-stream": {"schema": schema_of(AnswerEvent)}}}


def install(app: FastAPI) -> None:
    """Complete the app's document; made once, on first use."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way to extend it


def _document(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    problem = {
        "description": "Refused or failed; see `code`.",
        "content": {"application/problem+json": {"schema": schema_of(ProblemDocument)}},
    }
    _, extra = models_json_schema([(_named[name], "validation") for name in sorted(_named)], ref_template=REF)
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for name, schema in extra["$defs"].items():
        schemas.setdefault(name, schema)
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for path in document["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
            operation["responses"].setdefault("default", problem)
    return document
