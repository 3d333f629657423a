"""Worked examples over HTTP: how a site's questions should be rewritten, and answered."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from gateway.edge.bodies import parse, read_body
from gateway.edge.edge import Edge, MayEdit, MayView, TheEdge
from gateway.edge.openapi import request_body
from gateway.edge.problems import Problem
from schemas.example import ExampleFilter, ExampleId, ExampleKind, ExampleList, LikeExamples, NewExample, WorkedExample

MAX_EXAMPLE = 100_000  # bytes

router = APIRouter(prefix="/v1/admin/sites/{site}", tags=["operations"])

Id = Annotated[ExampleId, Path()]


@router.get("/examples")
async def list_examples(
    site: str,
    caller: MayView,
    edge: TheEdge,
    kind: Annotated[ExampleKind | None, Query(description="Default: both.")] = None,
    lang: Annotated[str, Query(max_length=35, description="`pt` fits `pt-BR` as well. Default: all.")] = "",
    text: Annotated[str, Query(max_length=200, description="Words in any part of an example, in this order.")] = "",
) -> ExampleList:
    """The examples that were added. Those that come with Pagewire are in `prompts/examples`."""
    wanted = ExampleFilter(kind=kind, lang=lang, text=text)
    return ExampleList(examples=tuple(filter(wanted.fits, await edge.ports.examples.of_site(site))))


@router.post("/examples:like", openapi_extra=request_body(NewExample))
async def like_examples(site: str, caller: MayEdit, edge: TheEdge, request: Request) -> LikeExamples:
    """The site's examples that resemble a new one. Check before you add it: of two equal questions one is used."""
    return await edge.ports.alike.like(_example(edge, site, parse(NewExample, await read_body(request, MAX_EXAMPLE))))


@router.post("/examples", status_code=201, openapi_extra=request_body(NewExample))
async def add_example(site: str, caller: MayEdit, edge: TheEdge, request: Request) -> WorkedExample:
    """Add an example, or replace the one of the same question. Similar questions use it within seconds."""
    example = _example(edge, site, parse(NewExample, await read_body(request, MAX_EXAMPLE)))
    async with edge.act(caller, "examples.put", site, example.id):
        await edge.ports.examples.put(example)
    return example


@router.delete("/examples/{example}", status_code=204)
async def remove_example(site: str, example: Id, caller: MayEdit, edge: TheEdge) -> None:
    """Remove an example."""
    async with edge.act(caller, "examples.remove", site, example):
        if not await edge.ports.examples.remove(site, example):
            raise Problem(404, "unknown-example", f"site {site} has no example {example}")


def _example(edge: Edge, site: str, new: NewExample) -> WorkedExample:
    return WorkedExample.of(new, site, edge.settings.site(site).languages[0], datetime.now(UTC))
