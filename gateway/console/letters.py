"""Dead letters: list, edit and redrive. Only an operator of all sites may, as at `/v1/admin/dlq`."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import RedirectResponse

from gateway.console.view import ConsoleRoute, Operator, View, confirmed, form_of
from gateway.edge.problems import Problem
from gateway.operators.letters import LETTER, Filter, letter_id
from pipelines.operate.dead_letters.view import BadValue
from schemas.letters import UNREADABLE, DeadLetterDetail
from schemas.topics import CHANGES

SHOWN = 100  # letters, the newest
# People write changes and can correct them. All other topics hold the output of a stage.
EDITABLE = frozenset({CHANGES.name})
MOST_EDITED = 300_000  # characters in a form; longer messages are edited with `pagewire dlq edit`
MAX_EDIT_FORM = 12 * MOST_EDITED  # bytes: up to four for a character, each percent-encoded as three
BADGES = {"open": "bad", "parked": "fair"}

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)

LetterId = Annotated[str, Depends(letter_id)]


@router.get("/dlq")
async def list_letters(
    view: Operator, wanted: Filter, all: Annotated[bool, Query(description="Also those that were handled.")] = False
) -> Response:
    """Dead letters that match a filter of `/v1/admin/dlq`."""
    found = await view.edge.ports.letters.list(wanted, SHOWN, handled=all)
    return view.page("letters.html", found=found, badges=BADGES, all=all)


@router.get(LETTER)
async def show_letter(view: Operator, id: LetterId) -> Response:
    found = await view.edge.ports.letters.show(id)
    return await _page(view, found)


@router.post(f"{LETTER}/edit")
async def edit_letter(view: Operator, id: LetterId) -> Response:
    """Send an edited message in place of this one. A message that does not fit its topic is shown with the reason."""
    form = await form_of(view, limit=MAX_EDIT_FORM)
    typed, refused = form.get("value", ""), ""
    if form.get("sure") != "yes":
        raise Problem(422, "not-confirmed", "sure: tick the box to send the message")
    try:
        value = json.dumps(json.loads(typed), ensure_ascii=False).encode()
        async with view.act("letters.edit", id):
            await view.edge.ports.letters.redrive(id, value)
        return RedirectResponse(f"/console/dlq/{id}", 303)
    except (ValueError, RecursionError) as err:
        refused = f"not JSON: {err}"
    except BadValue as err:
        refused = str(err)
    return await _page(view, await view.edge.ports.letters.show(id), 422, typed=typed, refused=refused)


async def _page(
    view: View, found: DeadLetterDetail, status: int = 200, *, typed: str = "", refused: str = ""
) -> Response:
    """`typed`: the edited message, where it was `refused`."""
    letter = found.letter
    value = (None if found.problem else json.dumps(found.value, ensure_ascii=False, indent=2)) or found.text
    can_go = letter.state == "open" and letter.code != UNREADABLE
    whole = None
    if can_go and letter.topic in EDITABLE and not typed:
        full = await view.edge.ports.letters.show(letter.id, full=True)
        whole = (None if full.problem else json.dumps(full.value, ensure_ascii=False, indent=2)) or full.text
    return view.page(
        "letter.html",
        status,
        found=found,
        letter=letter,
        value=value,
        badges=BADGES,
        can_go=can_go,
        editable=can_go and letter.topic in EDITABLE,
        edited=typed or (whole if whole is not None and len(whole) <= MOST_EDITED else None),
        refused=refused,
    )


@router.post(f"{LETTER}/redrive")
async def redrive_letter(view: Operator, id: LetterId) -> Response:
    """Send the message to the topic where it failed."""
    await confirmed(view, "to send the message again")
    async with view.act("letters.redrive", id):
        await view.edge.ports.letters.redrive(id)
    return RedirectResponse(f"/console/dlq/{id}", 303)
