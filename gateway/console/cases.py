"""Cases of evaluations: a question of the log or of the playground, as a line to put into a dataset's file."""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import APIRouter, Response
from pydantic import ValidationError

from gateway.console.view import ConsoleRoute, Editor, form_of
from gateway.edge.problems import invalid
from gateway.operators.cases import file_of
from schemas.case import MAX_BEFORE, MAX_PAGES, NewCase
from schemas.outcome import OutcomeSource
from schemas.query import Became, Source

MAX_FORM = 256 * 1024  # bytes

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)


@router.post("/case")
async def make_case(view: Editor) -> Response:
    """What the form says, as a file. Of what is not to be answered, neither pages nor an answer."""
    form = {name: value.replace("\r\n", "\n") for name, value in (await form_of(view, limit=MAX_FORM)).items()}
    given = {name: form[name] for name in ("question", "lang", "expect", "answer", "note", "id") if form.get(name)}
    listed = {
        "history": [form[f"before{n}"] for n in range(1, MAX_BEFORE + 1) if form.get(f"before{n}")],
        "pages": [form[f"page{n}"] for n in range(1, MAX_PAGES + 1) if form.get(f"page{n}")],
        "tags": [tag.strip() for tag in form.get("tags", "").split(",") if tag.strip()],
    }
    if given.get("expect", "answer") != "answer":
        given.pop("answer", None)
        listed["pages"] = []
    try:
        new = NewCase.model_validate(given | listed)
    except ValidationError as err:
        raise invalid(err.errors(include_input=False, include_url=False)) from None
    return file_of(view.site, new, "yaml" if form.get("format") == "yaml" else "ndjson")


def pages_of(found: Iterable[Source | OutcomeSource]) -> list[tuple[str, str, str, bool]]:
    """Id, title, language and whether it is cited, of each page of what was found, the cited ones first."""
    pages: dict[str, tuple[str, str, str, bool]] = {}
    for each in sorted(found, key=lambda each: not each.cited):
        pages.setdefault(each.page_id, (each.page_id, each.title, each.lang, each.cited))
    return list(pages.values())[:MAX_PAGES]


def expected(became: Became) -> str:
    """What a case expects, if what came of the question is right."""
    return {"refused": "refuse", "courtesy": "courtesy"}.get(became, "answer")
