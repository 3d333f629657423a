"""Privacy: how long a site keeps conversations and logged questions, and with which words. The data is that of
`/v1/admin/.../privacy`.

    GET ─▶ form ─▶ POST ─▶ the form with a preview: deletions and their time ─▶ POST, confirmed ─▶ a new version
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from fastapi import APIRouter, Path, Response
from pydantic import ValidationError

from gateway.console.view import Administrator, ConsoleRoute, View, confirmed, form_of, version_shown, wrong_fields
from gateway.operators.privacy import privacy
from pipelines.query.live.text_changes import TextChanged
from schemas.privacy import MAX_DAYS, PrivacyChange, PrivacyOrder, PrivacyRules, QuestionLogging
from schemas.text_version import MAX_NOTE

LISTED = 20  # versions on a page
FIELDS = tuple(PrivacyRules.model_fields)

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)

Number = Annotated[int, Path(ge=1, le=999_999)]


@router.get("/privacy")
async def show_privacy(view: Administrator, done: Literal["", "changed", "restored", "removed"] = "") -> Response:
    return await _page(view, done=done)


@router.post("/privacy")
async def change_privacy(view: Administrator) -> Response:
    """Save the rules if the administrator has confirmed the preview of these very rules; else show the preview."""
    form = await form_of(view)
    shown = form.get("over", "")
    try:
        given: dict[str, Any] = {name: form.get(name) for name in FIELDS}
        given |= {"note": form.get("note", ""), "over": int(shown) if shown.isdecimal() else None, "sure": True}
        order = PrivacyOrder.model_validate(given)
        rules = PrivacyRules.model_validate({name: form.get(name) for name in FIELDS})
    except ValidationError as err:
        return await _page(view, 422, form, wrong=wrong_fields(err))
    if form.get("sure") != "yes" or form.get("shown") != rules.model_dump_json():
        return await _page(view, 200, form, rules=rules)
    try:
        async with view.act("privacy.put"):
            await privacy(view.edge).put(view.site, order, view.caller.name)
    except TextChanged as err:
        return await _page(view, 409, form, rules=rules, wrong=[str(err)])
    return view.to("privacy", done="changed")


@router.post("/privacy/remove")
async def remove_privacy(view: Administrator) -> Response:
    """Put the rules of pagewire.yaml in force again."""
    form = await confirmed(view, "to go back to pagewire.yaml")
    async with view.act("privacy.remove"):
        await privacy(view.edge).remove(view.site, _change(form), view.caller.name)
    return view.to("privacy", done="removed")


@router.post("/privacy/versions/{version}/restore")
async def restore_privacy(view: Administrator, version: Number) -> Response:
    """Put the rules of an earlier version in force again."""
    form = await confirmed(view, "to restore the version")
    async with view.act("privacy.restore", str(version)):
        await privacy(view.edge).restore(view.site, version, _change(form), view.caller.name)
    return view.to("privacy", done="restored")


def _change(form: Mapping[str, str]) -> PrivacyChange:
    """A change of the shown version; the form has listed what it deletes. Raises: Problem: 422."""
    return PrivacyChange(over=version_shown(form), sure=True)


async def _page(
    view: View,
    status: int = 200,
    form: Mapping[str, str] | None = None,
    *,
    rules: PrivacyRules | None = None,
    wrong: list[str] | None = None,
    done: str = "",
) -> Response:
    """`rules`: the valid rules of the form, for the preview."""
    changes = privacy(view.edge)
    state = await changes.state(view.site)
    shown = [(one, changes.loss(state, one.rules or state.filed)) for one in state.versions[:LISTED]]
    typed = {name: form.get(name, "") for name in FIELDS} if form else state.rules.model_dump(mode="json")
    return view.page(
        "privacy.html",
        status,
        state=state,
        typed=typed,
        note=(form or {}).get("note", ""),
        wrong=wrong or [],
        rules=rules,
        same=rules == state.rules,
        mark=rules.model_dump_json() if rules else "",
        loss=changes.loss(state, rules) if rules else None,
        loss_of_files=changes.loss(state, state.filed),
        shown=shown,
        done=done,
        logging=get_args(QuestionLogging),
        most=MAX_DAYS,
        most_of_note=MAX_NOTE,
    )
