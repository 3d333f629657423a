"""Keys: list, create and revoke. Only an operator of all sites may, as at `/v1/admin/keys`.

GET keys ─▶ list, form ─▶ POST keys ─▶ the new key, shown once
        └▶ GET keys/ID ─▶ POST keys/ID/revoke, confirmed
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, get_args
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from gateway.console.view import ConsoleRoute, Operator, View, confirmed, form_of
from gateway.edge.problems import Problem, field_problems
from gateway.operators.keys import listed, refuse_useless
from pipelines.operate.access_keys import KeyInFile, KeyTaken, TooManyKeys
from schemas.access_key import CreatedKey, KeyId, KeyName, ListedKey, NewKey, Scope

SCOPES = get_args(Scope)
BADGES = {"good": "good", "expired": "calm", "shadowed": "fair"}
# Fields of the form. Each scope has a field `scope-…` as well, since `form_of` keeps only the last value of a name.
FIELDS = ("name", "site", "groups", "expires")
FORM_NAMES = {"expires_at": "expires"}  # field of NewKey -> field of the form

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)

Id = Annotated[KeyId, Path()]


@router.get("/keys")
async def list_keys(view: Operator, revoked: Annotated[KeyName | None, Query()] = None) -> Response:
    """`revoked`: the key that was just revoked."""
    return await _page(view, revoked=revoked)


@router.post("/keys")
async def create_key(view: Operator) -> Response:
    """The response shows the key, without a redirect: a key in an address would be logged.

    A reload creates no second key, since the name is taken.
    """
    form = dict(await form_of(view))
    scopes = [scope for scope in SCOPES if form.get(f"scope-{scope}") == "yes"]
    given = {name: form.get(name, "").strip() for name in FIELDS}
    try:
        new = NewKey.model_validate(
            {
                "name": given["name"],
                "scopes": scopes,
                "site": given["site"] or None,
                "groups": [group.strip() for group in given["groups"].split(",") if group.strip()],
                "expires_at": _end_of(given["expires"]) if given["expires"] else None,
            }
        )
        refuse_useless(new, view.edge)
    except (ValidationError, Problem) as err:
        problems = field_problems(err.errors()) if isinstance(err, ValidationError) else err.errors
        wrong = [FORM_NAMES.get(each.field, each.field).partition(".")[0] for each in problems]
        return await _page(view, 422, given=given, scopes=scopes, wrong=wrong)
    try:
        async with view.edge.act(view.caller, "keys.create", new.site, new.name, via="console"):
            made = await view.edge.ports.keys.create(new, view.caller.name)
    except (KeyTaken, TooManyKeys) as err:
        return await _page(view, 409, given=given, scopes=scopes, refused=str(err))
    return await _page(view, made=made)


@router.get("/keys/{id}")
async def show_key(view: Operator, id: Id) -> Response:
    key = await _key(view, id)
    return view.page("key.html", key=key, badges=BADGES, own=key.name == view.caller.name)


@router.post("/keys/{id}/revoke")
async def revoke_key(view: Operator, id: Id) -> Response:
    await confirmed(view, "to revoke the key")
    async with view.act("keys.revoke") as act:
        key = await _key(view, id)
        act.target = key.name
        if key.kept_in == "file":
            raise KeyInFile("this key is set in pagewire.yaml: remove it there and restart the gateways")
        await view.edge.ports.keys.revoke(
            key.name
        )  # by name: the port looks for a name first, and one may look like this id
    return RedirectResponse(f"/console/keys?revoked={quote(key.name)}", 303)


async def _key(view: View, id: str) -> ListedKey:
    """Raises: Problem: 404."""
    found = next((key for key in await listed(view.edge) if key.id == id), None)
    if found is None:
        raise Problem(404, "unknown-key", "no key has this id")
    return found


def _end_of(day: str) -> datetime | str:
    """The end of a day in UTC. For text that is no date: a value that NewKey refuses."""
    try:
        return datetime.combine(date.fromisoformat(day) + timedelta(days=1), time(), UTC)
    except (ValueError, OverflowError):
        return "no day"


async def _page(
    view: View,
    status: int = 200,
    *,
    given: dict[str, str] | None = None,
    scopes: Iterable[str] = ("view",),
    wrong: Iterable[str] = (),
    refused: str = "",
    made: CreatedKey | None = None,
    revoked: str | None = None,
) -> Response:
    return view.page(
        "keys.html",
        status,
        keys=await listed(view.edge),
        badges=BADGES,
        all_scopes=SCOPES,
        wrong=tuple(dict.fromkeys(wrong)),
        refused=refused,
        made=made,
        revoked=revoked,
        given=given or dict.fromkeys(FIELDS, ""),
        scopes=frozenset(scopes),
    )
