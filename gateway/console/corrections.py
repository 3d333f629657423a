"""Corrections: an editor changes what visitors get, from a logged question or from an empty form. The data is that of
`/v1/admin/.../corrections`.

    question ─▶ form ─▶ POST ─▶ the form with a preview: which logged questions it answers ─▶ POST, confirmed ─▶ saved
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import ValidationError

from gateway.console.evaluations import pages_of
from gateway.console.view import ConsoleRoute, Editor, OnSite, View, confirmed, form_of, mark_of, wrong_fields
from gateway.edge.problems import Problem
from gateway.operators.corrections import corrections
from pipelines.query.live.correction_changes import BadCorrection
from pipelines.query.live.text_changes import TextChanged
from schemas.correction import (
    MAX_ASKED,
    Correction,
    CorrectionHistory,
    CorrectionKind,
    CorrectionTrial,
    NewCorrection,
)
from schemas.query import RequestId
from schemas.text_version import TextChange, TextName

MAX_FORM = 256 * 1024  # bytes: twenty questions and a text, percent-encoded
LISTED = 50  # corrections on a page
NEW, ONE = "/corrections/new", "/corrections/{correction}"
FIELDS = (
    *("lang", "all_languages", "questions", "page", "other", "text", "word", "means", "both", "reach", "note", "over"),
    "asked",
)
OUT_OF_FORCE = ("page-changed", "page-gone")

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)

CorrectionId = Annotated[TextName, Path()]


@router.get("/corrections")
async def list_corrections(
    view: OnSite,
    skip: Annotated[int, Query(ge=0, le=10_000)] = 0,
    done: Literal["", "kept", "removed"] = "",
) -> Response:
    """Corrections, the newest first. Those that are out of force because of their page stand above the list."""
    found = (await corrections(view.edge).list(view.site, view.caller.groups)).corrections
    return view.page(
        "corrections.html",
        broken=[one for one in found if one.state in OUT_OF_FORCE],
        found=found[skip : skip + LISTED],
        total=len(found),
        skip=skip,
        listed=LISTED,
        done=done,
    )


@router.get(NEW)
async def show_form(
    view: Editor, kind: CorrectionKind = "page", question: Annotated[RequestId | None, Query()] = None
) -> Response:
    """An empty form, or one filled from a logged question (`question`: its request id)."""
    form: dict[str, str] = {}
    if question is not None:
        logged = await view.edge.questions(view.caller).get(view.site, question)
        if logged is None:
            raise Problem(404, "unknown-question", f"the log of site {view.site} has no question {question}")
        outcome = logged.outcome
        form = {"asked": question, "lang": _lang(view, outcome.asked_in)}
        form["questions"] = " ".join((outcome.rephrased or outcome.question or "").split())[:MAX_ASKED]
    return await _form_page(view, kind, form)


@router.post(NEW)
async def add_correction(view: Editor, kind: CorrectionKind = "page") -> Response:
    """Save the correction if the editor has confirmed its preview; else show the preview."""
    return await _change(view, kind, None)


@router.get(ONE)
async def show_correction(view: OnSite, correction: CorrectionId) -> Response:
    """The form with the newest version, and the history."""
    found = await corrections(view.edge).history(view.site, correction, view.caller.groups)
    newest = next((one.correction for one in found.versions if one.correction is not None), None)
    if newest is None:
        raise Problem(404, "unknown-correction", f"no version of correction {correction} can be read here")
    form = _fields_of(newest) | {"over": str(found.live.version if found.live else 0)}
    return await _form_page(view, newest.kind, form, found=found)


@router.post(ONE)
async def change_correction(view: Editor, correction: CorrectionId, kind: CorrectionKind = "page") -> Response:
    """Like `add_correction`."""
    return await _change(view, kind, correction)


@router.post(ONE + "/remove")
async def remove_correction(view: Editor, correction: CorrectionId) -> Response:
    await confirmed(view, "to remove the correction")
    async with view.act("corrections.remove", correction):
        await corrections(view.edge).remove(view.site, correction, TextChange(), view.caller.name)
    return view.to("corrections", done="removed")


@router.post(ONE + "/undo")
async def undo_correction(view: Editor, correction: CorrectionId) -> Response:
    """Put the version before the last change in force again."""
    await confirmed(view, "to undo the last change")
    async with view.act("corrections.rollback", correction):
        change, groups = TextChange(), view.caller.groups
        await corrections(view.edge).roll_back(view.site, correction, change, view.caller.name, groups)
    return view.to(f"corrections/{correction}")


async def _change(view: View, kind: CorrectionKind, id: str | None) -> Response:
    form = await form_of(view, limit=MAX_FORM)
    service, groups = corrections(view.edge), view.caller.groups
    try:
        new = NewCorrection.model_validate(_given(kind, form))
    except ValidationError as err:
        return await _form_page(view, kind, form, 422, wrong=wrong_fields(err), id=id)
    try:
        mark = mark_of(new.model_dump_json(exclude={"note", "over"}))
        seen = form.get("shown") == mark
        if form.get("sure") != "yes" or not seen:
            trial = await service.tried(view.site, new, groups, id)
            status = 422 if trial.refused else 200
            return await _form_page(view, kind, form, status, trial=trial, mark=mark, seen=seen, id=id)
        async with view.act("corrections.put", id or "") as act:
            made = await service.put(view.site, new, view.caller.name, groups, id)
            act.target = made.id
    except BadCorrection as err:
        return await _form_page(view, kind, form, 422, wrong=[str(err)], id=id)
    except TextChanged as err:
        return await _form_page(view, kind, form, 409, wrong=[str(err)], id=id)
    return view.to("corrections", done="kept")


def _given(kind: CorrectionKind, form: Mapping[str, str]) -> dict[str, Any]:
    """The form as input of NewCorrection: only the fields of this kind."""
    typed = {name: form.get(name, "").strip() for name in FIELDS}
    given: dict[str, Any] = {"kind": kind, "note": typed["note"], "lang": typed["lang"] or None}
    if typed["over"].isdecimal():
        given["over"] = int(typed["over"])
    if kind == "synonym":
        return given | {"word": typed["word"], "means": typed["means"], "both": typed["both"] == "yes"}
    questions = [line.strip() for line in typed["questions"].split("\n") if line.strip()]
    given |= {"questions": questions, "reach": typed["reach"] or "alike"}
    if kind != "page":
        given |= {"text": typed["text"], "all_languages": typed["all_languages"] == "yes"}
    if kind != "refusal":
        given["page"] = typed["other"] or typed["page"]
    return given


def _fields_of(correction: Correction) -> dict[str, str]:
    """The form's fields, filled from a stored correction."""
    return {
        "lang": correction.lang,
        "questions": "\n".join(correction.questions),
        "page": correction.page.page_id if correction.page else "",
        "text": correction.text,
        "word": correction.word,
        "means": correction.means,
        "both": "yes" if correction.both else "",
        "all_languages": "yes" if correction.all_languages else "",
        "reach": correction.reach,
    }


