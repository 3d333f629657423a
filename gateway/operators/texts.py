"""A site's texts over HTTP: replies, glossary, prompts and settings; and its worked examples.

PUT, DELETE, restore ─▶ a new version ─▶ every worker and gateway, within ten seconds
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from gateway.edge.bodies import parse, read_body
from gateway.edge.edge import Edge, MayEdit, MayView, TheEdge
from gateway.edge.openapi import request_body
from gateway.edge.problems import Problem
from pipelines.query.live.site_texts import site_texts
from pipelines.query.live.text_changes import Place, TextChanges
from schemas.example import ExampleFilter, ExampleId, ExampleKind, ExampleList, LikeExamples, NewExample, WorkedExample
from schemas.text_version import (
    MAX_NOTE,
    EditedKind,
    NewText,
    SiteTexts,
    TextChange,
    TextHistory,
    TextName,
    TextVersion,
)

MAX_TEXT = 200_000  # bytes
TEXT = "/texts/{kind}/{name}"

router = APIRouter(prefix="/v1/admin/sites/{site}", tags=["operations"])

Kind = Annotated[
    EditedKind,
    Path(
        description="`canned` and `errors`: sentences that are said to visitors; `contact`: how to reach somebody; "
        "`glossary`: what things are called; `settings`: how questions are answered."
    ),
]
Name = Annotated[
    TextName,
    Path(
        description="Of a sentence its name and a language, `nothing-found.de`; of `contact` the language, `de`; "
        "of `glossary` always `terms`, of `settings` always `answers`."
    ),
]
Number = Annotated[int, Path(ge=1, le=999_999)]
Over = Annotated[
    int | None,
    Query(ge=0, description="The version that was live when you looked; when another is by now, nothing is changed."),
]


@router.get("/texts")
async def list_texts(site: str, caller: MayView, edge: TheEdge) -> SiteTexts:
    """Replies to visitors, the site's contact and glossary, prompts and settings, each with its
    origin.

    Files are shown as this gateway finds them now; workers read them when they start. Later changes go
    before them.
    """
    live = await edge.ports.texts.live(site)
    return await asyncio.to_thread(site_texts, edge.settings, site, live)


@router.get(TEXT)
async def get_text(site: str, kind: Kind, name: Name, caller: MayView, edge: TheEdge) -> TextHistory:
    """A reply, contact, glossary, prompt or settings: the live text, the files' text, and all versions."""
    return await changes(edge).history(Place(site, kind, name))


@router.put(TEXT, openapi_extra=request_body(NewText))
async def put_text(site: str, kind: Kind, name: Name, caller: MayEdit, edge: TheEdge, request: Request) -> TextVersion:
    """Change a text. It must meet the rules for a site's files, and is live within ten seconds.

    Returns the live version: the earlier one, if the text is the same.
    """
    place, new = Place(site, kind, name), parse(NewText, await read_body(request, MAX_TEXT))
    async with edge.act(caller, "texts.put", site, str(place)):
        return await changes(edge).put(place, new, caller.name)


@router.delete(TEXT)
async def remove_text(
    site: str,
    kind: Kind,
    name: Name,
    caller: MayEdit,
    edge: TheEdge,
    over: Over = None,
    note: Annotated[str, Query(max_length=MAX_NOTE)] = "",
) -> TextVersion:
    """Use the files' text again. The versions stay, and can be restored."""
    place = Place(site, kind, name)
    async with edge.act(caller, "texts.remove", site, str(place)):
        return await changes(edge).remove(place, TextChange(note=note, over=over), caller.name)


@router.post(TEXT + "/versions/{version}/restore", openapi_extra=request_body(TextChange))
async def restore_text(
    site: str, kind: Kind, name: Name, version: Number, caller: MayEdit, edge: TheEdge, request: Request
) -> TextVersion:
    """Make an earlier version or a candidate live. This makes a new version."""
    place, change = Place(site, kind, name), parse(TextChange, await read_body(request, MAX_TEXT) or b"{}")
    async with edge.act(caller, "texts.restore", site, str(place)):
        return await changes(edge).restore(place, version, change, caller.name)


@router.post(TEXT + "/candidates", status_code=201, openapi_extra=request_body(NewText))
async def propose_text(
    site: str, kind: Kind, name: Name, caller: MayEdit, edge: TheEdge, request: Request
) -> TextVersion:
    """Store a candidate: a version that is not live. A trial can use it (`prompt`; settings by their names and
    `filed`), and `restore` makes it live. `pagewire prompts promote` compares it with the live version first. The
    newest candidate, proposed again, is not stored twice."""
    place, new = Place(site, kind, name), parse(NewText, await read_body(request, MAX_TEXT))
    async with edge.act(caller, "texts.propose", site, str(place)):
        return await changes(edge).propose(place, new, caller.name)


@router.post(TEXT + "/rollback", openapi_extra=request_body(TextChange))
async def roll_back_text(
    site: str, kind: Kind, name: Name, caller: MayEdit, edge: TheEdge, request: Request
) -> TextVersion:
    """Use the version before the live one again. This makes a new version."""
    place, change = Place(site, kind, name), parse(TextChange, await read_body(request, MAX_TEXT) or b"{}")
    async with edge.act(caller, "texts.rollback", site, str(place)):
        return await changes(edge).roll_back(place, change, caller.name)


def changes(edge: Edge) -> TextChanges:
    """The service that changes texts, over this gateway's store."""
    return TextChanges(edge.ports.texts, edge.settings, edge.ports.now)


MAX_EXAMPLE = 100_000  # bytes


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
