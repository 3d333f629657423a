"""Coverage over HTTP and in the console: whose pages are in it, what of it is shown, and what is said meanwhile."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from bs4 import BeautifulSoup, Tag
from fastapi import FastAPI

from gateway.fakes import FakeModels, FakePorts
from pipelines.query.log.ports import SitePage
from schemas.access_key import NewKey
from schemas.coverage import CoverageReport
from schemas.outcome import Hit, Outcome, OutcomeEvent
from tests.asking import NOON
from tests.console import EVIL
from tests.edge import ADMIN, EDIT_TOWN, VIEW_TOWN, assert_problem, bearer

COVERAGE = "/v1/admin/sites/town/coverage"
SCREEN = "/console/coverage"
STAFF = NewKey(name="staff-editor", scopes=("view",), site="town", groups=("staff",))
OURS = {"Origin": "http://gateway.test"}


async def asked(fakes: FakePorts, n: int, text: str, became: Any = "refused", cites: str = "") -> None:
    found = [
        Hit(page_id=id, lang="en", title=id, url=f"/{id}", field="content", ord=0, score=1, cited=True)
        for id in cites.split()
    ]
    said = Outcome(
        asked_at=NOON - timedelta(days=1),
        asked_in="en",
        lang="en",
        question=text,
        became=became,
        hits=tuple(found),
    )
    await fakes.outcomes.put(OutcomeEvent(site="town", request_id=f"request-{n:04}", conversation="c1", event=said))


async def page(fakes: FakePorts, id: str, title: str, groups: tuple[str, ...] | None = None, url: str = "") -> None:
    vectors = await FakeModels().model.passages([title])
    fakes.page_vectors.put("town", SitePage(id, "en", title, url or f"https://town.example/{id}"), vectors, groups)


@pytest.fixture
def fakes() -> FakePorts:
    return FakePorts(now=lambda: NOON)


@pytest.fixture
async def town(fakes: FakePorts) -> FakePorts:
    await page(fakes, "library", "Opening hours of the library")
    await page(fakes, "chess", f"Chess club {EVIL}", url="javascript:alert(1)")
    await page(fakes, "board", "Minutes of the board", groups=("staff",))
    await asked(fakes, 1, "Where is the ice rink?")
    await asked(fakes, 2, "where is the ICE rink")
    await asked(fakes, 3, "When does the library open?", "answered", "library")
    return fakes


def kinds(made: dict[str, Any]) -> list[tuple[str, str]]:
    return [(topic["kind"], topic["label"]) for topic in made["topics"]]


async def test_topics_come_by_kind(client: httpx.AsyncClient, town: FakePorts) -> None:
    made = (await client.get(COVERAGE)).json()
    assert CoverageReport.model_validate(made).since == NOON - timedelta(days=30)
    assert kinds(made) == [
        ("uncovered", "Where is the ice rink?"),
        ("unasked", f"Chess club {EVIL}"),
        ("covered", "Opening hours of the library"),
    ]
    assert (made["pages"], made["hidden"], made["asked"], made["uncovered"]["asked"]) == (2, 1, 3, 2)
    assert "board" not in str(made)
    only = (await client.get(COVERAGE, params={"kind": "unasked", "days": "0.5"})).json()
    assert ({kind for kind, _ in kinds(only)}, only["asked"], only["unasked"]["pages"]) == ({"unasked"}, 0, 2)


async def test_a_key_with_a_group_has_its_pages_in_it(
    app: FastAPI, stranger: httpx.AsyncClient, town: FakePorts
) -> None:
    keys = app.state.edge.ports.keys
    made = await keys.create(STAFF, "admin")
    seen = (await stranger.get(COVERAGE, headers=bearer(made.key))).json()
    assert (seen["pages"], seen["hidden"]) == (3, 0)
    assert ("unasked", "Minutes of the board") in kinds(seen)
    other = (await stranger.get(COVERAGE, headers=bearer(EDIT_TOWN))).json()
    assert (other["pages"], other["hidden"]) == (2, 1)


async def test_a_report_that_is_not_ready_is_asked_for_again(
    client: httpx.AsyncClient, town: FakePorts, app: FastAPI
) -> None:
    async with _busy(app):
        answer = await client.get(COVERAGE, params={"wait": "0"})
    assert (answer.status_code, answer.json()["site"]) == (202, "town")


def _busy(app: FastAPI) -> Any:
    """Somebody else makes a report."""
    return app.state.edge.ports.coverage._kept._one_at_a_time


@pytest.mark.parametrize("query", ["?days=0", "?days=400", "?limit=0", "?to=yesterday", "?wait=61", "?kind=unknown"])
async def test_a_wrong_question_is_refused(client: httpx.AsyncClient, query: str) -> None:
    assert_problem(await client.get(f"{COVERAGE}{query}"), 422, "invalid")


async def signed_in(stranger: httpx.AsyncClient, key: str) -> httpx.AsyncClient:
    assert (await stranger.post("/console/sign-in", data={"key": key}, headers=OURS)).status_code == 303
    return stranger


def page_of(answer: httpx.Response, status: int = 200) -> BeautifulSoup:
    assert answer.status_code == status, answer.text
    return BeautifulSoup(answer.text, "lxml")


def said(page: BeautifulSoup | Tag, selector: str) -> list[str]:
    return [" ".join(found.get_text(" ").split()) for found in page.select(selector)]


async def test_the_screen_shows_one_kind_and_counts_all(stranger: httpx.AsyncClient, town: FakePorts) -> None:
    editor = await signed_in(stranger, VIEW_TOWN)
    shown = page_of(await editor.get(SCREEN))
    assert said(shown, ".rows h2") == ["Where is the ice rink?"]
    assert {"asked: 2", "answered: 0 %", "refused: 100 %"} <= set(said(shown, ".rows .meta span"))
    assert said(shown, "tbody tr") == [
        "asked, not covered 1 2 2 0",
        "covered, not asked 1 0 0 1",
        "covered and asked 1 1 0 1",
    ]
    bars = shown.select("svg[role=img]")
    assert bars[0]["aria-label"] == ("Questions: 2 asked and not covered, 0 covered and not asked, 1 covered and asked")
    assert [(rect["class"], rect["width"]) for rect in bars[1].select("rect")] == [
        (["unasked"], "350.0"),
        (["covered"], "350.0"),
    ]
    assert "Pages for groups that your key does not have: 1." in shown.get_text()
    assert "Minutes of the board" not in shown.get_text()
    assert "/console/questions/request-000" in str(shown.select(".rows details")[0])


async def test_what_is_not_asked_names_its_pages(stranger: httpx.AsyncClient, town: FakePorts) -> None:
    editor = await signed_in(stranger, VIEW_TOWN)
    shown = page_of(await editor.get(f"{SCREEN}?show=unasked"))
    [link] = shown.select(".rows a.cites")
    assert parse_qs(urlsplit(str(link["href"])).query)["id"] == ["chess"]
    assert EVIL not in str(shown)
    assert "javascript:" not in str(shown)
    covered = page_of(await editor.get(f"{SCREEN}?show=covered"))
    assert "cited: 1" in covered.get_text()
    assert [str(link["href"]) for link in covered.select(".rows a[rel=noreferrer]")] == ["https://town.example/library"]


async def test_a_screen_of_nothing_says_so(stranger: httpx.AsyncClient, fakes: FakePorts) -> None:
    operator = await signed_in(stranger, ADMIN)
    shown = page_of(await operator.get(SCREEN))
    assert said(shown, ".empty") == ["Every topic that was asked about in this period is covered."]
    assert shown.select("svg") == []
    page_of(await operator.get(f"{SCREEN}?show=everything"), 422)


async def test_what_is_still_being_made_is_looked_at_again(
    app: FastAPI, stranger: httpx.AsyncClient, town: FakePorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.console.coverage.WAIT", 0.0)
    operator = await signed_in(stranger, ADMIN)
    async with _busy(app):
        answer = await operator.get(SCREEN)
    assert answer.headers["refresh"] == "5"
    assert "are being grouped since" in page_of(answer, 202).get_text()
