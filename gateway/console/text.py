"""Texts: the site's fixed sentences, prompts, glossary and live settings, each with its versions. The data is that of
`/v1/admin/.../texts`.

    GET ─▶ form ─▶ POST ─▶ the form with the differences ─▶ POST, confirmed ─▶ a new version

The screen of a glossary shows how each term, and a question that an editor types, is searched. The screen of settings
shows the value in force of each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import ValidationError

from gateway.console.view import (
    ConsoleRoute,
    Editor,
    OnSite,
    View,
    confirmed,
    form_of,
    mark_of,
    version_shown,
    wrong_fields,
)
from gateway.operators.texts import Kind, Name, changes
from pipelines.query.live.glossary import Glossary, read_glossary, widened
from pipelines.query.live.site_texts import site_texts
from pipelines.query.live.text_changes import BadText, Place, TextChanged
from pipelines.query.live.tuning import SiteTuning
from prompts.loader import PromptError
from prompts.phrases import FALLBACK
from schemas.query import MAX_PROMPT, Tuned
from schemas.text_version import MAX_NOTE, MAX_SENTENCE, NewText, TextChange, TextHistory, TextVersion
from text.diff import text_diff

LISTED = 20  # versions on a page
MAX_FORM = 256 * 1024  # bytes: a prompt, percent-encoded
MAX_ASKED = 300  # characters of a question typed to try the glossary
TEXT = "/texts/{kind}/{name}"
RAW = ("prompts", "glossary", "settings")  # YAML; the other kinds are sentences in a language

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)

Number = Annotated[int, Path(ge=1, le=999_999)]


@dataclass(frozen=True)
class _Shown:
    """A version, and the lines by which it differs from the text in force."""

    version: TextVersion
    text: str | None
    diff: tuple[str, ...]


@dataclass(frozen=True)
class _Term:
    """A term of the glossary. `searched`: the search text of a question that consists of `asked`, its first name."""

    term: str
    names: Mapping[str, tuple[str, ...]]
    asked: str
    searched: str


@dataclass(frozen=True)
class _Asked:
    """A typed question and its search texts: `now`, and `then`, by the glossary in the form."""

    question: str = ""
    lang: str = ""
    now: str = ""
    then: str = ""


@router.get(TEXT)
async def show_text(
    view: OnSite,
    kind: Kind,
    name: Name,
    skip: Annotated[int, Query(ge=0, le=1_000)] = 0,
    done: Literal["", "changed", "restored", "removed"] = "",
) -> Response:
    """The text in force and its versions, the newest first, without the first `skip`."""
    found = await changes(view.edge).history(Place(view.site, kind, name))
    return await _page(view, found, found.text or "", skip=skip, done=done)


@router.post(TEXT)
async def change_text(view: Editor, kind: Kind, name: Name) -> Response:
    """Save the text if the editor has confirmed the differences of this very text; else show the differences."""
    form = await form_of(view, limit=MAX_FORM)
    place, text = Place(view.site, kind, name), form.get("text", "").strip()
    shown = form.get("over", "")
    try:
        given = {"text": text, "note": form.get("note", ""), "over": int(shown) if shown.isdecimal() else None}
        new = NewText.model_validate(given)
    except ValidationError as err:
        return await _again(view, place, form, 422, wrong_fields(err))
    try:
        await changes(view.edge).check(place, text)
        if form.get("sure") != "yes" or form.get("shown") != mark_of(text):
            return await _again(view, place, form, 200)
        async with view.act("texts.put", str(place)):
            await changes(view.edge).put(place, new, view.caller.name)
    except BadText as err:
        return await _again(view, place, form, 422, [str(err)])
    except TextChanged as err:
        return await _again(view, place, form, 409, [str(err)])
    return view.to(f"texts/{kind}/{name}", done="changed")


@router.post(TEXT + "/remove")
async def remove_text(view: Editor, kind: Kind, name: Name) -> Response:
    """Put the text of the files in force again."""
    form, place = await confirmed(view, "to go back to the files"), Place(view.site, kind, name)
    async with view.act("texts.remove", str(place)):
        await changes(view.edge).remove(place, TextChange(over=version_shown(form)), view.caller.name)
    return view.to(f"texts/{kind}/{name}", done="removed")


@router.post(TEXT + "/versions/{version}/restore")
async def restore_text(view: Editor, kind: Kind, name: Name, version: Number) -> Response:
    """Put an earlier version in force again."""
    form, place = await confirmed(view, "to restore the version"), Place(view.site, kind, name)
    async with view.act("texts.restore", str(place)):
        await changes(view.edge).restore(place, version, TextChange(over=version_shown(form)), view.caller.name)
    return view.to(f"texts/{kind}/{name}", done="restored")


async def _again(
    view: View, place: Place, form: Mapping[str, str], status: int, wrong: list[str] | None = None
) -> Response:
    """The form with the typed text, and the text in force."""
    found = await changes(view.edge).history(place)
    text = form.get("text", "").strip()
    return await _page(view, found, text, status, form, wrong=wrong, compared=status != 422)


async def _page(
    view: View,
    found: TextHistory,
    text: str,
    status: int = 200,
    form: Mapping[str, str] | None = None,
    *,
    wrong: list[str] | None = None,
    compared: bool = False,
    skip: int = 0,
    done: str = "",
) -> Response:
    now = found.text or ""
    listed = found.versions[skip : skip + LISTED]

    def differences() -> tuple[list[_Shown], tuple[str, ...]]:
        said = [(one, found.filed if one.text is None else one.text) for one in listed]
        return [_Shown(one, each, text_diff(now, each or "")) for one, each in said], text_diff(now, text)

    shown, diff = await asyncio.to_thread(differences)
    glossary = _glossary(view, found)
    return view.page(
        "text.html",
        status,
        found=found,
        place=f"/console/texts/{found.kind}/{found.name}",
        text=text,
        note=(form or {}).get("note", ""),
        terms=[_term(glossary, term, names) for term, names in glossary.items()],
        asked=_asked(view, form or {}, glossary, text if compared else None),
        tuned=_tuned(view, found),
        spoken=view.edge.settings.site(view.site).languages,
        wrong=wrong or [],
        compared=compared,
        mark=mark_of(text),
        diff=diff,
        shown=shown,
        skip=skip,
        listed=LISTED,
        total=len(found.versions),
        done=done,
        most=MAX_PROMPT if found.kind in RAW else MAX_SENTENCE,
        most_of_note=MAX_NOTE,
        raw=found.kind in RAW,
        lang="" if found.kind in RAW else found.name.rpartition(".")[2],
        may_try=found.kind == "prompts" and found.name == "answer" and bool(view.edge.settings.models(view.site)),
    )


def _glossary(view: View, found: TextHistory) -> Glossary:
    """The glossary in force, empty for other kinds of text. Like workers, it ignores a version that is not valid."""
    if found.kind != "glossary":
        return {}
    with suppress(PromptError):
        if found.live and found.text is not None:
            return read_glossary(found.text)
    return view.edge.settings.site(view.site).glossary


def _tuned(view: View, found: TextHistory) -> Tuned:
    """The live settings, empty for other kinds of text. Like workers, it ignores a version that is not valid."""
    tuning = SiteTuning(view.edge.settings)
    tuning.take([one for one in found.versions if one.version == found.live])
    return tuning.of(view.site) or Tuned()


def _term(glossary: Glossary, term: str, names: Mapping[str, str | Sequence[str]]) -> _Term:
    listed = {lang: (those,) if isinstance(those, str) else tuple(those) for lang, those in names.items()}
    lang, asked = next(((lang, those[0]) for lang, those in listed.items() if those), ("", term))
    return _Term(term, listed, asked, widened(glossary, lang, asked))


def _asked(view: View, form: Mapping[str, str], glossary: Glossary, text: str | None) -> _Asked:
    """The typed question with its search texts. `text`: the glossary in the form, if it is valid."""
    question = " ".join(form.get("asked", "")[:MAX_ASKED].split())
    spoken = view.edge.settings.site(view.site).languages
    lang = form.get("asked_in", "") if form.get("asked_in") in spoken else spoken[0]
    if not question or text is None:
        return _Asked(question, lang)
    return _Asked(question, lang, widened(glossary, lang, question), widened(read_glossary(text), lang, question))


@router.get("/texts")
async def show_texts(view: OnSite) -> Response:
    """All texts in the site's languages. A sentence without words in a language is shown in English."""
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
        canned=[each for each in shown if each[0].kind == "canned"],
        errors=[each for each in shown if each[0].kind == "errors"],
    )


def _spoken(lang: str, said: Mapping[str, str]) -> str:
    """The language in which the sentence is shown."""
    return next(key for key in (lang, lang.partition("-")[0], FALLBACK) if key in said)
