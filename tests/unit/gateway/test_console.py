"""The console over the gateway's fakes: who may see what, and what the pages say."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from bs4 import BeautifulSoup, Tag
from fastapi import FastAPI
from pydantic import SecretStr
from structlog.testing import capture_logs

import gateway.console
from gateway.console.evaluations import bars
from gateway.console.view import CSP, inside, web_address
from gateway.console.words import LANGUAGES, catalogue
from gateway.edge.auth import LIFE, Keys, Sessions
from gateway.edge.rates import Rates
from gateway.edge.tokens import VisitorTokens
from pipelines.runtime.counts import SharedCounts
from pipelines.runtime.errors import Retryable
from schemas.ingest import Reading, ReceiptState, WordCounts
from schemas.keys import page_key
from schemas.outcome import Verdict, VerdictEvent
from tests.console import CARD, DOG, ERASED, EVIL, FAILED, HELLO, OUTCOMES, SAUNA, STATUS, console_ports, fill
from tests.edge import ADMIN, CHAT_ANYWHERE, EVERYTHING_TOWN, INGEST_TOWN
from tests.fakes.ports import FakeLetters, FakePorts
from tests.making import NOON, letter
from wiring.settings import Settings

URL = "http://gateway.test"
OURS = {"Origin": URL}


@pytest.fixture
def fakes() -> FakePorts:
    return console_ports()


def page_of(answer: httpx.Response, status: int = 200) -> BeautifulSoup:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"] == CSP
    assert answer.headers["cache-control"] == "no-store"
    return BeautifulSoup(answer.text, "lxml")


def one(page: BeautifulSoup | Tag, selector: str) -> Tag:
    [found] = page.select(selector)
    return found


def said(page: BeautifulSoup | Tag, selector: str) -> list[str]:
    return [" ".join(found.get_text().split()) for found in page.select(selector)]


async def sign_in(client: httpx.AsyncClient, key: str, **more: str) -> httpx.Response:
    return await client.post("/console/sign-in", data={"key": key} | more, headers=OURS)


@pytest.fixture
async def operator(stranger: httpx.AsyncClient) -> httpx.AsyncClient:
    assert (await sign_in(stranger, ADMIN)).status_code == 303
    return stranger


@pytest.fixture
async def webmaster(stranger: httpx.AsyncClient) -> httpx.AsyncClient:
    """Of the site `town` alone."""
    assert (await sign_in(stranger, EVERYTHING_TOWN)).status_code == 303
    return stranger


async def test_a_key_signs_in_and_the_form_signs_out(stranger: httpx.AsyncClient) -> None:
    asked = "/console/questions?site=town&outcome=refused"
    refused = await stranger.get(asked)
    assert refused.status_code == 303
    form = page_of(await stranger.get(refused.headers["location"]))
    to = str(one(form, "input[name=to]")["value"])
    assert to == asked
    answer = await sign_in(stranger, ADMIN, to=to)
    assert (answer.status_code, answer.headers["location"]) == (303, asked)
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/console/", f"Max-Age={LIFE}"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    assert ADMIN not in cookie
    page = page_of(await stranger.get(asked))
    assert said(page, ".who span") == ["Key: admin"]
    assert (await stranger.get("/console/sign-in")).headers["location"] == "/console/"
    token = str(one(page, ".who input[name=token]")["value"])
    assert (await stranger.post("/console/sign-out", data={"token": token}, headers=OURS)).status_code == 303
    assert (await stranger.get(asked)).status_code == 303


async def test_over_tls_the_cookie_is_for_tls_alone(app: FastAPI) -> None:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="https://gateway.test") as client:
        answer = await client.post("/console/sign-in", data={"key": ADMIN}, headers={"Origin": "https://gateway.test"})
    assert "Secure" in answer.headers["set-cookie"].split("; ")


@pytest.mark.parametrize("key", ["", "nonsense", "ä\x00", INGEST_TOWN, CHAT_ANYWHERE])
async def test_other_keys_do_not(stranger: httpx.AsyncClient, key: str) -> None:
    answer = await sign_in(stranger, key)
    assert said(page_of(answer, 403), "[role=alert]") == [
        "This key is not valid here, or has no access to the console."
    ]
    assert "set-cookie" not in answer.headers


async def test_nor_does_a_visitors_token(stranger: httpx.AsyncClient) -> None:
    token = (await stranger.post("/v1/sites/town/visitor-tokens", headers=OURS)).json()["token"]
    page_of(await sign_in(stranger, token), 403)
    stranger.cookies.set("pagewire_console", token, path="/console/")
    assert (await stranger.get("/console/questions")).status_code == 303


async def test_keys_cannot_be_tried_for_ever(app: FastAPI, stranger: httpx.AsyncClient) -> None:
    app.state.edge = replace(
        app.state.edge, rates=Rates("20/minute", SharedCounts(60, lambda: 0.0), SecretStr("salt"))
    )  # no minute ends meanwhile
    for _ in range(20):
        page_of(await sign_in(stranger, "wrong"), 403)
    answer = await sign_in(stranger, ADMIN)
    assert said(page_of(answer, 429), "h1") == ["Too many attempts"]
    assert int(answer.headers["retry-after"]) > 0


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        OURS | {"Sec-Fetch-Site": "cross-site"},
        OURS | {"Sec-Fetch-Site": "same-site"},
        OURS | {"Sec-Fetch-Site": "none"},
    ],
)
async def test_another_website_sends_no_forms(stranger: httpx.AsyncClient, headers: dict[str, str]) -> None:
    foreign = await stranger.post("/console/sign-in", data={"key": ADMIN}, headers=headers)
    assert "set-cookie" not in foreign.headers
    page_of(foreign, 403)
    await sign_in(stranger, ADMIN)
    page = page_of(await stranger.get("/console/questions"))
    token = str(one(page, ".who input[name=token]")["value"])
    page_of(await stranger.post("/console/sign-out", data={"token": token}, headers=headers), 403)
    assert (await stranger.get("/console/questions")).status_code == 200


async def test_a_failed_sign_in_is_logged_without_an_address(app: FastAPI) -> None:
    transport = httpx.ASGITransport(app, client=("203.0.113.77", 50_000))
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway.test") as stranger:
        with capture_logs() as logs:
            page_of(await sign_in(stranger, "wrong"), 403)
    assert any(line["event"] == "console: wrong key" for line in logs)
    assert "203.0.113.77" not in str(logs)


async def test_a_form_needs_the_token_of_its_session(operator: httpx.AsyncClient) -> None:
    page = page_of(await operator.get("/console/questions"))
    token = str(one(page, ".who input[name=token]")["value"])
    assert (await sign_in(operator, ADMIN)).status_code == 303  # another session of the same key
    for given in (token, "", token[:-1]):
        page_of(await operator.post("/console/sign-out", data={"token": given}, headers=OURS), 403)


def test_sessions_end_with_their_time_and_with_their_key(settings: Settings) -> None:
    assert settings.admin_key is not None
    now = 1_000_000.0
    tokens = VisitorTokens(settings.admin_key, 60)
    keys = Keys(settings.admin_key, settings.keys, tokens, list)
    sessions = Sessions(settings.admin_key, keys, lambda: now)
    cookie = sessions.begin(EVERYTHING_TOWN)
    assert cookie is not None
    caller = sessions.caller(cookie)
    assert caller is not None
    assert (caller.name, caller.site) == ("webmaster", "town")
    without = Sessions(settings.admin_key, Keys(settings.admin_key, (), tokens, list), lambda: now)
    assert without.caller(cookie) is None
    end, mark, rest = cookie.split(".", 2)
    for altered in (f"{int(end) + 1}.{mark}.{rest}", cookie[:-1], f"{cookie}0", "", "...", "ä"):
        assert sessions.caller(altered) is None
    now += LIFE
    assert sessions.caller(cookie) is None


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("/console/questions?site=town", None),
        ("https://evil.example/console/", "/console/"),
        ("//evil.example/console/", "/console/"),
        ("/console/\\evil.example", "/console/"),
        ("/", "/console/"),
        ("javascript:alert(1)", "/console/"),
    ],
)
def test_a_sign_in_leads_to_the_console_alone(to: str, expected: str | None) -> None:
    assert inside(to) == (expected or to)


@pytest.mark.parametrize("url", ["https://a.example/x", "http://a.example", "/x"])
def test_links_lead_to_websites(url: str) -> None:
    assert web_address(url) == url


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:,x", "//evil.example", "/\\evil.example", "x", ""])
def test_and_nowhere_else(url: str) -> None:
    assert web_address(url) == ""


async def test_the_first_page_says_how_it_is(operator: httpx.AsyncClient, fakes: FakePorts) -> None:
    assert (await operator.get("/console")).headers["location"] == "/console/"
    await fill(fakes)
    page = page_of(await operator.get("/console/"))
    assert page.select("header nav a")[0].get("aria-current") == "page"
    assert said(page, ".wrong") == ["the stage answer has no worker", "Messages that could not be processed: 1"]
    assert dict(zip(said(page, ".tiles dt"), said(page, ".tiles dd"), strict=True))["asked"] == "6"
    table = [said(row, "th, td") for row in page.select("details tbody tr")]
    assert len(table) == 14
    assert table[-4:] == [
        ["Mon 4 May", "2", "1", "0", "1", "0"],
        ["Tue 5 May", "1", "0", "1", "0", "0"],
        ["Wed 6 May", "2", "0", "0", "0", "1"],
        ["Thu 7 May", "1", "1", "0", "0", "0"],
    ]
    facts = dict(zip(said(page, ".facts dt"), said(page, ".facts dd"), strict=True))
    assert (facts["Pages"], facts["From save to searchable, 95th percentile"]) == ("64", "12.6 s")
    assert said(page, "section:has(#stages) tbody tr")[1] == "chunk bulk 1,234 31.5 1 0 0"
    fakes.status.found = STATUS.model_copy(update={"kafka": False, "problems": (), "sites": ()})
    assert said(page_of(await operator.get("/console/")), ".wrong")[0] == "Kafka does not answer."


async def test_whoever_has_one_site_sees_what_is_wrong_there(webmaster: httpx.AsyncClient, fakes: FakePorts) -> None:
    await fill(fakes)
    page = page_of(await webmaster.get("/console/"))
    assert said(page, ".well") == ["There are no known faults. Feedback shows whether answers help."]
    assert "1 of 2 ratings of the last two weeks are “helpful” (6 questions)." in one(page, "main").get_text()
    assert said(page, "header nav > p") == ["For editors", "For operators"]
    assert page.select("#stages") == []
    [town, other] = STATUS.sites
    fakes.status.found = STATUS.model_copy(update={"sites": (town.model_copy(update={"problem": "no index"}), other)})
    assert said(page_of(await webmaster.get("/console/")), ".wrong") == ["no index"]


def test_bars_fill_their_places_and_the_chart() -> None:
    found = bars([[("answered", 1), ("failed", 0)], [("answered", 1), ("failed", 3)]])
    assert [(rect.kind, rect.x, rect.y, rect.width, rect.height) for rect in found] == [
        ("answered", 52.5, 120.0, 245.0, 40.0),
        ("answered", 402.5, 120.0, 245.0, 40.0),
        ("failed", 402.5, 0.0, 245.0, 120.0),
    ]
    assert bars([]) == bars([[("failed", 0)]]) == []


async def test_a_key_of_a_site_sees_that_site_only(webmaster: httpx.AsyncClient, fakes: FakePorts) -> None:
    await fill(fakes, "other")
    page = page_of(await webmaster.get("/console/questions"))
    assert page.select("select#site") == []
    assert said(page, ".empty") == ["There are no questions yet."]
    for path in ("/console/questions?site=other", f"/console/questions/{CARD}?site=other"):
        assert said(page_of(await webmaster.get(path), 403), "h1") == ["This key has no access to this page"]


async def test_an_operator_sees_all_sites(operator: httpx.AsyncClient, fakes: FakePorts) -> None:
    await fill(fakes, "other")
    page = page_of(await operator.get("/console/questions?site=other"))
    assert [str(each["value"]) for each in page.select("select#site option")] == ["town", "other"]
    assert str(one(page, "select#site option[selected]")["value"]) == "other"
    assert len(page.select(".rows li")) == len(OUTCOMES)
    page_of(await operator.get("/console/questions?site=nowhere"), 404)
    page_of(await operator.get("/console/nowhere"), 404)


def listed(page: BeautifulSoup) -> list[str]:
    return [urlsplit(str(link["href"])).path.rpartition("/")[2] for link in page.select(".rows .question a")]


async def test_questions_are_listed_with_what_became_of_them(operator: httpx.AsyncClient, fakes: FakePorts) -> None:
    await fill(fakes)
    page = page_of(await operator.get("/console/questions"))
    assert listed(page) == [ERASED, HELLO, FAILED, DOG, SAUNA, CARD]
    assert dict(zip(said(page, ".tiles dt"), said(page, ".tiles dd"), strict=True)) == {
        "asked": "6",
        "answer shown": "2",
        "page shown": "1",
        "no answer": "1",
        "small talk": "1",
        "failed": "1",
        "helpful": "1",
        "not helpful": "1",
    }
    assert said(page, ".rows .comment") == [f"“There is one! {EVIL}”"]
    assert page.select("script") == []
    assert said(page, ".rows time")[-1] == "4 May 2026, 12:00"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("outcome=refused", [SAUNA]),
        ("feedback=any", [SAUNA, CARD]),
        ("feedback=up", [CARD]),
        ("lang=de", [HELLO, DOG]),
        ("from=2026-05-05&to=2026-05-05", [DOG]),
        ("to=2026-05-04", [SAUNA, CARD]),
        ("page=dog-tax", [DOG]),
        ("text=saun", [SAUNA]),
        ("outcome=&feedback=&from=&to=&lang=&page=&text=+library+card+", [CARD]),
        ("to=9999-12-31&from=0001-01-01&outcome=refused", [SAUNA]),
    ],
)
async def test_filters(operator: httpx.AsyncClient, fakes: FakePorts, query: str, expected: list[str]) -> None:
    await fill(fakes)
    page = page_of(await operator.get(f"/console/questions?site=town&{query}"))
    assert listed(page) == expected
    for name, [value] in parse_qs(query).items():
        field = one(page, f"#{name}")
        shown = one(field, "option[selected]")["value"] if field.name == "select" else field["value"]
        assert shown == value.strip() or shown == value
    rows = await operator.get(f"/console/questions?site=town&{query}&format=csv")
    assert rows.headers["content-type"] == "text/csv; charset=utf-8"
    assert rows.content.startswith(b"\xef\xbb\xbf")  # by which Excel knows UTF-8
    assert [row["request_id"] for row in csv.DictReader(StringIO(rows.content.decode("utf-8-sig")))] == expected


async def test_days_are_those_of_the_site(operator: httpx.AsyncClient, fakes: FakePorts, app: FastAPI) -> None:
    await fill(fakes)
    edge = app.state.edge
    kiritimati = edge.settings.sites["town"].model_copy(update={"timezone": "Pacific/Kiritimati"})  # 14 hours ahead
    edge.settings.sites["town"] = kiritimati
    page = page_of(await operator.get("/console/questions?from=2026-05-05&to=2026-05-05"))
    assert listed(page) == [SAUNA, CARD]
    assert said(page, ".rows time")[-1] == "5 May 2026, 02:00"


@pytest.mark.parametrize(
    ("query", "named"),
    [("from=yesterday", "From"), ("outcome=lost", "Outcome"), ("lang=%20", "Language"), ("feedback=meh", "Feedback")],
)
async def test_a_filter_that_means_nothing_is_named(operator: httpx.AsyncClient, query: str, named: str) -> None:
    for more in ("", "&format=csv"):
        page = page_of(await operator.get(f"/console/questions?{query}{more}"), 422)
        assert said(page, "[role=alert]") == [f"Please check these filters: {named}."]


async def test_long_lists_come_in_pages(
    operator: httpx.AsyncClient, fakes: FakePorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.console.questions.SHOWN", 4)
    await fill(fakes)
    first = page_of(await operator.get("/console/questions?site=town&lang=en"))
    older = str(one(first, ".paging a[rel=next]")["href"])
    assert parse_qs(older[1:])["lang"] == ["en"]
    second = page_of(await operator.get(f"/console/questions{older}"))
    assert [*listed(first), *listed(second)] == [ERASED, HELLO, FAILED, SAUNA, CARD]
    assert said(second, ".paging a") == ["To the newest"]
    page_of(await operator.get("/console/questions?after=nowhere"), 400)


async def test_one_question_is_shown_whole(operator: httpx.AsyncClient, fakes: FakePorts) -> None:
    await fill(fakes)
    page = page_of(await operator.get(f"/console/questions/{CARD}?site=town"))
    assert said(page, "h1") == ["What does a library card cost for adults?"]
    facts = dict(zip(said(page, ".facts dt"), said(page, ".facts dd"), strict=True))
    assert facts["Asked by"] == f"MCP: {EVIL}"
    assert facts["Tokens"] == "1,834 read, 87 written"
    assert facts["Grade of the gate"] == "0, the pages contain the answer"
    assert facts["Chance that it can be answered"] == "0.913, at least 0.350 is needed"
    assert facts["Chance that the best sentence answers"] == "0.871"
    assert str(page.select(".scroll th a")[0]["href"]) == "/console/page?site=town&id=library&of=en"
    assert facts["Noteworthy"] == "Sentences left out because the sources do not support them: 1"
    times = [" ".join(row.get_text(" ").split()) for row in page.select("table:has(.total) tbody tr")]
    assert times == ["rephrase 212 ms", "retrieve 96 ms", "answer 1,830 ms", "Until the first word 640 ms"]
    hits = [" ".join(row.get_text(" ").split()) for row in page.select(".machine .scroll tbody tr")]
    assert hits[0] == "Town library library · en · on the website content, chunk 2 0.0325 0.800 cited"
    assert "by words alone" in hits[1]
    assert hits[2].startswith(EVIL)
    assert [str(link["href"]) for link in page.select(".scroll tbody a[rel]")] == [
        "https://www.town.example/library",
        "https://www.town.example/fees",
    ]
    assert said(page, ".machine .chunks code") == ['weighted_average({"grades": [5, 4]})', f"fee({EVIL})"]
    assert said(page, ".machine .chunk") == ["[2] Weighted average: 4.50", EVIL]
    doubts = said(page, ".chunks .hint")
    assert doubts[0] == "The figure “99 euros” is not in the cited sources (1, 2). Left out."
    assert doubts[1].endswith("is not in the sources. Shown with a note.")
    assert said(page, "details summary") == [
        "For operators",
        "1. rephrase · gpt-oss-20b",
        "2. answer · gpt-oss-20b",
        "3. judge · model-down",
        "The gate’s signals",
        "Signals of the answer’s certainty",
        "Create a case from this question",
        "Erase this conversation",
    ]
    prompts = said(page, "pre")
    assert EVIL in prompts[4]  # as text
    assert not page.select("pre *")
    assert len(prompts) == 7
    assert "Characters not stored: 1,204" in said(page, "details .hint")
    assert said(page, "main > section:has(.samples) a[lang]") == ["Town library", "Fees and charges", EVIL]
    one(page, ".machine").decompose()
    words = one(page, "main").get_text().casefold()
    assert [name for name in ("cosine", "score", "chunk", "gate", "0.", " ms", "request-") if name in words] == []
    page_of(await operator.get("/console/questions/request-0009?site=town"), 404)
    page_of(await operator.get("/console/questions/%20"), 422)


async def test_a_question_shows_what_a_judge_finds_of_its_answer(operator: httpx.AsyncClient, fakes: FakePorts) -> None:
    await fill(fakes)

    async def found(**changes: float | str | None) -> dict[str, str]:
        verdict = Verdict(judged_at=NOON, judge="small", faithfulness=0.5, context_relevancy=1.0)
        event = VerdictEvent(
            site="town",
            request_id=CARD,
            conversation="9f" * 16,
            asked_at=NOON,
            verdict=verdict.model_copy(update=changes),
        )
        await fakes.outcomes.put_verdict(event)
        page = page_of(await operator.get(f"/console/questions/{CARD}?site=town"))
        return dict(zip(said(page, ".facts dt"), said(page, ".facts dd"), strict=True))

    faithful = "Share of its claims that the sources support: 0.50"
    relevant = "Share of the sources that the answer needed: 1.00"
    assert (await found())["Judged by small"] == faithful + relevant
    facts = await found(faithfulness=None, unjudged="judge-unreadable")
    assert facts["Judged by small"] == relevant + "Not judged completely (code judge-unreadable)."
    other = page_of(await operator.get(f"/console/questions/{SAUNA}?site=town"))
    assert not [name for name in said(other, ".facts dt") if name.startswith("Judged")]


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("id", OUTCOMES)
async def test_every_outcome_can_be_shown(operator: httpx.AsyncClient, fakes: FakePorts, id: str, lang: str) -> None:
    await fill(fakes)
    page = page_of(await operator.get(f"/console/questions/{id}?ui={lang}"))
    assert one(page, "html")["lang"] == lang
    assert page.select("script") == []


async def test_a_page_is_shown_with_its_receipt_and_its_chunks(operator: httpx.AsyncClient, fakes: FakePorts) -> None:
    await fill(fakes)
    page = page_of(await operator.get("/console/page?site=town&id=+library"))
    assert said(page, ".state .badge") == ["searchable"]
    facts = dict(zip(said(page, ".facts dt"), said(page, ".facts dd"), strict=True))
    assert facts["Accepted"] == "4 May 2026, 12:00"
    assert facts["Chunks"] == "1: 1 embedded, 0 reused, 0 removed"
    assert said(page, ".chunks .hint") == ["Title, part 1", "Text, part 1", "Text, part 2"]
    assert said(page, ".seen")[2].endswith(EVIL)
    [citing] = [str(link["href"]) for link in page.select("main a") if "page=library" in str(link["href"])]
    assert listed(page_of(await operator.get(citing))) == [CARD]


async def test_a_page_is_found_by_its_address_and_in_the_list(operator: httpx.AsyncClient, fakes: FakePorts) -> None:
    await fill(fakes)
    page = page_of(await operator.get("/console/page?site=town&id=https://www.town.example/library/"))
    assert said(page, ".state .badge") == ["searchable"]
    unknown = await operator.get("/console/page?site=town&id=https://www.town.example/nowhere")
    assert unknown.status_code == 404
    page = page_of(await operator.get("/console/page?site=town"))
    [link] = [str(link["href"]) for link in page.select("main ul a")]
    assert said(page_of(await operator.get(link)), ".state .badge") == ["searchable"]


async def test_labels_are_counted_and_each_lists_its_pages(operator: httpx.AsyncClient, fakes: FakePorts) -> None:
    await fill(fakes)
    key = page_key("town", "en", "library")
    fakes.indexed.labelled[key] = {"kind": ("form", EVIL)}
    fakes.pages._receipts[key] = fakes.pages._receipts[key].model_copy(update={"labels": {"kind": ("form",)}})
    page = page_of(await operator.get("/console/page?site=town"))
    assert said(page, ".facts dt") == ["kind"]
    assert sorted(said(page, ".facts dd p")) == sorted([f"{EVIL} 1", "form 1"])
    for link in page.select(".facts a"):
        found = page_of(await operator.get(str(link["href"])))
        assert said(found, "main ul a") == said(page, "main ul a")
    none = page_of(await operator.get("/console/page?site=town&label=kind:notice"))
    assert said(none, "main ul a") == []
    assert said(none, ".meta .badge") == ["kind:notice"]
    one_page = page_of(await operator.get("/console/page?site=town&id=library"))
    assert dict(zip(said(one_page, ".facts dt"), said(one_page, ".facts dd"), strict=True))["Labels"] == "kind: form"
    assert (await operator.get("/console/page?site=town&label=form")).status_code == 422


async def test_a_page_that_lacks_words_says_which_and_is_marked_in_the_list(
    operator: httpx.AsyncClient, fakes: FakePorts
) -> None:
    await fill(fakes)
    key = page_key("town", "en", "library")
    before = page_of(await operator.get("/console/page?site=town"))
    assert not before.select("main ul .badge")
    words = WordCounts(visible=1_300, indexed=1_000, left_out={"menu": 100, "form": 200, "of tomorrow": 1})
    reading = Reading(reader="1", words=words)
    fakes.pages._receipts[key] = fakes.pages._receipts[key].model_copy(update={"reading": reading})
    assert said(page_of(await operator.get("/console/page?site=town")), "main ul .badge") == ["words missing"]
    page = page_of(await operator.get("/console/page?site=town&id=library&ui=de"))
    facts = dict(zip(said(page, ".facts dt"), said(page, ".facts dd"), strict=True))
    assert facts["Wörter"] == "1.000 von 1.300 sichtbaren Wörtern sind auffindbar"
    assert said(page, ".facts dd p") == ["Formular: 200", "Menü: 100", "of tomorrow: 1"]


async def test_pages_that_another_version_has_read_are_counted(operator: httpx.AsyncClient, fakes: FakePorts) -> None:
    await fill(fakes)
    fakes.status.found = STATUS
    assert "another version" not in (await operator.get("/console/?site=town")).text
    sites = tuple(one.model_copy(update={"outdated": 1_234}) for one in STATUS.sites)
    fakes.status.found = STATUS.model_copy(update={"sites": sites})
    assert "1,234; a rebuild from" in (await operator.get("/console/?site=town")).text


async def test_a_page_for_a_group_is_read_by_keys_that_have_it(
    webmaster: httpx.AsyncClient, fakes: FakePorts, settings: Settings
) -> None:
    await fill(fakes)
    fakes.indexed.groups[page_key("town", "en", "library")] = frozenset({"staff"})
    page = page_of(await webmaster.get("/console/page?id=library"))
    assert page.select(".seen") == []
    assert said(page, "section .none") == ["Parts hidden from this key by access groups: 3"]


@pytest.mark.parametrize(
    ("state", "means"),
    [
        (
            "queued",
            "The newest change was accepted and will be searchable soon. "
            "Until then visitors find the page as it was before.",
        ),
        ("failed", "The newest change could not be processed. Visitors find the page as it was before."),
        ("deleted", "Visitors do not find this page any more."),
    ],
)
async def test_what_became_of_a_save_is_said(
    operator: httpx.AsyncClient, fakes: FakePorts, state: ReceiptState, means: str
) -> None:
    await fill(fakes)
    key = page_key("town", "en", "library")
    change = {
        "state": state,
        "error": "chunk: too long" if state == "failed" else None,
        "notes": ("fees.docx: unread",),
    }
    fakes.pages._receipts[key] = fakes.pages._receipts[key].model_copy(update=change)
    page = page_of(await operator.get("/console/page?id=library"))
    assert said(page, ".state span")[1] == means
    assert ("chunk: too long" in said(page, ".facts dd")) == (state == "failed")
    assert said(page, ".facts dd p") == ["fees.docx: unread"]


@pytest.mark.parametrize(("query", "status"), [("", 200), ("?id=lost", 404), ("?id=x&of=%20", 422), ("?id=%00", 422)])
async def test_pages_that_are_not_there(operator: httpx.AsyncClient, query: str, status: int) -> None:
    page_of(await operator.get(f"/console/page{query}"), status)


@pytest.fixture
def letters(fakes: FakePorts) -> FakeLetters:
    for made in (
        letter(1),
        letter(2, message=EVIL),
        letter(3, stage=None, code="unreadable", key=None, site=None, page_id=None),
        letter(4, state="dropped", handled_at=NOON),
    ):
        fakes.letters.kept[made.letter.id] = made
    return fakes.letters


async def test_dead_letters_are_listed_and_shown(operator: httpx.AsyncClient, letters: FakeLetters) -> None:
    page = page_of(await operator.get("/console/dlq"))
    links = [str(link["href"]).rpartition("/")[2] for link in page.select(".rows .question a")]
    assert links == ["3", "2", "1"]
    assert EVIL in page.get_text()
    page = page_of(await operator.get("/console/dlq?all=true"))
    assert said(page, ".rows .badge") == ["dropped", "open", "open", "open"]
    assert said(page_of(await operator.get("/console/dlq?stage=nowhere")), ".empty") == ["There are no dead letters."]
    page_of(await operator.get("/console/dlq?topic=nowhere"), 422)
    page = page_of(await operator.get("/console/dlq/cms.changes/0/1"))
    assert said(page, ".redrive h2") == ["Send it again"]
    for done in (3, 4):
        assert page_of(await operator.get(f"/console/dlq/cms.changes/0/{done}")).select(".redrive") == []
    page_of(await operator.get("/console/dlq/cms.changes/0/9"), 404)


async def test_a_letter_is_redriven_when_it_is_meant(operator: httpx.AsyncClient, letters: FakeLetters) -> None:
    path = "/console/dlq/cms.changes/0/1"
    token = str(one(page_of(await operator.get(path)), ".redrive input[name=token]")["value"])
    sure = {"token": token, "sure": "yes"}
    page_of(await operator.post(f"{path}/redrive", data={"token": token}, headers=OURS), 422)
    page_of(await operator.post(f"{path}/redrive", data={"sure": "yes"}, headers=OURS), 403)
    page_of(await operator.post(f"{path}/redrive", data=sure), 403)
    assert letters.sent == []
    done = await operator.post(f"{path}/redrive", data=sure, headers=OURS)
    assert (done.status_code, done.headers["location"]) == (303, path)
    assert letters.sent == [("cms.changes/0/1", None)]
    assert said(page_of(await operator.get(path)), ".meta .badge") == ["sent again"]
    page_of(await operator.post(f"{path}/redrive", data=sure, headers=OURS), 409)


async def test_dead_letters_are_for_keys_of_all_sites(webmaster: httpx.AsyncClient, letters: FakeLetters) -> None:
    page = page_of(await webmaster.get("/console/"))
    token = str(one(page, ".who input[name=token]")["value"])
    assert "Dead letters" not in said(page, "header nav a")
    for path in ("/console/dlq", "/console/dlq/cms.changes/0/1"):
        page_of(await webmaster.get(path), 403)
    form = {"token": token, "sure": "yes"}
    page_of(await webmaster.post("/console/dlq/cms.changes/0/1/redrive", data=form, headers=OURS), 403)
    assert letters.sent == []


async def test_gaps_name_what_was_missed_and_the_pages_near_it(webmaster: httpx.AsyncClient, fakes: FakePorts) -> None:
    await fill(fakes)
    page = page_of(await webmaster.get("/console/gaps?days=7"))
    assert said(page, ".rows h2") == [OUTCOMES[SAUNA].question, OUTCOMES[DOG].question]
    sauna = page.select(".rows li")[0]
    assert f"/console/questions/{SAUNA}?site=town" in str(sauna)
    assert "Visitors were shown pages, but no answer." in sauna.get_text()
    assert {"without a good answer: 1", "asked: 1"} <= set(said(sauna, ".meta span"))
    near = one(sauna, "a.cites")
    assert (near.get_text(), parse_qs(urlsplit(str(near["href"])).query)["id"]) == ("Indoor pool", ["pool"])
    everything = page_of(await webmaster.get("/console/gaps?days=7&show=asked"))
    assert OUTCOMES[CARD].rephrased in said(everything, ".rows h2")
    assert EVIL not in str(everything)
    assert said(page_of(await webmaster.get("/console/gaps?days=0"), 422), "h1") == ["That did not work"]
    page_of(await webmaster.get("/console/gaps?site=other"), 403)


async def test_gaps_that_are_still_being_grouped_are_looked_at_again(
    operator: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.console.questions.GAPS_WAIT", 0.0)
    answer = await operator.get("/console/gaps")
    assert answer.headers["refresh"] == "5"
    assert "has been in progress since" in page_of(answer, 202).get_text()


async def test_the_language_is_the_browsers_until_one_is_chosen(operator: httpx.AsyncClient) -> None:
    german = {"Accept-Language": "de-AT,en;q=0.5"}
    assert said(page_of(await operator.get("/console/questions", headers=german)), "h1") == ["Fragen"]
    page = page_of(await operator.get("/console/questions?site=town&outcome=refused", headers=german))
    english = next(str(link["href"]) for link in page.select("footer a") if link["lang"] == "en")
    assert parse_qs(english[1:])["outcome"] == ["refused"]
    assert said(page_of(await operator.get(f"/console/questions{english}", headers=german)), "h1") == ["Questions"]
    assert said(page_of(await operator.get("/console/questions", headers=german)), "h1") == ["Questions"]


async def test_a_service_that_is_away_is_said_on_a_page(operator: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.outcomes.error = Retryable("Elasticsearch is away")
    answer = await operator.get("/console/questions")
    page = page_of(answer, 503)
    assert said(page, "h1") == ["A service is not available"]
    assert said(page, ".facts dd") == ["Elasticsearch is away", answer.headers["x-trace-id"]]


def test_all_words_are_used_and_all_that_are_used_are_there() -> None:
    folder = Path(gateway.console.__file__).parent
    files = [*folder.glob("*.py"), *(folder / "templates").glob("*.html")]
    text = "\n".join(file.read_text("utf-8") for file in files)
    names = set(re.findall(r'(?:say|Screen)\("([a-z0-9-]+)"[,)]', text))
    assert names <= catalogue().keys()
    beginnings = set(re.findall(r'"([a-z-]+-)"', text))
    of_forms = {"from", "to", "lang", "outcome", "feedback", "page", "text", "liked", "disliked"}
    unused = {name for name in catalogue() if name not in names | of_forms and not name.startswith(tuple(beginnings))}
    assert unused - set(re.findall(r'"([a-z-]+)"', text)) == set()


def test_both_languages_fill_in_the_same_values() -> None:
    for name, words in catalogue().items():
        assert len({frozenset(re.findall(r"\{\w+\}", each)) for each in words.values()}) == 1, name
