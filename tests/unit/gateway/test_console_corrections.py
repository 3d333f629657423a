"""The console's screens of corrections over the gateway's fakes."""

from __future__ import annotations

from urllib.parse import unquote

import httpx
import pytest
from bs4 import BeautifulSoup

from schemas.text_version import TextVersion
from tests.console import CARD, EVIL, console_ports, fill
from tests.edge import EDIT_TOWN, VIEW_TOWN, edge_settings
from tests.fakes.ports import FakePorts
from tests.unit.gateway.test_console import OURS, one, page_of, said, sign_in
from tests.unit.gateway.test_gateway_corrections import save
from wiring.settings import Settings, SiteSettings

LIST = "/console/corrections?site=town"
NEW = "/console/corrections/new?site=town&kind="


@pytest.fixture
def settings(tmp_path: object) -> Settings:
    town = {"edit_link": "https://cms.example/edit?post={id}", "author_mail": "web@town.example"}
    known = edge_settings(tmp_path)  # type: ignore[arg-type]
    return known.model_copy(
        update={"sites": {**known.sites, "town": SiteSettings(**known.sites["town"].model_dump() | town)}}
    )


@pytest.fixture
def fakes() -> FakePorts:
    return console_ports()


@pytest.fixture
async def editor(stranger: httpx.AsyncClient) -> httpx.AsyncClient:
    assert (await sign_in(stranger, EDIT_TOWN)).status_code == 303
    return stranger


def form_of(page: BeautifulSoup, which: str = "main form.filter") -> dict[str, str]:
    """As a browser would send it, with what is meant ticked and the first of its choices chosen, if none is."""
    form = one(page, which)
    values: dict[str, str] = {}
    for each in form.select("input"):
        name, kind = str(each["name"]), each.get("type")
        chosen = each.has_attr("checked") or name == "sure" or kind not in ("radio", "checkbox")
        if chosen or (kind == "radio" and name not in values):
            values[name] = str(each.get("value", ""))
    values |= {str(each["name"]): each.get_text().removeprefix("\n") for each in form.select("textarea")}
    for each in form.select("select"):
        options = each.select("option[selected]") or each.select("option")
        values[str(each["name"])] = str(options[0]["value"])
    return values


async def send(
    client: httpx.AsyncClient, page: BeautifulSoup, which: str = "main form.filter", **changes: str
) -> httpx.Response:
    address = str(one(page, which)["action"])
    return await client.post(address, data=form_of(page, which) | changes, headers=OURS)


def corrections(fakes: FakePorts) -> list[TextVersion]:
    return [one for one in fakes.texts.kept.values() if one.kind == "corrections"]


async def test_a_logged_question_is_put_right_in_two_steps(editor: httpx.AsyncClient, fakes: FakePorts) -> None:
    await fill(fakes)
    await save(fakes, "library-fees", f"A card costs {EVIL}.")
    question = page_of(await editor.get(f"/console/questions/{CARD}?site=town"))
    links = [str(link["href"]) for link in question.select("a[href*='/console/corrections/new']")]
    assert [link.split("kind=")[1].split("&")[0] for link in links] == ["page", "answer", "synonym", "refusal"]
    form = page_of(await editor.get(links[1]))
    assert form_of(form)["questions"]
    shown = page_of(await send(editor, form, other="library-fees", text=f"12 {EVIL}"))
    assert not corrections(fakes)
    assert any("would get this correction" in each for each in said(shown, "section h2"))
    assert said(shown, "section .samples li")
    done = await send(editor, shown)
    assert (done.status_code, done.headers["location"]) == (303, f"{LIST}&done=kept")
    assert [kept.by for kept in corrections(fakes)] == ["editor"]
    listed = page_of(await editor.get(done.headers["location"]))
    assert said(listed, "[role=status]") == ["✓ Saved. The correction is used within ten seconds."]
    assert said(listed, ".rows .seen") == [f"12 {EVIL}"]
    assert not listed.select("main script")


