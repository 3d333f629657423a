"""Corrections over HTTP: an editor's corrections of a site's answers.

POST, PUT, DELETE, restore ─▶ a new version ─▶ every worker, within ten seconds
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request, Response

from gateway.edge.bodies import parse, read_body
from gateway.edge.edge import Edge, MayEdit, MayView, TheEdge
from gateway.edge.openapi import request_body
from gateway.operators.evaluations import ACCEPTED, MEDIA_TYPES
from gateway.operators.texts import Number, Over, changes
from pipelines.evaluate.dataset import corrected_cases, dumped
from pipelines.query.live.correction_changes import CorrectionChanges
from schemas.correction import CorrectionHistory, CorrectionList, CorrectionTrial, ListedCorrection, NewCorrection
from schemas.evaluation import CaseFormat
from schemas.text_version import MAX_NOTE, TextChange, TextName

MAX_CORRECTION = 200_000  # bytes: twenty questions and a text, escaped
ONE = "/corrections/{correction}"

router = APIRouter(prefix="/v1/admin/sites/{site}", tags=["operations"])

CorrectionId = Annotated[TextName, Path(description="As the list has it.")]

CASES = {MEDIA_TYPES["ndjson"]: "string", MEDIA_TYPES["yaml"]: "object"}


@router.get("/corrections")
async def list_corrections(site: str, caller: MayView, edge: TheEdge) -> CorrectionList:
    """Editors' corrections, the newest first: in force or not, and how often each was used.

    Pages that the key may not read are not named or quoted.
    """
    return await corrections(edge).list(site, caller.groups)


@router.post("/corrections:try", openapi_extra=request_body(NewCorrection))
async def try_correction(site: str, caller: MayEdit, edge: TheEdge, request: Request) -> CorrectionTrial:
    """What a correction would do: the logged questions that it would answer, and corrections that answer them already.

    Nothing is kept. With `refused` it would not be kept at all.
    """
    new = parse(NewCorrection, await read_body(request, MAX_CORRECTION))
    return await corrections(edge).tried(site, new, caller.groups)


@router.post("/corrections", status_code=201, openapi_extra=request_body(NewCorrection))
async def add_correction(site: str, caller: MayEdit, edge: TheEdge, request: Request) -> ListedCorrection:
    """Put something right, from now on and within ten seconds. It takes the place of a correction of the same question.

    A correction that would answer a large part of the log is refused, and so are synonyms in a circle.
    """
    new = parse(NewCorrection, await read_body(request, MAX_CORRECTION))
    async with edge.act(caller, "corrections.put", site) as act:
        made = await corrections(edge).put(site, new, caller.name, caller.groups)
        act.target = made.id
        return made


@router.get(ONE)
async def get_correction(site: str, correction: CorrectionId, caller: MayView, edge: TheEdge) -> CorrectionHistory:
    """A correction, and its versions."""
    return await corrections(edge).history(site, correction, caller.groups)


@router.put(ONE, openapi_extra=request_body(NewCorrection))
async def put_correction(
    site: str, correction: CorrectionId, caller: MayEdit, edge: TheEdge, request: Request
) -> ListedCorrection:
    """Change it. An answer that expired because its page changed is in force again."""
    new = parse(NewCorrection, await read_body(request, MAX_CORRECTION))
    async with edge.act(caller, "corrections.put", site, correction):
        return await corrections(edge).put(site, new, caller.name, caller.groups, correction)


@router.delete(ONE, status_code=204)
async def remove_correction(
    site: str,
    correction: CorrectionId,
    caller: MayEdit,
    edge: TheEdge,
    over: Over = None,
    note: Annotated[str, Query(max_length=MAX_NOTE)] = "",
) -> None:
    """Take it back. Its versions stay, and may be restored."""
    async with edge.act(caller, "corrections.remove", site, correction):
        await corrections(edge).remove(site, correction, TextChange(note=note, over=over), caller.name)


@router.post(ONE + "/versions/{version}/restore", openapi_extra=request_body(TextChange))
async def restore_correction(
    site: str, correction: CorrectionId, version: Number, caller: MayEdit, edge: TheEdge, request: Request
) -> CorrectionHistory:
    """Use an earlier version again. This makes a new version."""
    change = parse(TextChange, await read_body(request, MAX_CORRECTION) or b"{}")
    async with edge.act(caller, "corrections.restore", site, correction):
        return await corrections(edge).restore(site, correction, version, change, caller.name, caller.groups)


@router.post(ONE + "/rollback", openapi_extra=request_body(TextChange))
async def roll_back_correction(
    site: str, correction: CorrectionId, caller: MayEdit, edge: TheEdge, request: Request
) -> CorrectionHistory:
    """Use the version before the current one again, perhaps none. This makes a new version."""
    change = parse(TextChange, await read_body(request, MAX_CORRECTION) or b"{}")
    async with edge.act(caller, "corrections.rollback", site, correction):
        return await corrections(edge).roll_back(site, correction, change, caller.name, caller.groups)


@router.get(
    "/cases",
    response_class=Response,
    responses={200: {"content": {kind: {"schema": {"type": shape}} for kind, shape in CASES.items()}}},
)
async def list_cases(
    site: str,
    caller: MayView,
    edge: TheEdge,
    format: Annotated[CaseFormat | None, Query(description="Goes before `Accept`; default: `ndjson`.")] = None,
    accept: Annotated[str, Header()] = "",
) -> Response:
    """The cases of evaluations that the site's corrections make, as a dataset's file. `pagewire eval check` asks them,
    too."""
    found = await corrections(edge).list(site, caller.groups)
    kind = format or ACCEPTED.get(accept.split(";")[0].strip().lower(), "ndjson")
    return Response(dumped(corrected_cases(found), f".{kind}"), media_type=MEDIA_TYPES[kind])


def corrections(edge: Edge) -> CorrectionChanges:
    """The service that changes corrections, over this gateway's stores."""
    ports = edge.ports
    return CorrectionChanges(
        changes(edge),
        ports.texts,
        edge.settings,
        ports.indexed,
        ports.receipts.receipts,
        ports.questions.corrections_used,
        ports.correction_trials.tried,
    )
