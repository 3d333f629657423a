"""Indexes: the generations of a site's index. An administrator builds, promotes, rolls back or discards one. Data and
actions are those of `/v1/admin/.../rebuilds`.

An audit compares the live index with the change log; a repair mends what differs:

GET indexes/audit ─▶ the running audit, or the last ─▶ POST indexes/audit ─▶ the page reloads until the audit ends
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, get_args

from fastapi import APIRouter, Path, Query, Response
from pydantic import ValidationError

from gateway.console.view import Administrator, ConsoleRoute, View, confirmed, form_of
from gateway.operators.rebuilds import last_run, start_audit
from gateway.rebuild_runs import RebuildRefused
from pipelines.operate.audit.repair import AuditOrder
from schemas.keys import parse_page_key
from schemas.rebuild import Generation, RebuildBy, RebuildOrder, RebuildSource

AGAIN = 5  # seconds until the page reloads while a rebuild runs
BADGES = {"live": "good", "verified": "calm", "building": "fair"}

Done = Literal["", "begun", "stopped", "promoted", "rolled-back", "discarded", "going-on"]
# Fields of the form that starts a rebuild; an empty field keeps the configured value.
FIELDS = ("from", "embedder", "chunk_size", "chunk_mode", "by")
TICKS = ("promote", "fresh")
NO_ORDER: Mapping[str, str] = {"from": "changes"}
Number = Annotated[int, Path(ge=1)]

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)
AUDIT_AGAIN = 3  # seconds until the page reloads while an audit runs
AUDIT_BADGES = {"running": "fair", "broken-off": "bad", "failed": "bad", "done": "calm"}


@router.get("/indexes")
async def list_generations(
    view: Administrator, done: Annotated[Done, Query(description="What the form before did.")] = ""
) -> Response:
    return await _page(view, done=done)


async def _page(
    view: View,
    status: int = 200,
    *,
    done: Done = "",
    given: Mapping[str, str] = NO_ORDER,
    wrong: Iterable[str] = (),
    refused: str = "",
) -> Response:
    """Generations, the newest first. While a process works on them, the page offers to stop it and reloads itself."""
    found = await view.edge.ports.rebuilds.list(view.site)
    shown = found.generations[::-1]
    return view.page(
        "indexes.html",
        status,
        again=AGAIN if found.running else 0,
        generations=shown,
        running=found.running,
        may={one.generation: [] if found.running else _may(one, shown) for one in shown},
        badges=BADGES,
        done=done,
        sources=get_args(RebuildSource),
        makers=get_args(RebuildBy),
        given=given,
        wrong=tuple(dict.fromkeys(wrong)),
        refused=refused,
    )


@router.post("/indexes/rebuild")
async def start_rebuild(view: Administrator) -> Response:
    """Start a rebuild, or resume one that was stopped. A refusal shows the form with the typed values."""
    form = await confirmed(view, "to start a rebuild")
    given = {name: form.get(name, "").strip() for name in FIELDS} | {name: form.get(name, "") for name in TICKS}
    wanted: dict[str, Any] = {name: given[name] for name in FIELDS if given[name]}
    try:
        order = RebuildOrder.model_validate(wanted | {name: given[name] == "yes" for name in TICKS})
    except ValidationError as err:
        return await _page(view, 422, given=given, wrong=[str(each["loc"][0]) for each in err.errors()])
    try:
        async with view.act("rebuild.start") as act:
            act.target = (await view.edge.ports.rebuilds.start(view.site, order)).index
    except RebuildRefused as err:
        return await _page(view, 409, given=given, refused=str(err))
    return view.to("indexes", done="begun")


@router.post("/indexes/stop")
async def stop_rebuild(view: Administrator) -> Response:
    await confirmed(view, "to stop the rebuild")
    async with view.act("rebuild.stop"):
        await view.edge.ports.rebuilds.stop(view.site, view.caller.name)
    return view.to("indexes", done="stopped")


@router.post("/indexes/rollback")
async def roll_back(view: Administrator) -> Response:
    await confirmed(view, "to make the earlier index live again")
    async with view.act("rebuild.rollback"):
        live = await view.edge.ports.rebuilds.rollback(view.site)
    return view.to("indexes", done="rolled-back" if live else "going-on")


@router.post("/indexes/{generation}/promote")
async def promote(view: Administrator, generation: Number) -> Response:
    await confirmed(view, "to make this index live")
    async with view.act("rebuild.promote", str(generation)):
        live = await view.edge.ports.rebuilds.promote(view.site, generation)
    return view.to("indexes", done="promoted" if live else "going-on")


@router.post("/indexes/{generation}/discard")
async def discard(view: Administrator, generation: Number) -> Response:
    await confirmed(view, "to delete this index")
    async with view.act("rebuild.discard", str(generation)):
        await view.edge.ports.rebuilds.discard(view.site, generation)
    return view.to("indexes", done="discarded")


def _may(one: Generation, all_: tuple[Generation, ...]) -> list[str]:
    """The actions that a generation allows. `all_`: all generations, the newest first."""
    if one.state == "live":
        return []
    newest = next((other for other in all_ if other.state == "previous"), None)
    first = {"verified": "promote"}.get(one.state, "rollback" if one is newest else "")
    return [*([first] if first else []), "discard"]


@router.get("/indexes/audit")
async def show_audit(
    view: Administrator, done: Annotated[Literal["", "begun"], Query(description="What the form before did.")] = ""
) -> Response:
    last = await last_run(view.edge, view.site)
    run = last.run
    now = None if run is None else run.left or run.found
    return view.page(
        "audit.html",
        again=AUDIT_AGAIN if last.state == "running" else 0,
        run=run,
        state=last.state,
        found=now,
        addresses={each.page_key: parse_page_key(each.page_key) for each in (now.findings if now else ())},
        badges=AUDIT_BADGES,
        done=done,
    )


@router.post("/indexes/audit")
async def audit_index(view: Administrator) -> Response:
    await form_of(view)  # an audit changes nothing, so it needs no confirmation
    await start_audit(view.edge, view.caller, view.site, AuditOrder(), "console")
    return view.to("indexes/audit", done="begun")


@router.post("/indexes/repair")
async def start_repair(view: Administrator) -> Response:
    form = await confirmed(view, "to repair the index")
    order = AuditOrder(repair=True, force=form.get("force") == "yes")
    await start_audit(view.edge, view.caller, view.site, order, "console")
    return view.to("indexes/audit", done="begun")
