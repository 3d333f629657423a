"""Results as a plain page: what a browser without scripts gets."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape

import httpx
import pytest
from fastapi import FastAPI
from pydantic import SecretStr

from gateway.edge.rates import Rates
from gateway.site.results import by_page, catalogue, opened
from pipelines.runtime.counts import SharedCounts
from pipelines.runtime.errors import Retryable
from schemas.http import SearchHit, Snippet, SnippetPart
from tests.edge import PAGE_ORIGIN, assert_problem
from tests.fakes.ports import FakePorts

RESULTS = "/v1/sites/town/results"
HOSTILE = '<script>alert("1")</script>'


def hit(title: str = "Pool", url: str = "/pool", field: str = "content", **more: object) -> SearchHit:
    parts = (SnippetPart(text="A "), SnippetPart(text="ticket", match=True), SnippetPart(text=" costs 4 euros."))
    values = {
        "page_id": "pool",
        "lang": "en",
        "title": title,
        "url": url,
        "field": field,
        "ord": 0,
        "text": "",
        "score": 0.5,
        "revision": 1,
        "snippet": Snippet(parts=parts, fragment=":~:text=A%20ticket", heading="Fees"),
    }
    return SearchHit.model_validate(values | more)


async def test_pages_with_their_passages_and_the_searched_words(stranger: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.search.found = [hit(field="title"), hit(), hit(), hit(), hit("Sauna", "https://www.sauna.example/#top")]
    answer = await stranger.get(RESULTS, params={"q": "  what does a\n ticket cost ", "lang": "de-AT"})
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "script-src" not in answer.headers["content-security-policy"]
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    html = answer.text
    assert '<html lang="de" dir="ltr">' in html
    assert "Ergebnisse für „what does a ticket cost“: 2" in html
    assert html.count("A <mark>ticket</mark> costs 4 euros.") == 3  # two of the pool's, one of the sauna's
    assert f'<h3><a href="{PAGE_ORIGIN}/pool#:~:text=A%20ticket">Pool</a></h3>' in html
    assert '<a href="https://www.sauna.example/#top:~:text=A%20ticket">Sauna</a>' in html
    assert fakes.search.searches == [("town", "what does a ticket cost", "hybrid", 30)]
    assert fakes.search.groups == [()]


async def test_a_page_that_says_what_and_of_when_it_is_has_a_line_of_it_in_the_visitors_language(
    stranger: httpx.AsyncClient, fakes: FakePorts
) -> None:
    late = datetime(2026, 3, 2, 23, 30, tzinfo=UTC)
    stamps: list[tuple[str, dict[str, object]]] = [
        ("Fair", {"page_kind": "Event", "published_at": late - timedelta(days=9), "changed_at": late}),
        ("New", {"page_kind": "NewsArticle"}),
        ("Old", {"page_kind": "AboutPage", "published_at": late}),
        ("Odd", {"page_kind": "AboutPage"}),
    ]
    fakes.search.found = [hit(title, f"/{title}", lang="he", **stamp) for title, stamp in stamps]
    html = (await stranger.get(RESULTS, params={"q": "fair", "lang": "de"})).text
    said = re.findall(r'<p class="about"><span lang="de" dir="ltr">(.*?)</span></p>', html)
    assert said == ["Veranstaltung · Stand: 2. März 2026", "Nachricht", "Stand: 2. März 2026"]


async def test_without_a_query_there_is_the_form_alone_and_nothing_is_searched(
    stranger: httpx.AsyncClient, fakes: FakePorts
) -> None:
    answer = await stranger.get(RESULTS, headers={"Accept-Language": "de"})
    assert '<form role="search">' in answer.text
    assert "Diese Website durchsuchen" in answer.text
    assert "<h2>" not in answer.text
    assert fakes.search.searches == []


async def test_nothing_that_a_stranger_writes_becomes_html(stranger: httpx.AsyncClient, fakes: FakePorts) -> None:
    snippet = Snippet(parts=(SnippetPart(text=HOSTILE, match=True), SnippetPart(text=HOSTILE)), heading=HOSTILE)
    fakes.search.found = [hit(HOSTILE, 'https://x.example/"onclick="1', snippet=snippet)]
    html = (await stranger.get(RESULTS, params={"q": HOSTILE})).text
    assert "<script" not in html
    assert '"onclick="' not in html
    assert unescape(html).count(HOSTILE) >= 6
    assert (await stranger.get(f"{RESULTS}?q=%ED%A0%80")).status_code == 200  # half of a surrogate pair


@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("/pool", "https://t.example/pool"),
        ("https://u.example/a", "https://u.example/a"),
        ("javascript:alert(1)", ""),
        ("data:text/html,x", ""),
        ("https://[", ""),
        ("", ""),
    ],
)
def test_where_a_link_leads(url: str, where: str) -> None:
    assert opened(url, "https://t.example") == where


def test_without_an_origin_of_the_site_addresses_are_the_gateways() -> None:
    assert opened("/site/en/pool", "", ":~:text=x") == "/site/en/pool#:~:text=x"


def test_a_page_that_was_found_by_its_title_is_shown_without_a_passage() -> None:
    [found] = by_page([hit("", field="title")], "")
    assert (found.title, found.url, found.passages) == ("pool", "/pool", ())


async def test_too_many_and_a_search_that_fails_are_told_in_words(
    app: FastAPI, stranger: httpx.AsyncClient, fakes: FakePorts
) -> None:
    fakes.search.error = Retryable("away")
    answer = await stranger.get(RESULTS, params={"q": "pool"})
    assert (answer.status_code, answer.headers["retry-after"] != "") == (503, True)
    assert catalogue()["en"]["failed"] in unescape(answer.text)
    rates = Rates("1/day", SharedCounts(86_400, lambda: 0.0), SecretStr("salt"))
    app.state.edge = replace(app.state.edge, rates=rates)
    tried = [await stranger.get(RESULTS, params={"q": "pool"}) for _ in range(6)]
    assert [each.status_code for each in tried] == [503] * 5 + [429]
    assert catalogue()["en"]["busy"] in tried[-1].text
    assert (await stranger.get(RESULTS)).status_code == 200  # the form costs nothing
    assert_problem(await stranger.get(RESULTS, params={"q": "x" * 4_001}), 422, "invalid")
    assert_problem(await stranger.get("/v1/sites/nowhere/results"), 404, "unknown-site")


def test_all_languages_say_the_same() -> None:
    english = catalogue()["en"]
    for lang, said in catalogue().items():
        assert said.keys() == english.keys(), lang
        for name, text in said.items():
            wanted = [part for part in ("{count}", "{query}", "{date}") if part in english[name]]
            assert all(part in text for part in wanted), (lang, name)
