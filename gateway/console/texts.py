"""Texts: what the site says in fixed words, and which of them are its own; each is changed on a page of its own. What
is shown is what `/v1/admin/.../texts` has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from fastapi import APIRouter, Response

from gateway.console.view import ConsoleRoute, OnSite
from pipelines.query.live.site_texts import site_texts
from prompts.phrases import FALLBACK

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)


@router.get("/texts")
async def show_texts(view: OnSite) -> Response:
    """Sentences in the site's languages; one that has no words of ours is shown in English, as which it may be read."""
    assert view.caller is not None
    live = await view.edge.ports.texts.live(view.site)
    found = await asyncio.to_thread(site_texts, view.edge.settings, view.site, live)
    site = view.edge.settings.site(view.site)
    languages = site.languages
    shown = [(one, {lang: _spoken(lang, one.said) for lang in languages}) for one in found.sentences]
    return view.page(
        "texts.html",
        found=found,
        contact={lang: found.contact.get(lang) for lang in (*languages, *found.contact)},
        title=site.title,
        examples={lang: site.chat.examples.get(lang, ()) for lang in dict.fromkeys((*languages, *site.chat.examples))},
        suggested={lang: view.edge.ports.suggestions.of(view.site, lang) for lang in languages},
        may_edit=view.caller.may("edit"),
        canned=[each for each in shown if each[0].kind == "canned"],
        errors=[each for each in shown if each[0].kind == "errors"],
    )


def _spoken(lang: str, said: Mapping[str, str]) -> str:
    """The language that its words are in."""
    return next(key for key in (lang, lang.partition("-")[0], FALLBACK) if key in said)
