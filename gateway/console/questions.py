"""Questions: what visitors asked, and one of them whole. What is shown is what `/v1/admin/.../questions` has."""

from __future__ import annotations

from typing import Annotated, get_args

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from gateway.console.cases import expected, pages_of
from gateway.console.days import day_of, midnight
from gateway.console.view import Administrator, ConsoleRoute, OnSite, confirmed
from gateway.edge.problems import Problem
from gateway.operators.erasing import erased
from gateway.operators.questions import file_of
from schemas.outcome import Became, QuestionFilter
from schemas.query import RequestId

SHOWN = 50  # questions on a page
OUTCOMES = get_args(Became)
FEEDBACK = ("any", "up", "down")

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)

# Forms send fields that are empty.
Field = Annotated[str, Query(max_length=500)]


@router.get("/questions")
async def list_questions(
    view: OnSite,
    since: Annotated[str, Query(alias="from")] = "",
    until: Annotated[str, Query(alias="to")] = "",
    lang: Field = "",
    outcome: Field = "",
    feedback: Field = "",
    page: Field = "",
    text: Field = "",
    after: Field = "",
    format: Field = "",
) -> Response:
    """The list, a page at a time; `format=csv`: all of it."""
    assert view.caller is not None
    questions = view.edge.questions(view.caller)
    settings = view.edge.settings.site(view.site)
    given = {
        "from": since,
        "to": until,
        "lang": lang,
        "outcome": outcome,
        "feedback": feedback,
        "page": page,
        "text": text,
    }
    wrong: list[str] = []
    days = {name: day_of(given[name], name, wrong) for name in ("from", "to")}
    wanted = QuestionFilter()
    try:
        wanted = QuestionFilter.model_validate(
            {
                "since": midnight(days["from"], settings.zone),
                "until": midnight(days["to"], settings.zone, days=1),
                "lang": lang or None,
                "became": outcome or None,
                "feedback": feedback or None,
                "page": page or None,
                "text": text or None,
            }
        )
    except ValidationError as err:
        names = {"became": "outcome"}
        wrong += [names.get(str(each["loc"][0]), str(each["loc"][0])) for each in err.errors()]
    found = None
    if not wrong:
        if format == "csv":
            return await file_of(questions, view.site, wanted, bom=True)
        found = await questions.find(view.site, wanted, SHOWN, after or None)
    return view.page(
        "questions.html",
        200 if found else 422,
        found=found,
        given=given,
        wrong=wrong,
        filtered=any(given.values()),
        after=after,
        outcomes=OUTCOMES,
        ratings=FEEDBACK,
        spoken=dict.fromkeys([*settings.languages, *([lang] if lang else [])]),
    )


@router.get("/questions/{request_id}")
async def show_question(view: OnSite, request_id: Annotated[RequestId, Path()]) -> Response:
    assert view.caller is not None
    found = await view.edge.questions(view.caller).get(view.site, request_id)
    if found is None:
        raise Problem(404, "unknown-question", f"the log of site {view.site} has no question {request_id}")
    outcome = found.outcome
    return view.page(
        "question.html", found=found, outcome=outcome, pages=pages_of(outcome.hits), expect=expected(outcome.became)
    )


@router.post("/questions/{request_id}/erase")
async def erase_conversation(view: Administrator, request_id: Annotated[RequestId, Path()]) -> Response:
    """What was said in the question's conversation, if the form says that it is meant."""
    assert view.caller is not None
    await confirmed(view, "to erase the conversation")
    await erased(view.edge, view.caller, view.site, request_id, "console")
    return RedirectResponse(f"/console/questions/{request_id}?site={view.site}", 303)
