"""Questions: the log of visitors' questions, gaps in the pages, and visitors' messages to a person (handovers).

The data is that of `/v1/admin/.../questions`, `gaps` and `handovers`.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any, Literal, get_args
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Path, Query, Response
from pydantic import ValidationError

from gateway.console.evaluations import expected, pages_of
from gateway.console.view import Administrator, ConsoleRoute, OnSite, confirmed
from gateway.edge.problems import Problem
from gateway.operators.handovers import redeliver
from gateway.operators.questions import erase_words, file_of
from pipelines.query.log.gap_reports import UnderWay
from pipelines.query.log.gaps import most_asked, most_missed
from schemas.handover import Reference
from schemas.outcome import Became, QuestionFilter
from schemas.query import RequestId

SHOWN = 50  # questions on a page
OUTCOMES = get_args(Became)
FEEDBACK = ("any", "up", "down")

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)

# Browsers send empty fields too.
Field = Annotated[str, Query(max_length=500)]
DAYS = (7, 30, 90)
GROUPS = 50
GAPS_WAIT = 10.0  # seconds to wait for a report; then the page says that it is being made ...
GAPS_AGAIN = 5  # ... and reloads after so many seconds
HANDOVERS_SHOWN = 50
BADGES = {"waiting": "fair", "delivered": "good", "failed": "bad"}


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
    """One page of the list; with `format=csv` the whole list."""
    questions = view.edge.questions(view.caller)
    settings = view.edge.settings.site(view.site)
    asked = {"lang": lang, "became": outcome, "feedback": feedback, "page": page, "text": text}
    given = {"from": since, "to": until, "outcome": outcome} | asked
    wrong: list[str] = []
    days = days_of(since, until, settings.zone, wrong)
    wanted = QuestionFilter()
    try:
        wanted = QuestionFilter.model_validate(days | {name: said or None for name, said in asked.items()})
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
    found = await view.edge.questions(view.caller).get(view.site, request_id)
    if found is None:
        raise Problem(404, "unknown-question", f"the log of site {view.site} has no question {request_id}")
    outcome = found.outcome
    return view.page(
        "question.html", found=found, outcome=outcome, pages=pages_of(outcome.hits), expect=expected(outcome.became)
    )


@router.post("/questions/{request_id}/erase")
async def erase_conversation(view: Administrator, request_id: Annotated[RequestId, Path()]) -> Response:
    """Erase the words of the question's whole conversation."""
    await confirmed(view, "to erase the conversation")
    await erase_words(view.edge, view.caller, view.site, request_id, "console")
    return view.to(f"questions/{request_id}")


def days_of(since: str, until: str, zone: ZoneInfo, wrong: list[str]) -> dict[str, datetime | None]:
    """`since` and `until` of a filter: from the beginning of one day to the end of the other, None for an empty field.

    The name of a field without a date is appended to `wrong`.
    """
    found: dict[str, datetime | None] = {}
    for into, name, day, more in (("since", "from", since, 0), ("until", "to", until, 1)):
        try:
            found[into] = _midnight(date.fromisoformat(day) if day else None, zone, days=more)
        except ValueError:
            wrong.append(name)
    return found


def _midnight(day: date | None, zone: ZoneInfo, *, days: int = 0) -> datetime | None:
    """The time, in UTC, at which this day (or the one `days` later) begins in a time zone."""
    if day is None or day.year in (1, 9999):  # at the ends of the calendar, a day more or a zone overflows
        return None
    return datetime.combine(day + timedelta(days=days), time(), zone).astimezone(UTC)


@router.get("/gaps")
async def list_gaps(
    view: OnSite,
    days: Annotated[int, Query(ge=1, le=366)] = 30,
    show: Literal["missed", "asked"] = "missed",
) -> Response:
    """`show=missed`: groups of questions without a good answer; `show=asked`: all groups, the most frequent first."""
    made = await view.edge.ports.gaps.report(view.site, days, groups=view.caller.groups, wait=GAPS_WAIT)
    shows = {which: view.say("show-" + which) for which in ("missed", "asked")}
    given: dict[str, Any] = {"days": days, "show": show, "shows": shows, "periods": sorted({*DAYS, days})}
    if isinstance(made, UnderWay):
        return view.page("gaps.html", 202, again=GAPS_AGAIN, made=None, began=made.began_at, **given)
    shown = most_asked(made, GROUPS) if show == "asked" else most_missed(made, GROUPS)
    return view.page("gaps.html", made=shown, **given)


@router.get("/handovers")
async def list_handovers(view: Administrator, after: Annotated[str, Query(max_length=100)] = "") -> Response:
    """Messages, the newest first."""
    found, more = await view.edge.ports.handovers.of_site(view.site, None, HANDOVERS_SHOWN, after or None)
    set_up = view.edge.settings.site(view.site).hands_over
    return view.page("handovers.html", found=found, next=more, after=after, badges=BADGES, set_up=set_up)


@router.post("/handovers/{reference}/redeliver")
async def redeliver_handover(view: Administrator, reference: Annotated[Reference, Path()]) -> Response:
    await confirmed(view, "to deliver the message again")
    await redeliver(view.edge, view.caller, view.site, reference, "console")
    return view.to("handovers")
