"""Dead letters: what could not be worked on, why, and once more. For keys of all sites, as `/v1/admin/dlq` is."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import RedirectResponse

from gateway.console.view import ConsoleRoute, Operator, confirmed
from gateway.operators.letters import LETTER, Filter, letter_id
from schemas.letters import UNREADABLE

SHOWN = 100  # letters, the newest
BADGES = {"open": "bad", "parked": "fair"}

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)

LetterId = Annotated[str, Depends(letter_id)]


@router.get("/dlq")
async def list_letters(
    view: Operator, wanted: Filter, all: Annotated[bool, Query(description="Also those that were handled.")] = False
) -> Response:
    """Filters are those of `/v1/admin/dlq`."""
    found = await view.edge.ports.letters.list(wanted, SHOWN, handled=all)
    return view.page("letters.html", found=found, badges=BADGES, all=all)


@router.get(LETTER)
async def show_letter(view: Operator, id: LetterId) -> Response:
    found = await view.edge.ports.letters.show(id)
    value = None if found.problem else json.dumps(found.value, ensure_ascii=False, indent=2)
    can_go = found.letter.state == "open" and found.letter.code != UNREADABLE
    return view.page(
        "letter.html", found=found, letter=found.letter, value=value or found.text, badges=BADGES, can_go=can_go
    )


@router.post(f"{LETTER}/redrive")
async def redrive_letter(view: Operator, id: LetterId) -> Response:
    """Once more to where it failed, if the form says that it is meant."""
    assert view.caller is not None
    await confirmed(view, "to send the message again")
    async with view.edge.act(view.caller, "letters.redrive", target=id, via="console"):
        await view.edge.ports.letters.redrive(id)
    return RedirectResponse(f"/console/dlq/{id}", 303)
