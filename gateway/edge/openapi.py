"""The OpenAPI document: FastAPI's own, plus the bodies that routes read themselves and one shape for errors."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from gateway.edge.problems import ProblemDocument
from pipelines.operate.audit.report import RepairOrder
from pipelines.operate.audit.runs import AuditOrder
from schemas.access_key import NewKey
from schemas.answer import AnswerEvent
from schemas.case import NewCase
from schemas.changed import ChangedOrder, IndexNowOrder
from schemas.chat_switch import ChatOrder
from schemas.completion import CompletionChunk, CompletionRequest
from schemas.conversation import FeedbackOrder, Rename
from schemas.correction import NewCorrection
from schemas.evaluation import NewRun
from schemas.evaluation_run import EvaluationOrder
from schemas.example import NewExample
from schemas.handover import HandoverOrder
from schemas.http import BulkLine, ChatRequest, VisitorTokenOrder
from schemas.letters import DeadLetterFilter, Redrive
from schemas.nlweb import NlwebQuery
from schemas.page import PageDocument
from schemas.privacy import PrivacyChange, PrivacyOrder
from schemas.rebuild import RebuildOrder
from schemas.text_version import NewText, TextChange
from schemas.trial import TrialOrder

REF = "#/components/schemas/{model}"
# Models that FastAPI does not see in any signature.
HAND_READ: tuple[type[BaseModel], ...] = (
    PageDocument,
    BulkLine,
    ChatRequest,
    ChangedOrder,
    IndexNowOrder,
    CompletionChunk,
    CompletionRequest,
    FeedbackOrder,
    HandoverOrder,
    Rename,
    DeadLetterFilter,
    Redrive,
    RepairOrder,
    RebuildOrder,
    NlwebQuery,
    NewCase,
    NewCorrection,
    NewExample,
    NewKey,
    NewText,
    TextChange,
    PrivacyOrder,
    PrivacyChange,
    EvaluationOrder,
    NewRun,
    AuditOrder,
    ChatOrder,
    TrialOrder,
    VisitorTokenOrder,
    AnswerEvent,
    ProblemDocument,
)


def _ref(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": REF.format(model=model.__name__)}


def request_body(
    model: type[BaseModel], media_type: str = "application/json", *, required: bool = True
) -> dict[str, Any]:
    """`openapi_extra` of a route that reads its body itself."""
    return {"requestBody": {"required": required, "content": {media_type: {"schema": _ref(model)}}}}


def any_json(description: str) -> dict[str, Any]:
    """`openapi_extra` of a route whose body another specification describes."""
    content = {"application/json": {"schema": {"type": "object"}}}
    return {"requestBody": {"required": True, "description": description, "content": content}}


def event_stream(description: str) -> dict[str, Any]:
    """A response that streams answer events; the `event` of AnswerEvent is what an SSE `data` line holds."""
    return {"description": description, "content": {"text/event-stream": {"schema": _ref(AnswerEvent)}}}


def install(app: FastAPI) -> None:
    """Complete the app's document; made once, on first use."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way to extend it


def _document(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    _, extra = models_json_schema([(model, "validation") for model in HAND_READ], ref_template=REF)
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for name, schema in extra["$defs"].items():
        schemas.setdefault(name, schema)
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    problem = {
        "description": "Refused or failed; see `code`.",
        "content": {"application/problem+json": {"schema": _ref(ProblemDocument)}},
    }
    for path in document["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
            operation["responses"].setdefault("default", problem)
    return document
