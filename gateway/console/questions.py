"""Questions: what visitors asked, and one of them whole. What is shown is what `/v1/admin/.../questions` has."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, get_args
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Path, Query, Response
from pydantic import ValidationError

from gateway.console.cases import expected, pages_of
from gateway.console.view import ConsoleRoute, OnSite
from gateway.edge.problems import Problem
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
    days = {name: _day(given[name], name, wrong) for name in ("from", "to")}
    wanted = QuestionFilter()
    try:
        wanted = QuestionFilter.model_validate(
            {
                "since": _midnight(days["from"], settings.zone),
                "until": _midnight(days["to"], settings.zone, days=1),
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
            return await file_of(view.edge.ports.questions, view.site, wanted)
        found = await view.edge.ports.questions.find(view.site, wanted, SHOWN, after or None)
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
    found = await view.edge.ports.questions.get(view.site, request_id)
    if found is None:
        raise Problem(404, "unknown-question", f"the log of site {view.site} has no question {request_id}")
    outcome = found.outcome
    return view.page(
        "question.html", found=found, outcome=outcome, pages=pages_of(outcome.hits), expect=expected(outcome.became)
    )


def _day(given: str, name: str, wrong: list[str]) -> date | None:
    try:
        return date.fromisoformat(given) if given else None
    except ValueError:
        wrong.append(name)
        return None


def _midnight(day: date | None, zone: ZoneInfo, *, days: int = 0) -> datetime | None:
    """When the day begins where the site is, or the one so many days later."""
    if day is None or day.year in (1, 9999):  # the ends of the calendar have no neighbours
        return None
    return datetime.combine(day + timedelta(days=days), time(), zone).astimezone(UTC)