async def test_what_was_not_shown_is_not_kept(editor: httpx.AsyncClient, fakes: FakePorts) -> None:
    form = page_of(await editor.get(f"{NEW}refusal"))
    shown = page_of(await send(editor, form, questions="Can I sue the town?", text="Ask a lawyer."))
    assert not said(shown, "[role=alert]")
    assert not said(page_of(await send(editor, shown, text="Ask two lawyers.")), "[role=alert]")
    unticked = said(page_of(await send(editor, shown, sure="")), "[role=alert]")
    assert unticked == ["Nothing is saved yet. Tick the line above, then save."]
    assert fakes.texts.kept == {}
    assert (await send(editor, shown)).status_code == 303


@pytest.mark.parametrize(
    ("kind", "changes", "says"),
    [
        ("refusal", {"questions": "What is it?", "text": "No."}, "names no subject"),
        ("page", {"questions": "Where is the cinema?", "other": "nowhere"}, "no page 'nowhere'"),
        ("page", {"questions": "Where is the cinema?"}, "needs page"),
        ("synonym", {"word": "cinema", "means": "cinema"}, "in a circle: cinema"),
    ],
)
async def test_what_is_refused_is_said_and_what_was_typed_stays(
    editor: httpx.AsyncClient, fakes: FakePorts, kind: str, changes: dict[str, str], says: str
) -> None:
    answer = await send(editor, page_of(await editor.get(NEW + kind)), **changes)
    page = page_of(answer, 422)
    assert says in " ".join(said(page, ".wrong"))
    assert form_of(page) | changes == form_of(page)
    assert not page.select(".wrong input[name=sure]")
    assert fakes.texts.kept == {}


async def test_a_correction_is_changed_undone_and_taken_back(editor: httpx.AsyncClient, fakes: FakePorts) -> None:
    form = page_of(await editor.get(f"{NEW}synonym"))
    await send(editor, page_of(await send(editor, form, word="wallet", means="lost property", both="")))
    [link] = [str(a["href"]) for a in page_of(await editor.get(LIST)).select(".rows .actions a")]
    page = page_of(await editor.get(link))
    assert form_of(page)["word"] == "wallet"
    await send(editor, page_of(await send(editor, page, word="purse", both="yes")))
    assert said(page_of(await editor.get(LIST)), ".rows .question") == ["purse ⇄ lost property"]
    page = page_of(await editor.get(link))
    assert (await send(editor, page, "form[action*=undo]")).status_code == 303
    assert said(page_of(await editor.get(LIST)), ".rows .question") == ["wallet → lost property"]
    assert (await send(editor, page, "form[action*=remove]")).status_code == 303
    assert page_of(await editor.get(LIST)).select(".empty")
    page = page_of(await editor.get(link))
    assert len(page.select(".rows > li")) == 4
    assert "removed" in said(page, "[role=status]")[0]


async def test_what_is_out_of_force_is_named_first(editor: httpx.AsyncClient, fakes: FakePorts) -> None:
    await save(fakes, "fees", "A card costs 12 euros.")
    form = page_of(await editor.get(f"{NEW}answer"))
    typed = {"questions": "What is a card?", "other": "fees", "text": "12 euros.", "all_languages": "yes"}
    await send(editor, page_of(await send(editor, form, **typed)))
    listed = page_of(await editor.get(LIST))
    assert said(listed, ".badge.bad") == []
    assert said(listed, ".rows .hint") == ["for visitors of all languages"]
    await save(fakes, "fees", "A card costs 15 euros.")
    page = page_of(await editor.get(LIST))
    assert said(page, ".rows:first-of-type .badge.bad") == ["its page has changed"]
    edit, mail = (
        str(a["href"]) for a in page.select(".rows:first-of-type .actions a[href^=http], a[href^=mailto]")[:2]
    )
    assert edit == "https://cms.example/edit?post=fees"
    assert mail.startswith("mailto:web@town.example?")
    assert "What is a card?" in unquote(mail)


async def test_readers_look_and_change_nothing(stranger: httpx.AsyncClient, fakes: FakePorts) -> None:
    assert (await sign_in(stranger, VIEW_TOWN)).status_code == 303
    page = page_of(await stranger.get(LIST))
    assert not page.select("a[href*='/corrections/new']")
    assert (await stranger.get(f"{NEW}page")).status_code == 403
