"""Labels: raters say whether answers of the log are right. What is shown is what `/v1/admin/.../labels` has.

list ─▶ next ─▶ a question, its answer, the form ─▶ POST ─▶ kept ─▶ next ...
                 └ two have labelled it: both labels, and where they differ the form that settles it
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from gateway.console.cases import pages_of
from gateway.console.view import ConsoleRoute, Editor, OnSite, View, form_of
from gateway.edge.problems import field_problems
from gateway.operators.labels import file_of, names
from pipelines.evaluate.labelling.labelled import labelable, state
from pipelines.evaluate.labelling.labelling import told
from pipelines.evaluate.labelling.queue import RATERS
from schemas.case import MAX_PAGES
from schemas.label import AnswerLabel, LabelQueue, LabelState, Mark, NewLabel
from schemas.query import RequestId

LISTED = 50  # questions at once
MAX_FORM = 256 * 1024  # bytes: a better answer, percent-encoded
MARKS = get_args(Mark)
STATES = get_args(LabelState)
BADGES = {"agreed": "good", "settled": "calm", "disagreed": "bad"}
MARK_BADGES = {"right": "good", "partly": "fair", "wrong": "bad", "unanswerable": "calm"}

Done = Literal["", "kept", "all", "settled"]
Asked = Annotated[RequestId, Path()]

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)


@router.get("/labels")
async def list_labels(
    view: OnSite,
    wanted: Annotated[LabelState | Literal[""], Query(alias="state")] = "",
    skip: Annotated[int, Query(ge=0, le=10_000)] = 0,
    done: Done = "",
    format: Literal["", "ndjson"] = "",
) -> Response:
    """What is left for whoever looks, how far raters agree, and what is labelled, the newest first."""
    assert view.caller is not None
    labelling, caller = view.edge.ports.labelling, view.caller
    every = await labelling.of_site(view.site)
    if format:
        return file_of(labelling, view.site, every)
    fitting = [each for each in every if wanted in ("", state(each))]
    named = names(view.edge, caller, view.site)
    return view.page(
        "labels.html",
        queue=await labelling.queue(view.site, caller.name) if caller.may("edit") else None,
        pairs=(await labelling.agreement(view.site, named)).pairs,
        counts=Counter(state(each) for each in every),
        states=STATES,
        found=[told(each, caller.name, named) for each in fitting[skip : skip + LISTED]],
        total=len(fitting),
        skip=skip,
        listed=LISTED,
        state=wanted,
        done=done,
        badges=BADGES,
        mark_badges=MARK_BADGES,
    )


@router.get("/labels/next")
async def next_question(
    view: Editor,
    after: Annotated[RequestId | Literal[""], Query(description="Behind this one, which was skipped or is done.")] = "",
    done: Done = "",
) -> Response:
    """On to the next question that is left for whoever looks."""
    assert view.caller is not None
    queue = await view.edge.ports.labelling.queue(view.site, view.caller.name)
    found = _behind(queue, after)
    if found is None:
        return _to(view, "", done="all")
    return _to(view, f"/{found}", done=done)


@router.get("/labels/{request_id}")
async def show_question(view: OnSite, request_id: Asked, done: Done = "") -> Response:
    return await _page(view, request_id, done=done)


@router.post("/labels/{request_id}")
async def put_label(view: Editor, request_id: Asked) -> Response:
    """Keep what the form says, and go on to the next."""
    assert view.caller is not None
    form, new = await _said(view)
    if not isinstance(new, NewLabel):
        return await _page(view, request_id, 422, form=form, wrong=new)
    async with view.edge.act(view.caller, "labels.put", view.site, request_id, via="console"):
        await view.edge.ports.labelling.put(view.site, request_id, new, view.caller.name)
    return _to(view, "/next", after=request_id, done="kept")


@router.post("/labels/{request_id}/settle")
async def settle(view: Editor, request_id: Asked) -> Response:
    """Keep what the form says as what counts."""
    assert view.caller is not None
    form, new = await _said(view)
    if not isinstance(new, NewLabel):
        return await _page(view, request_id, 422, form=form, wrong=new)
    async with view.edge.act(view.caller, "labels.settle", view.site, request_id, via="console"):
        await view.edge.ports.labelling.settle(view.site, request_id, new, view.caller.name)
    return _to(view, "", state="disagreed", done="settled")


async def _said(view: View) -> tuple[dict[str, Any], NewLabel | list[str]]:
    """The form as it is shown again, and as a label, or what is wrong with it. Of what cannot be answered, neither
    pages nor an answer."""
    form = {name: value.replace("\r\n", "\n") for name, value in (await form_of(view, limit=MAX_FORM)).items()}
    pages = [form[f"page{n}"].strip() for n in range(MAX_PAGES + 1) if form.get(f"page{n}", "").strip()]
    shown: dict[str, Any] = {name: form.get(name, "") for name in ("mark", "why", "better")} | {"pages": pages}
    given = shown | ({"better": "", "pages": []} if shown["mark"] == "unanswerable" else {})
    try:
        return shown, NewLabel.model_validate(given)
    except ValidationError as err:
        return shown, [f"{each.field}: {each.message}" for each in field_problems(err.errors(include_input=False))]


async def _page(
    view: View,
    request_id: str,
    status: int = 200,
    *,
    done: Done = "",
    form: Mapping[str, Any] | None = None,
    wrong: list[str] | None = None,
) -> Response:
    assert view.caller is not None
    caller, labelling = view.caller, view.edge.ports.labelling
    found = await labelling.get(view.site, request_id)
    own, both = found.of(caller.name), len(found.labels) >= RATERS
    may = caller.may("edit") and labelable(found)
    listed = pages_of(found.question.outcome.hits) if labelable(found) else []
    before = form if form is not None else _form(found.settled or own if both else own)
    return view.page(
        "label.html",
        status,
        found=told(found, caller.name, names(view.edge, caller, view.site), await labelling.earlier(found)),
        outcome=found.question.outcome,
        own=own,
        both=both,
        may=may,
        queue=await labelling.queue(view.site, caller.name) if may and not both else None,
        pages=listed,
        other=[page for page in before["pages"] if page not in {each[0] for each in listed}],
        form=before,
        wrong=wrong or [],
        done=done,
        marks=MARKS,
        badges=BADGES,
        mark_badges=MARK_BADGES,
    )


def _form(label: AnswerLabel | None) -> dict[str, Any]:
    if label is None:
        return {"mark": "", "why": "", "better": "", "pages": ()}
    return label.model_dump(include={"mark", "why", "better", "pages"})


def _behind(queue: LabelQueue, after: str) -> str | None:
    """The next of the queue behind one that is skipped; what is done is not in it any more."""
    ids = list(queue.next)
    if after in ids:
        place = ids.index(after)
        ids = ids[place + 1 :] + ids[:place]  # the one that was skipped comes back with the next round
    return ids[0] if ids else None


def _to(view: View, path: str, **more: str) -> Response:
    said = {"site": view.site} | {name: value for name, value in more.items() if value}
    return RedirectResponse(f"/console/labels{path}?{urlencode(said)}", 303)
