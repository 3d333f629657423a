"""The console's page of one text over the gateway's fakes."""

from __future__ import annotations

import httpx
import pytest
from bs4 import BeautifulSoup

from gateway.console import text as module
from prompts.loader import written
from tests.console import EVIL, console_ports
from tests.edge import EDIT_TOWN, VIEW_TOWN
from tests.fakes.ports import FakePorts
from tests.unit.gateway.test_console import OURS, one, page_of, said, sign_in
from wiring.settings import Settings

LEAD_IN = "/console/texts/canned/lead-in.en"
ANSWER = "/console/texts/prompts/answer"
OURS_SAID = "The website says:"


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> FakePorts:
    monkeypatch.setattr(Settings, "models", lambda settings, site: ("large",))
    return console_ports()


@pytest.fixture
async def editor(stranger: httpx.AsyncClient) -> httpx.AsyncClient:
    assert (await sign_in(stranger, EDIT_TOWN)).status_code == 303
    return stranger


async def send(client: httpx.AsyncClient, path: str, form: dict[str, str]) -> httpx.Response:
    token = str(one(page_of(await client.get(LEAD_IN)), ".who input[name=token]")["value"])
    return await client.post(f"{path}?site=town", data={"token": token} | form, headers=OURS)


def form_of(page: BeautifulSoup) -> dict[str, str]:
    """As a browser would send it, with its box ticked."""
    form = one(page, "main form.filter")
    values = {str(each["name"]): str(each.get("value", "")) for each in form.select("input")}
    return values | {"text": one(form, "textarea").get_text().removeprefix("\n")}


async def change(client: httpx.AsyncClient, text: str, note: str = "") -> httpx.Response:
    """Through the form, its difference and its box."""
    form = form_of(page_of(await client.get(f"{LEAD_IN}?site=town")))
    shown = page_of(await send(client, LEAD_IN, form | {"text": text, "note": note}))
    return await send(client, LEAD_IN, form_of(shown))


async def test_what_changes_is_shown_before_it_is_changed(editor: httpx.AsyncClient, fakes: FakePorts) -> None:
    page = page_of(await editor.get(f"{LEAD_IN}?site=town"))
    assert form_of(page)["text"] == OURS_SAID
    assert said(page, ".empty") == ["This text was never changed here."]
    form = form_of(page) | {"text": f"We write {EVIL}:", "note": "shorter"}
    page = page_of(await send(editor, LEAD_IN, form | {"sure": "yes"}))  # nothing was shown yet
    assert said(page, "pre .removed") == [f"-{OURS_SAID}"]
    assert said(page, "pre .added") == [f"+We write {EVIL}:"]
    assert fakes.texts.kept == {}
    other = form_of(page) | {"text": "What was not shown:"}
    assert said(page_of(await send(editor, LEAD_IN, other)), "pre .added") == ["+What was not shown:"]
    assert fakes.texts.kept == {}
    done = await send(editor, LEAD_IN, form_of(page))
    assert (done.status_code, done.headers["location"]) == (303, f"{LEAD_IN}?site=town&done=changed")
    [kept] = fakes.texts.kept.values()
    assert (kept.text, kept.note, kept.by) == (f"We write {EVIL}:", "shorter", "editor")
    page = page_of(await editor.get(done.headers["location"]))
    assert said(page, "[role=status]") == ["✓ Saved. The text is used within ten seconds."]
    assert said(page, ".badge")[:1] == ["changed here, version 1"]
    assert [entry.action for entry in fakes.audit_log.kept] == ["texts.put"]
    assert fakes.audit_log.kept[0].via == "console"


async def test_the_second_of_two_sees_what_the_first_has_said(editor: httpx.AsyncClient, fakes: FakePorts) -> None:
    late = form_of(page_of(await editor.get(f"{LEAD_IN}?site=town"))) | {"text": "B"}
    late = form_of(page_of(await send(editor, LEAD_IN, late)))
    assert (await change(editor, "A")).status_code == 303
    page = page_of(await send(editor, LEAD_IN, late), 409)
    assert "version 1 is live" in said(page, "[role=alert]")[0]
    assert (said(page, "pre .removed"), said(page, "pre .added")) == (["-A"], ["+B"])
    assert (await send(editor, LEAD_IN, form_of(page))).status_code == 303
    assert [one.text for one in fakes.texts.kept.values()] == ["A", "B"]


