"""Examples: how the site's questions should be rewritten and answered. The data is that of `/v1/admin/.../examples`.

GET new ─▶ form ─▶ POST ─▶ are there similar examples? ─ no ─▶ added
                            └ yes ─▶ the form with the similar ones ─▶ POST, confirmed ─▶ added
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import ValidationError

from gateway.console.view import ConsoleRoute, Editor, OnSite, View, confirmed, form_of, wrong_fields
from gateway.edge.problems import Problem
from schemas.example import MAX_SOURCES, ExampleFilter, ExampleId, ExampleKind, LikeExamples, NewExample, WorkedExample

LISTED = 50  # examples on a page
MAX_FORM = 256 * 1024  # bytes: an example with its sources, percent-encoded
FIELDS = ("lang", "before", "answered", "question", "output", "declines")

Id = Annotated[ExampleId, Path()]

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)


@router.get("/examples")
async def list_examples(
    view: OnSite,
    kind: Literal["", "rephrase", "answer"] = "",
    lang: Annotated[str, Query(max_length=35)] = "",
    text: Annotated[str, Query(max_length=200)] = "",
    skip: Annotated[int, Query(ge=0, le=10_000)] = 0,
    done: Literal["", "added", "removed"] = "",
) -> Response:
    """Examples that match the filter, the newest first, without the first `skip`."""
    kept = await view.edge.ports.examples.of_site(view.site)
    wanted = ExampleFilter(kind=kind or None, lang=lang.strip(), text=text.strip())
    found = [one for one in kept if wanted.fits(one)][::-1]
    return view.page(
        "examples.html",
        found=found[skip : skip + LISTED],
        total=len(found),
        skip=skip,
        listed=LISTED,
        any=bool(kept),
        given={"kind": kind, "lang": lang, "text": text},
        done=done,
        spoken=dict.fromkeys([*view.edge.settings.site(view.site).languages, *(one.lang for one in kept)]),
    )


@router.get("/examples/new")
async def show_form(view: Editor, kind: ExampleKind = "rephrase") -> Response:
    return form_page(view, kind, {})


@router.post("/examples/new")
async def add_example(view: Editor, kind: ExampleKind = "rephrase") -> Response:
    """Add the example. Where there are similar ones, the editor first confirms."""
    form = await form_of(view, limit=MAX_FORM)
    try:
        new = NewExample.model_validate(_example(kind, form))
    except ValidationError as err:
        return form_page(view, kind, form, 422, wrong=wrong_fields(err))
    made = WorkedExample.of(new, view.site, view.edge.settings.site(view.site).languages[0], datetime.now(UTC))
    if form.get("sure") != "yes":
        similar = await view.edge.ports.alike.like(made)
        if similar.like:
            return form_page(view, kind, form, 409, similar=similar)
    async with view.act("examples.put", made.id):
        await view.edge.ports.examples.put(made)
    return view.to("examples", done="added")


@router.post("/examples/{example}/remove")
async def remove_example(view: Editor, example: Id) -> Response:
    await confirmed(view, "to remove the example")
    async with view.act("examples.remove", example):
        if not await view.edge.ports.examples.remove(view.site, example):
            raise Problem(404, "unknown-example", f"site {view.site} has no example {example}")
    return view.to("examples", done="removed")


def _example(kind: ExampleKind, form: Mapping[str, str]) -> dict[str, Any]:
    """The form as input of NewExample. An earlier answer without its question makes `history` None, which fails."""
    typed = {name: form.get(name, "").strip() for name in FIELDS}
    given: dict[str, Any] = {"kind": kind, "question": typed["question"], "output": typed["output"]}
    if typed["lang"]:
        given["lang"] = typed["lang"]
    if typed["before"]:
        given["history"] = [{"question": typed["before"], "answer": typed["answered"]}]
    elif typed["answered"]:
        given["history"] = None
    if kind == "answer":
        places = range(1, MAX_SOURCES + 1)
        sources = [{part: form.get(f"{part}{n}", "").strip() for part in ("title", "text")} for n in places]
        # Only empty sources at the end are dropped: dropping one between others would shift the cited numbers.
        while sources and not any(sources[-1].values()):
            sources.pop()
        given |= {"sources": sources, "declines": typed["declines"] == "yes"}
    return given


def form_page(
    view: View,
    kind: ExampleKind,
    form: Mapping[str, str],
    status: int = 200,
    *,
    wrong: list[str] | None = None,
    similar: LikeExamples | None = None,
) -> Response:
    """The form for a new example, with the typed values, problems with the fields, and similar examples."""
    languages = view.edge.settings.site(view.site).languages
    return view.page(
        "example.html",
        status,
        kind=kind,
        form={name: form.get(name, "") for name in FIELDS},
        sources=[(n, form.get(f"title{n}", ""), form.get(f"text{n}", "")) for n in range(1, MAX_SOURCES + 1)],
        wrong=wrong or [],
        similar=similar,
        languages_of_site=dict.fromkeys([*languages, *([form["lang"]] if form.get("lang") else [])]),
    )