def _lang(view: View, lang: str) -> str:
    """The site's language with the same primary subtag, else the site's first language."""
    languages = view.edge.settings.site(view.site).languages
    return next((own for own in languages if own.partition("-")[0] == lang.partition("-")[0]), languages[0])


async def _form_page(
    view: View,
    kind: CorrectionKind,
    form: Mapping[str, str],
    status: int = 200,
    *,
    wrong: Sequence[str] = (),
    trial: CorrectionTrial | None = None,
    mark: str = "",
    seen: bool = False,
    id: str | None = None,
    found: CorrectionHistory | None = None,
) -> Response:
    """The form with the typed values.

    Args:
        wrong: problems with the fields.
        trial: the preview.
        mark: checksum of the previewed correction.
        seen: the editor has seen this preview before, and has not confirmed it.
        id: the stored correction that the form changes; None for a new one.
        found: its history, before the editor has typed anything.
    """
    languages = view.edge.settings.site(view.site).languages
    typed = {name: form.get(name, "") for name in FIELDS}
    newest = next((one.correction for one in found.versions if one.correction), None) if found else None
    return view.page(
        "correction.html",
        status,
        kind=kind,
        form=typed | {"reach": typed["reach"] or "alike"},
        pages=await _pages(view, typed, trial.correction if trial else newest),
        wrong=wrong,
        trial=trial,
        mark=mark,
        seen=seen,
        id=found.id if found else id,
        found=found,
        newest=newest,
        spoken=dict.fromkeys([*languages, *([typed["lang"]] if typed["lang"] else [])]),
    )


async def _pages(view: View, form: Mapping[str, str], stored: Correction | None) -> list[tuple[str, str, str, bool]]:
    """The pages to choose from: those that were found for the question, and the chosen page."""
    found: list[tuple[str, str, str, bool]] = []
    if form["asked"]:
        logged = await view.edge.questions(view.caller).get(view.site, form["asked"])
        found = pages_of(logged.outcome.hits) if logged is not None else []
    chosen, page = form["page"], stored.page if stored is not None else None
    if chosen and chosen not in [id for id, *_ in found]:
        title = page.title if page is not None and page.page_id == chosen else ""
        found.append((chosen, title, form["lang"], False))
    return found
