"""Worked examples over HTTP: how a site's questions should be rewritten, and answered."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Path, Request

from gateway.edge.bodies import parse, read_body
from gateway.edge.edge import MayEdit, MayView, TheEdge
from gateway.edge.openapi import request_body
from gateway.edge.problems import Problem
from schemas.example import ExampleList, NewExample, WorkedExample

MAX_EXAMPLE = 100_000  # bytes

router = APIRouter(prefix="/v1/admin/sites/{site}", tags=["operations"])

ExampleId = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{8,64}$")]


@router.get("/examples")
async def list_examples(site: str, caller: MayView, edge: TheEdge) -> ExampleList:
    """The examples that were added, of both kinds. Those that come with Pagewire are in `prompts/examples`."""
    return ExampleList(examples=tuple(await edge.ports.examples.of_site(site)))


@router.post("/examples", status_code=201, openapi_extra=request_body(NewExample))
async def add_example(site: str, caller: MayEdit, edge: TheEdge, request: Request) -> WorkedExample:
    """Add an example, or replace the one of the same question. Questions that are like it use it within seconds."""
    new = parse(NewExample, await read_body(request, MAX_EXAMPLE))
    example = WorkedExample.of(new, site, edge.settings.site(site).languages[0], datetime.now(UTC))
    async with edge.act(caller, "examples.put", site, example.id):
        await edge.ports.examples.put(example)
    return example


@router.delete("/examples/{example}", status_code=204)
async def remove_example(site: str, example: ExampleId, caller: MayEdit, edge: TheEdge) -> None:
    """Remove an example."""
    async with edge.act(caller, "examples.remove", site, example):
        if not await edge.ports.examples.remove(site, example):
            raise Problem(404, "unknown-example", f"site {site} has no example {example}")
