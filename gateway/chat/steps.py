"""Which steps of an answer a caller sees: keys all, visitors the searches, if their site shows them."""

from __future__ import annotations

from typing import Literal, TypeVar, cast

from pydantic import BaseModel

from gateway.edge.auth import Caller
from schemas.answer import Answered, Step
from schemas.http import ChatResponse
from wiring.settings import Settings

Shown = Literal["all", "looks", "none"]
LOOKS = {"search", "lookup", "tool"}  # kinds of steps; prompts and replies of models are for operators

Reply = TypeVar("Reply", bound=BaseModel)


def steps_for(caller: Caller, settings: Settings, site: str) -> Shown:
    """The kinds of steps that this caller sees on a site."""
    if caller.visitor is None:
        return "all"
    return "looks" if settings.site(site).chat.show_steps else "none"


def with_steps(reply: Reply, shown: Shown) -> tuple[Reply, set[str]]:
    """The reply with the steps that may be seen, and the fields to leave out when it is written."""
    if shown == "all" or not isinstance(reply, Answered | ChatResponse):
        return reply, set()
    if shown == "none":
        return reply, {"trace"}
    looks = tuple(Step(kind=step.kind, asked=step.asked) for step in reply.trace if step.kind in LOOKS)
    return cast(Reply, reply.model_copy(update={"trace": looks})), set()
