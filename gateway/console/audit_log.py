"""Audit log: who changed what, when, and with which result. The data is that of `/v1/admin/audit-log`."""

from __future__ import annotations

from typing import Annotated, get_args
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Query, Response
from pydantic import TypeAdapter, ValidationError

from gateway.console.questions import days_of
from gateway.console.view import ConsoleRoute, Operator
from gateway.edge.problems import invalid
from schemas.audit_log import Action, AuditFilter, EntryId

SHOWN = 100  # entries on a page
ACTIONS = get_args(Action)
BADGES = {"done": "good", "failed": "bad"}
UTC = ZoneInfo("UTC")  # the log covers all sites, which may have different time zones
_ENTRY: TypeAdapter[str] = TypeAdapter(EntryId)

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)

# Browsers send empty fields too.
Field = Annotated[str, Query(max_length=500)]


@router.get("/audit-log")
async def list_entries(
    view: Operator,
    since: Annotated[str, Query(alias="from")] = "",
    until: Annotated[str, Query(alias="to")] = "",
    who: Field = "",
    action: Field = "",
    of: Annotated[str, Query(max_length=500, description="Site: what was done there.")] = "",
    after: Field = "",
) -> Response:
    """One page of the list. `from` and `to` are whole days in UTC."""
    given = {"from": since, "to": until, "who": who.strip(), "action": action, "of": of}
    wrong: list[str] = []
    days = days_of(since, until, UTC, wrong)
    if wrong:
        found = None
    else:
        wanted = AuditFilter(**days, who=given["who"] or None, action=action or None, site=of or None)
        try:
            last = _ENTRY.validate_python(after) if after else None
        except ValidationError:
            raise invalid([{"loc": ("after",), "type": "entry-id", "msg": "not of this list"}]) from None
        found = await view.edge.ports.audit_log.find(wanted, SHOWN, last)
    return view.page(
        "audit_log.html",
        200 if found else 422,
        found=found,
        given=given,
        wrong=wrong,
        filtered=any(given.values()),
        after=after,
        actions=dict.fromkeys([*ACTIONS, *([action] if action else [])]),
        sites=dict.fromkeys([*view.sites, *([of] if of else [])]),
        badges=BADGES,
    )
