"""Page: the receipt of a page's newest change and the indexed chunks. Without an id: the list of pages."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import TypeAdapter, ValidationError

from gateway.console.view import ConsoleRoute, OnSite
from gateway.edge.bodies import GivenLabels
from gateway.edge.problems import invalid
from schemas.base import Lang, PageId
from schemas.keys import is_address, page_key
from schemas.labels import label_tokens
from text.loss import is_lacking

BADGES = {"searchable": "good", "failed": "bad", "queued": "fair", "deleted": "calm"}
LISTED = 50  # pages on a screen
_ID: TypeAdapter[str] = TypeAdapter(PageId)
_LANG: TypeAdapter[str] = TypeAdapter(Lang)

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)


@router.get("/page")
async def show_page(
    view: OnSite,
    labels: GivenLabels,
    id: Annotated[str, Query(description="Page id, or the page's address.")] = "",
    of: Annotated[str, Query(description="Language; default: the site's first.")] = "",
    after: Annotated[str, Query(description="`next` of the list before.")] = "",
) -> Response:
    """A key sees chunks of restricted pages only with one of their groups, as in a search."""
    languages = view.edge.settings.site(view.site).languages
    id = id.strip()
    given = {"id": id, "of": of or languages[0]}
    indexes = view.edge.ports.indexed
    if not id:
        listed = await indexes.pages(view.site, groups=view.caller.groups, after=after, limit=LISTED, labels=labels)
        keys = {page_key(view.site, page.lang, page.page_id): page for page in listed.pages}
        receipts = await view.edge.ports.receipts.receipts(view.site, keys)
        return view.page(
            "page.html",
            given=given,
            receipt=None,
            indexed=None,
            listed=listed,
            counted=await indexes.labels(view.site, view.caller.groups),
            chosen=label_tokens(labels),
            lacking=[keys[key] for key, one in receipts.items() if one.reading and is_lacking(one.reading.words)],
            languages_of_site=languages,
        )
    if is_address(id) and (found := await indexes.at(view.site, id, groups=view.caller.groups)):
        page = next((page for page in found if page.lang == given["of"]), found[0])
        id = page.page_id
        given = {"id": id, "of": page.lang}
    try:
        key = page_key(view.site, _LANG.validate_python(given["of"]), _ID.validate_python(id))
    except ValidationError as err:
        raise invalid(err.errors(include_input=False, include_url=False)) from None
    receipt = await view.edge.ports.receipts.receipt(view.site, given["of"], id)
    indexed = await indexes.page(view.site, key, view.caller.groups)
    if receipt and indexed.hidden and not indexed.chunks:
        # The caller may not read the page, and these fields would reveal its subject and its attachments.
        receipt = receipt.model_copy(update={"error": None, "notes": (), "labels": {}})
    return view.page(
        "page.html",
        200 if receipt or indexed.total else 404,
        given=given,
        receipt=receipt,
        badge=BADGES[receipt.state] if receipt else "",
        indexed=indexed,
        languages_of_site=dict.fromkeys([*languages, given["of"]]),
    )