async def test_what_does_not_fit_is_said_and_what_was_typed_stays(editor: httpx.AsyncClient, fakes: FakePorts) -> None:
    form = form_of(page_of(await editor.get(f"{ANSWER}?site=town")))
    assert form["text"] == written("answer").strip()
    for wrong, named in (("x: [", "cannot be read"), (" ", "text:")):
        page = page_of(await send(editor, ANSWER, form | {"text": wrong}), 422)
        assert named in said(page, "[role=alert]")[0]
        assert form_of(page)["text"] == wrong.strip()
    assert fakes.texts.kept == {}
    page_of(await editor.get("/console/texts/canned/lead-out.en?site=town"), 404)


async def test_every_version_comes_back(editor: httpx.AsyncClient, fakes: FakePorts) -> None:
    for text in ("A", "B"):
        await change(editor, text, note=f"because {text}")
    page = page_of(await editor.get(f"{LEAD_IN}?site=town"))
    rows = page.select(".rows > li")
    assert [said(row, "strong")[0] for row in rows] == ["Version 2", "Version 1"]
    assert said(rows[0], ".badge") == ["in use"]
    assert "because A" in rows[1].get_text()
    back = one(rows[1], "form")
    path = str(back["action"]).partition("?")[0]
    page_of(await send(editor, path, {"over": "2"}), 422)
    page_of(await send(editor, path, {"over": "1", "sure": "yes"}), 409)
    assert (await send(editor, path, {"over": "2", "sure": "yes"})).headers["location"].endswith("done=restored")
    page = page_of(await editor.get(f"{LEAD_IN}?site=town"))
    assert "text of version 1" in page.select(".rows > li")[0].get_text()
    assert form_of(page)["text"] == "A"
    done = await send(editor, f"{LEAD_IN}/remove", {"over": "3", "sure": "yes"})
    assert done.headers["location"].endswith("done=removed")
    assert form_of(page_of(await editor.get(f"{LEAD_IN}?site=town")))["text"] == OURS_SAID
    assert [entry.action for entry in fakes.audit_log.kept if entry.outcome == "done"] == [
        "texts.put",
        "texts.put",
        "texts.restore",
        "texts.remove",
    ]


