"""Labels over HTTP: what people say of logged answers, how far two of them agree, and a file of what counts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from gateway.edge.auth import Caller
from gateway.edge.bodies import parse, read_body
from gateway.edge.edge import Edge, MayEdit, MayView, TheEdge
from gateway.edge.openapi import request_body
from pipelines.evaluate.labelling.export import line
from pipelines.evaluate.labelling.labelled import state
from pipelines.evaluate.labelling.labelling import Labelling, told
from pipelines.evaluate.labelling.ports import Labelled
from schemas.label import (
    JudgeAgreement,
    JudgeFigure,
    LabelAgreement,
    LabelledQuestion,
    LabelList,
    LabelQueue,
    LabelState,
    NewLabel,
)
from schemas.query import RequestId

MAX_LABEL = 100_000  # bytes: a better answer, escaped
NDJSON = "application/x-ndjson"
PSEUDONYM = 6  # hexadecimal digits of a rater's

router = APIRouter(prefix="/v1/admin/sites/{site}", tags=["operations"])

Asked = Annotated[RequestId, Path()]


@router.get(
    "/labels",
    response_model=LabelList,
    responses={200: {"content": {NDJSON: {"schema": {"type": "string"}}}}},
)
async def list_labels(
    site: str,
    caller: MayView,
    edge: TheEdge,
    wanted: Annotated[LabelState | None, Query(alias="state", description="Default: all that are labelled.")] = None,
    format: Annotated[Literal["json", "ndjson"] | None, Query(description="Goes before `Accept`.")] = None,
    accept: Annotated[str, Header()] = "",
) -> Response:
    """Labelled questions, the newest first. Another's label is not shown to a rater who has not given theirs.

    As lines of JSON with `format=ndjson`, or where `Accept` asks for it: what counts of each question, without names,
    for `pagewire judge-agreement --labels` and `pagewire datasets import labels`.
    """
    found = [each for each in await edge.ports.labelling.of_site(site) if wanted in (None, state(each))]
    if format == "ndjson" or (format is None and accept.split(";")[0].strip().lower() == NDJSON):
        return file_of(edge.ports.labelling, site, found)
    named = names(edge, caller, site)
    listed = LabelList(questions=tuple(told(each, caller.name, named) for each in found))
    return Response(listed.model_dump_json(), media_type="application/json")


@router.get("/labels/agreement")
async def show_agreement(site: str, caller: MayView, edge: TheEdge) -> LabelAgreement:
    """How far each two raters agree, in all and by language, of what both have labelled: the share of the same mark,
    and kappa of right or not, beside the base rates."""
    return await edge.ports.labelling.agreement(site, names(edge, caller, site))


@router.get("/judge-agreement")
async def show_judge_agreement(
    site: str,
    caller: MayView,
    edge: TheEdge,
    figure: Annotated[JudgeFigure, Query(description="What the judge measures.")] = "faithfulness",
    bar: Annotated[
        float | None, Query(ge=0, le=1, description="The judge says right from here on; default: of the figure.")
    ] = None,
) -> JudgeAgreement:
    """How far the judge of the site's answers (the stage `judge`) agrees with the labels that count, in all and by
    language: kappa beside the base rates, its two kinds of error, and the share of right answers by labels and judge
    together. Without a judge `judge` is null."""
    return await edge.ports.labelling.judge_agreement(site, figure, bar)


@router.get("/labels/queue")
async def show_queue(site: str, caller: MayEdit, edge: TheEdge) -> LabelQueue:
    """What you have to label of the last 90 days: what was disliked, and twenty of each outcome and language by
    chance, the same for every rater; what waits for a second label comes first."""
    return await edge.ports.labelling.queue(site, caller.name)


@router.get("/questions/{request_id}/labels")
async def show_labels(site: str, request_id: Asked, caller: MayView, edge: TheEdge) -> LabelledQuestion:
    """One question, its answer, what was asked before it, and its labels, as far as they are shown to you."""
    found = await edge.ports.labelling.get(site, request_id)
    earlier = await edge.ports.labelling.earlier(found)
    return told(found, caller.name, names(edge, caller, site), earlier)


@router.put("/questions/{request_id}/label", openapi_extra=request_body(NewLabel))
async def put_label(site: str, request_id: Asked, caller: MayEdit, edge: TheEdge, request: Request) -> LabelledQuestion:
    """Say of an answer whether it is right, under your name. Yours may be changed until another rater has labelled the
    question; then both stand."""
    new = parse(NewLabel, await read_body(request, MAX_LABEL))
    async with edge.act(caller, "labels.put", site, request_id):
        done = await edge.ports.labelling.put(site, request_id, new, caller.name)
    return told(done, caller.name, names(edge, caller, site))


@router.put("/questions/{request_id}/settlement", openapi_extra=request_body(NewLabel))
async def settle_labels(
    site: str, request_id: Asked, caller: MayEdit, edge: TheEdge, request: Request
) -> LabelledQuestion:
    """Say what counts where two raters have labelled a question. Their labels stay as they are."""
    new = parse(NewLabel, await read_body(request, MAX_LABEL))
    async with edge.act(caller, "labels.settle", site, request_id):
        done = await edge.ports.labelling.settle(site, request_id, new, caller.name)
    return told(done, caller.name, names(edge, caller, site))


def names(edge: Edge, caller: Caller, site: str) -> Callable[[str], str]:
    """What raters are called before this caller: who labels how is nobody's business but theirs and of those who may
    read the audit log."""

    def named(rater: str) -> str:
        if caller.operates or rater == caller.name:
            return rater
        return f"rater-{edge.pseudonyms.of(site, f'rater:{rater}')[:PSEUDONYM]}"

    return named


def file_of(labelling: Labelling, site: str, found: Sequence[Labelled]) -> Response:
    """What counts of each question, as a file to keep."""

    async def lines() -> AsyncGenerator[str, None]:
        for each in found:
            yield line(each, await labelling.earlier(each))

    return StreamingResponse(
        lines(),
        media_type=NDJSON,
        headers={"Content-Disposition": f'attachment; filename="labels-{site}.ndjson"'},
    )
