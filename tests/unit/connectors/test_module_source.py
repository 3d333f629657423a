"""The reading side of our modules in CMSs, over scripted answers of one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import SecretStr

from connectors.cms.fetching import Fetched, FetchRefused
from connectors.cms.frame import Listed, UnreadablePage
from connectors.cms.module import REQUESTED, ModuleSource, NotOurModule, Refusal
from connectors.cms.push import Delivery
from connectors.cms.settings import WagtailConnector
from schemas.page import PageDocument

SECRET = SecretStr("whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")
NOW = 1_700_000_000_000


class App:
    """Answers as the app does, page by page of its inventory."""

    def __init__(self, *answers: list[dict[str, Any]] | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def get(self, url: str, *, limit: int = 0, headers: Mapping[str, str] | None = None) -> Fetched:
        parts = urlsplit(url)
        name = parts.path.rpartition("/")[2]
        assert headers is not None
        delivery = Delivery.of(headers, float(headers["webhook-timestamp"]))
        delivery.verify(SECRET, f"GET {name}?{parts.query}".encode())
        assert parts.path.startswith("/blog/pagewire/")
        self.asked.append(f"{name}?{parts.query}")
        said = self.answers.pop(0)
        if isinstance(said, Exception):
            raise said
        lines = [{"now": NOW}, *said]
        return Fetched(url, 200, "".join(json.dumps(line) + "\n" for line in lines).encode(), {})


def source(app: App) -> ModuleSource:
    return ModuleSource(WagtailConnector(kind="wagtail", url="https://town.example/blog/", secret=SECRET), app)


def line(number: int) -> dict[str, Any]:
    return {"id": f"k{number}", "lang": "en", "revision": number}


async def test_the_inventory_is_read_to_its_end() -> None:
    app = App([line(1), line(2), {"next": "7"}], [line(3), {"end": True}])
    assert [one async for one in source(app).inventory()] == [Listed(f"k{n}", "en", n) for n in (1, 2, 3)]
    assert app.asked == ["inventory?after=", "inventory?after=7"]


@pytest.mark.parametrize("last", [[line(1)], [line(1), {"next": ""}], []])
async def test_an_inventory_without_an_end_is_no_inventory(last: list[dict[str, Any]]) -> None:
    with pytest.raises(NotOurModule, match="broke off"):
        _ = [one async for one in source(App(last)).inventory()]


async def test_an_inventory_that_goes_round_is_no_inventory() -> None:
    app = App(*([line(n), {"next": key}] for n, key in enumerate("ABAB")))
    with pytest.raises(NotOurModule, match="broke off"):
        _ = [one async for one in source(app).inventory()]
    assert len(app.asked) == 3


async def test_what_does_not_fit_into_one_answer_is_asked_for_again() -> None:
    wanted = [Listed(f"k{n}", "pt-BR", n) for n in range(REQUESTED + 1)]
    page = {"id": "k0", "lang": "pt-BR", "title": "Zero", "revision": 5}
    app = App([{"page": page}, {"later": {"id": "k1", "lang": "pt-BR"}}], [])
    pages = [one async for one in source(app).fetch(wanted)]
    assert pages == [PageDocument(id="k0", lang="pt-BR", title="Zero", revision=5)]
    asked = [parse_qs(one.partition("?")[2])["page"] for one in app.asked]
    assert asked[0][0] == "pt-BR:k0"
    assert (len(asked[0]), asked[1]) == (REQUESTED, [f"pt-BR:k{REQUESTED}", "pt-BR:k1"])


async def test_one_bad_page_does_not_stop_the_others() -> None:
    app = App(
        [
            {"page": {"id": "k1", "lang": "en", "colour": "blue"}},
            {"problem": {"id": "k2", "lang": "en", "reason": "TemplateSyntaxError: no"}},
            {"page": {"id": "k3", "lang": "en", "revision": 1}},
        ]
    )
    first, second, third = [one async for one in source(app).fetch([Listed(f"k{n}", "en", n) for n in (1, 2, 3)])]
    assert isinstance(first, UnreadablePage)
    assert "colour" in first.reason
    assert second == UnreadablePage(Listed("k2", "en", 0), "TemplateSyntaxError: no")
    assert isinstance(third, PageDocument)


async def test_the_clock_is_the_sites_own() -> None:
    assert await source(App([])).now() == NOW


async def test_a_refusal_says_what_to_do() -> None:
    with pytest.raises(Refusal, match="PAGEWIRE\\['secret'\\]"):
        await source(App(FetchRefused("401", 401))).now()
    with pytest.raises(Refusal, match="include"):
        await source(App(FetchRefused("404", 404))).now()


async def test_a_page_of_html_is_not_the_app() -> None:
    app = App()

    async def html(url: str, **_: object) -> Fetched:
        return Fetched(url, 200, b"<!doctype html>", {})

    app.get = html  # type: ignore[assignment]
    with pytest.raises(NotOurModule, match=r"https://town\.example/blog/pagewire/pages"):
        await source(app).now()