async def test_a_long_history_comes_in_pages(editor: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LISTED", 1)
    for text in ("A", "B"):
        await change(editor, text)
    page = page_of(await editor.get(f"{LEAD_IN}?site=town"))
    assert said(page, ".rows strong") == ["Version 2"]
    [older] = page.select(".paging a")
    page = page_of(await editor.get(f"{LEAD_IN}{older['href']}"))
    assert said(page, ".rows strong") == ["Version 1"]


async def test_a_prompt_goes_into_the_playground_to_be_tried(editor: httpx.AsyncClient) -> None:
    page = page_of(await editor.get(f"{ANSWER}?site=town"))
    button = one(page, "button[name=do]")
    assert str(button["formaction"]) == "/console/playground?site=town"
    changed = form_of(page)["text"].replace("{site}", "{site}, our town", 1)
    tried = page_of(await send(editor, "/console/playground", form_of(page) | {"do": "text", "text": changed}))
    assert one(tried, "#prompt1").get_text() == ""
    assert one(tried, "#prompt2").get_text() == changed
    assert page_of(await editor.get(f"{LEAD_IN}?site=town")).select("button[name=do]") == []


async def test_whoever_may_only_look_sees_the_history(stranger: httpx.AsyncClient, fakes: FakePorts) -> None:
    await sign_in(stranger, EDIT_TOWN)
    await change(stranger, "A")
    await sign_in(stranger, VIEW_TOWN)
    page = page_of(await stranger.get(f"{LEAD_IN}?site=town"))
    assert said(page, "p.chunk")[0] == "A"
    assert page.select("main form") == []
    page_of(await send(stranger, LEAD_IN, {"text": "B", "over": "1"}), 403)
    page_of(await send(stranger, f"{LEAD_IN}/remove", {"over": "1", "sure": "yes"}), 403)
    page_of(await send(stranger, f"{LEAD_IN}/versions/1/restore", {"over": "1", "sure": "yes"}), 403)
    assert len(fakes.texts.kept) == 1


GLOSSARY = "/console/texts/glossary/terms"


async def test_a_glossary_is_tried_changed_and_goes_back_to_the_file(
    editor: httpx.AsyncClient, fakes: FakePorts
) -> None:
    page = page_of(await editor.get(f"{GLOSSARY}?site=town"))
    assert (form_of(page)["text"], said(page, "section .none")) == ("", ["There are no terms."])
    typed = form_of(page) | {
        "text": f"Lost property office: {{en: [wallet, '{EVIL}']}}",
        "asked": "Where is my wallet?",
    }
    page = page_of(await send(editor, GLOSSARY, typed | {"asked_in": "en"}))
    assert said(page, ".facts dd") == ["Where is my wallet?", "Where is my wallet? Lost property office"]
    assert fakes.texts.kept == {}
    done = await send(editor, GLOSSARY, form_of(page) | {"asked_in": "en"})
    assert done.status_code == 303, done.text
    page = page_of(await editor.get(done.headers["location"]))
    assert [said(row, "th, td") for row in page.select("tbody tr")] == [
        ["Lost property office", f"en wallet, {EVIL}", "wallet → wallet Lost property office"]
    ]
    assert page.select("main a[href='/console/playground?site=town']")
    listed = page_of(await editor.get("/console/texts?site=town"))
    assert said(listed, "tbody th") == ["Lost property office"]
    assert listed.select("main a[href='/console/texts/glossary/terms?site=town']")
    done = await send(editor, f"{GLOSSARY}/remove", {"over": "1", "sure": "yes"})
    assert said(page_of(await editor.get(done.headers["location"])), "section .none") == ["There are no terms."]


SETTINGS = "/console/texts/settings/answers"


async def test_settings_are_changed_with_what_is_in_force_beside_them(
    editor: httpx.AsyncClient, fakes: FakePorts
) -> None:
    page = page_of(await editor.get(f"{SETTINGS}?site=town"))
    assert form_of(page)["text"].startswith("strategy: plain\nflow: pagewire\nhits: ")
    assert set(said(page, ".facts dd")) == {"from pagewire.yaml"}
    page = page_of(await send(editor, SETTINGS, form_of(page) | {"text": f"hits: '{EVIL}'"}), 422)
    assert "hits: Input should be a valid integer" in said(page, "[role=alert]")[0]
    page = page_of(await send(editor, SETTINGS, form_of(page) | {"text": "hits: 4\nthink: false"}))
    assert fakes.texts.kept == {}
    done = await send(editor, SETTINGS, form_of(page))
    assert done.status_code == 303, done.text
    page = page_of(await editor.get(done.headers["location"]))
    assert [each for each in said(page, ".facts dd") if each != "from pagewire.yaml"] == ["4", "false"]
    listed = page_of(await editor.get("/console/texts?site=town&ui=de"))
    assert listed.select("main a[href='/console/texts/settings/answers?site=town']")
    assert said(listed, ".facts dd").count("aus pagewire.yaml") == 19


async def test_a_bad_glossary_is_refused_with_what_is_wrong(editor: httpx.AsyncClient, fakes: FakePorts) -> None:
    form = form_of(page_of(await editor.get(f"{GLOSSARY}?site=town")))
    circle = "Bath: {en: pool}\nPool: {en: bath}"
    page = page_of(await send(editor, GLOSSARY, form | {"text": circle, "asked": "pool?"}), 422)
    assert "name each other in a circle" in said(page, "[role=alert]")[0]
    assert form_of(page) | {"text": circle, "asked": "pool?"} == form_of(page)
    assert fakes.texts.kept == {}
