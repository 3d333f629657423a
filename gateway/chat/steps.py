"""Who sees how an answer came about: keys all of it, visitors what was looked for, where their site wants it."""

from __future__ import annotations

from typing import Literal, TypeVar, cast

from pydantic import BaseModel

from gateway.edge.auth import Caller
from schemas.answer import Answered, Step
from schemas.http import ChatResponse
from wiring.settings import Settings

Shown = Literal["all", "looks", "none"]
LOOKS = {"search", "lookup", "tool"}  # kinds of steps; what a model was told and said is an operator's business

Reply = TypeVar("Reply", bound=BaseModel)


def steps_for(caller: Caller, settings: Settings, site: str) -> Shown:
    """What this caller sees of the steps that lead to answers of a site."""
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
