"""What a site says in fixed words: on its page of the console, and over HTTP."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.edge import ADMIN, VIEW_TOWN, assert_problem, bearer
from tests.unit.gateway.test_console import page_of, said, sign_in
from wiring.settings import Settings

EVIL = "<script>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "words"
    made.mkdir()
    (made / "canned.yaml").write_text(f"lead-in: {{en: 'We write {EVIL}:'}}\n", encoding="utf-8")
    return made


@pytest.fixture
def settings(settings: Settings, folder: Path) -> Settings:
    town = settings.sites["town"].model_copy(
        update={
            "prompts": folder,
            "languages": ("en", "de-AT", "fi"),
            "contact": {"en": f"Ask us. {EVIL}"},
            "glossary": {"Fundbüro": {"en": ("lost property", "wallet")}, "Bad": {}},
        }
    )
    return settings.model_copy(update={"sites": {**settings.sites, "town": town}})


async def test_words_are_shown_with_where_they_come_from(stranger: httpx.AsyncClient) -> None:
    await sign_in(stranger, VIEW_TOWN)
    page = page_of(await stranger.get("/console/texts"))
    assert page.select("header nav a[aria-current]")[0].get_text() == "Texts"
    rows = {said(row, "dt")[0]: said(row, "dd") for row in page.select(".said > div")}
    assert rows["Before a quotation"] == [
        f"en the website’s own History We write {EVIL}:",
        "de-AT default of Pagewire History Auf der Website steht:",
        f"fi in English, unless a model translates it: the website’s own History We write {EVIL}:",
    ]
    links = [str(link["href"]) for link in page.select(".said a") if "lead-in" in str(link["href"])]
    assert links == [f"/console/texts/canned/lead-in.{lang}?site=town" for lang in ("en", "de", "fi")]
    assert f"History Ask us. {EVIL}" in said(page, ".said dd")
    assert rows["Greeting"][0].startswith("en default of Pagewire ")
    # What every site should say comes first, and is flagged while it is empty.
    first = page.select("main > section")[0]
    assert said(first, "h3") == [
        "The website’s name in the chat",
        "Contact where no page answers",
        "Questions to begin with",
    ]
    assert said(first, ".empty-setting .badge") == ["still empty"] * 5  # contact in two languages, questions in three
    assert "timeout" in rows
    terms = [said(row, "th, td") for row in page.select("tbody tr")]
    assert terms == [["Fundbüro", "en lost property, wallet"], ["Bad", "the same in every language"]]
    assert "rephrase default of Pagewire" in said(page, "summary")
    assert page.select("main form[method=post]") == page.select("script") == []


async def test_over_http_they_are_the_same(client: httpx.AsyncClient, folder: Path) -> None:
    answer = await client.get("/v1/admin/sites/town/texts")
    assert answer.status_code == 200, answer.text
    [lead] = [one for one in answer.json()["sentences"] if one["name"] == "lead-in"]
    assert (lead["kind"], lead["own"], lead["said"]["en"]) == ("canned", ["en"], f"We write {EVIL}:")
    assert str(folder) not in answer.text
    assert not any(one["own"] for one in (await client.get("/v1/admin/sites/other/texts")).json()["sentences"])


async def test_a_wrong_file_is_said(client: httpx.AsyncClient, stranger: httpx.AsyncClient, folder: Path) -> None:
    (folder / "anwser.yaml").write_text("x: y\n", encoding="utf-8")
    problem = assert_problem(await client.get("/v1/admin/sites/town/texts"), 422, "bad-setting")
    assert "anwser.yaml" in problem["detail"]
    await sign_in(stranger, ADMIN)
    page = page_of(await stranger.get("/console/texts?site=town"), 422)
    assert "anwser.yaml" in said(page, ".facts dd")[0]
    assert (await stranger.get("/v1/admin/sites/town/texts", headers=bearer(VIEW_TOWN))).status_code == 422
