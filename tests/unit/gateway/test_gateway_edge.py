"""What surrounds every request, and the smaller routes."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import httpx
import pytest
from bs4 import BeautifulSoup
from fastapi import FastAPI
from opentelemetry import trace as trace_api
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from gateway.app import create_app
from gateway.edge.envelope import trace_from
from gateway.edge.problems import Problem
from gateway.site.pages import preferred
from gateway.site.widget_pages import ATTRIBUTES, EVENTS, EXAMPLES
from pipelines.runtime.errors import Retryable
from pipelines.runtime.record import trace_id
from schemas.answer import Done
from schemas.http import SearchHit, SiteStatus
from tests.edge import ADMIN, Wire, assert_problem, bearer, edge_settings
from tests.fakes.ports import FakePorts
from tests.tracing import traced
from wiring.settings import SiteSettings

ROOT = Path(__file__).parents[3]
CHAT = "/v1/sites/town/chat"
STREAM = {"Accept": "text/event-stream"}
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


async def test_a_callers_trace_goes_on(stranger: httpx.AsyncClient) -> None:
    response = await stranger.get("/healthz", headers={"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"})
    assert response.headers["x-trace-id"] == TRACE


@pytest.mark.parametrize(
    "given", [None, "", "nonsense", f"00-{'0' * 32}-00f067aa0ba902b7-01", f"00-{TRACE.upper()}-1-01"]
)
def test_otherwise_a_new_trace_begins(given: str | None) -> None:
    first, second = trace_from(given), trace_from(given)
    assert first != second
    assert len(first) == 32
    assert int(first, 16) != 0


async def test_ports_see_the_trace(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    seen = []

    def look(_: object) -> None:
        seen.append(trace_id.get())

    fakes.pages.refuses = look
    response = await client.put("/v1/sites/town/pages/a", json={"id": "a"})
    assert seen == [response.headers["x-trace-id"]]
    assert trace_id.get() == ""


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """What goes to OpenTelemetry's global provider, as an operator's own instruments set one."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(sampler=ALWAYS_ON, shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace_api, "_TRACER_PROVIDER", provider)
    yield exporter
    provider.shutdown()


@pytest.mark.parametrize("on", [False, True])
async def test_no_library_tells_by_itself_what_was_searched_for(
    client: httpx.AsyncClient, elsewhere: InMemorySpanExporter, on: bool
) -> None:
    with traced() if on else nullcontext() as seen:
        response = await client.get("/v1/sites/town/search", params={"q": "zebra"})
    assert response.status_code == 200
    assert elsewhere.get_finished_spans() == ()
    if seen is not None:
        [span] = seen.spans
        assert span.name == "GET /v1/sites/{site}/search"
        assert "zebra" not in span.to_json()


async def test_what_machines_ask_all_day_is_not_traced(stranger: httpx.AsyncClient) -> None:
    with traced() as seen:
        given = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
        assert (await stranger.get("/healthz", headers=given)).headers["x-trace-id"] == TRACE
    assert seen.spans == ()


async def test_a_strangers_words_in_a_path_are_in_no_span(stranger: httpx.AsyncClient) -> None:
    with traced() as seen:
        for path in ("/zebra", "/v1/sites/zebra/chat", "/v1/sites/zebra/search?q=zebra"):
            assert (await stranger.get(path)).status_code >= 400
    assert len(seen.spans) == 3
    assert "zebra" not in "".join(span.to_json() for span in seen.spans)


def test_a_problem_can_be_told_whatever_it_is_about() -> None:
    response = Problem(422, "invalid", "lone \ud800 surrogate", extra={"accepted": 1}).response()
    document = json.loads(response.body)
    assert (document["detail"], document["accepted"]) == ("lone ? surrogate", 1)


@pytest.mark.parametrize(
    "path", ["/healthz", "/nothing", "/v1/admin/status", "/", "/widget.js", "/widget/", "/widget/rtl", "/openapi.json"]
)
async def test_every_answer_is_safe_to_show(stranger: httpx.AsyncClient, path: str) -> None:
    headers = (await stranger.get(path)).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert "default-src" in headers["content-security-policy"]


@pytest.mark.parametrize(
    "path",
    [
        "/healthz",
        "/readyz",
        "/",
        "/widget.js",
        "/openapi.json",
        "/console/sign-in",
        "/v1/sites/town/conversations",
        "/x",
    ],
)
async def test_head_is_answered_wherever_get_is(client: httpx.AsyncClient, path: str) -> None:
    """fastapi/fastapi issue 1773."""
    get, head = await client.get(path), await client.head(path)
    assert (head.status_code, head.content) == (get.status_code, b"")
    for answer in (get, head):
        del answer.headers["x-trace-id"]
    assert head.headers == get.headers


async def test_head_does_not_wait_for_a_stream_and_does_nothing(
    app: FastAPI, client: httpx.AsyncClient, fakes: FakePorts
) -> None:
    fakes.answers.script = lambda _: [3600.0, Done()]
    async with Wire().call(app, "POST", CHAT, bearer(ADMIN) | STREAM, b'{"question": "When?"}') as asking:
        [accepted] = await asking.events(1)
        events = f"/v1/sites/town/answers/{accepted.data['request_id']}/events"
        async with Wire().call(app, "HEAD", events, bearer(ADMIN)) as wire:
            assert await wire.piece() is None
            assert (wire.status, wire.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
            wire.hang_up()  # as the server says when the answer is complete
            await asyncio.wait_for(wire.over.wait(), 10)
    assert (await client.head(CHAT)).status_code == 405
    assert len(fakes.answers.asked) == 1


async def test_a_head_is_logged_and_counted_as_one(client: httpx.AsyncClient) -> None:
    with capture_logs() as logs:
        await client.head("/v1/sites/town/conversations")
    assert [(each["method"], each["path"]) for each in logs if each["event"] == "request"] == [
        ("HEAD", "/v1/sites/town/conversations")
    ]
    counted = {"method": "HEAD", "route": "/v1/sites/{site}/conversations", "status": "200"}
    assert REGISTRY.get_sample_value("pagewire_http_request_seconds_count", counted)


HIT = SearchHit(page_id="a", lang="en", title="A", url="/a", field="content", ord=0, text="text", score=0.5, revision=1)


async def test_search(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.search.found = [HIT, HIT, HIT]
    response = await client.get("/v1/sites/town/search", params={"q": " opening hours ", "mode": "keyword", "size": 2})
    assert [hit["page_id"] for hit in response.json()["hits"]] == ["a", "a"]
    assert fakes.search.searches == [("town", "opening hours", "keyword", 2)]
    await client.get("/v1/sites/town/search?q=x")
    assert fakes.search.searches[1] == ("town", "x", "hybrid", 10)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("", "q"),
        ("q=", "q"),
        ("q=%20%09", "q"),
        ("q=" + "x" * 4_001, "q"),
        ("q=x&mode=magic", "mode"),
        ("q=x&size=0", "size"),
        ("q=x&size=101", "size"),
        ("q=x&size=ten", "size"),
    ],
)
async def test_bad_searches(client: httpx.AsyncClient, query: str, field: str) -> None:
    problem = assert_problem(await client.get(f"/v1/sites/town/search?{query}"), 422, "invalid")
    assert [e["field"] for e in problem["errors"]] == [field]


async def test_search_without_elasticsearch(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    fakes.search.error = Retryable("Elasticsearch does not answer")
    response = await client.get("/v1/sites/town/search?q=x")
    assert_problem(response, 503, "unavailable")
    assert response.headers["retry-after"]


async def test_status(client: httpx.AsyncClient) -> None:
    assert (await client.get("/v1/admin/status")).json()["kafka"] is True


async def test_status_of_one_site(client: httpx.AsyncClient, fakes: FakePorts) -> None:
    holds = {"pages": 1, "chunks": 2, "freshness_p50_ms": None, "freshness_p95_ms": None, "embedder": None}
    sites = tuple(SiteStatus(site=name, **holds) for name in ("hall", "town"))
    fakes.status.found = fakes.status.found.model_copy(update={"sites": sites})
    assert len((await client.get("/v1/admin/status")).json()["sites"]) == 2
    assert [one["site"] for one in (await client.get("/v1/admin/status?site=town")).json()["sites"]] == ["town"]
    assert_problem(await client.get("/v1/admin/status?site=nowhere"), 404, "unknown-site")


# Pages


async def test_the_chat_page_is_the_first_sites(stranger: httpx.AsyncClient) -> None:
    page = await stranger.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert "require-trusted-types-for 'script'" in page.headers["content-security-policy"]
    assert 'site="town"' in page.text
    assert 'lang="en"' in page.text
    assert "Town &amp; Sons" in page.text


async def test_the_chat_page_of_another_site_and_language(stranger: httpx.AsyncClient) -> None:
    german = (await stranger.get("/?lang=de")).text
    assert (await stranger.get("/?lang=DE")).text == german
    assert '<html lang="de" dir="ltr">' in german
    assert 'hreflang="de" lang="de" aria-current="true"' in german
    assert '<html lang="fr" dir="ltr">' in (await stranger.get("/?site=other&lang=xx")).text
    assert_problem(await stranger.get("/?site=<script>"), 404, "unknown-site")


@pytest.mark.parametrize("path", ["/", *(f"/widget/{name}" for name in ("", *EXAMPLES))])
async def test_nothing_inline_on_our_pages(stranger: httpx.AsyncClient, path: str) -> None:
    page = BeautifulSoup((await stranger.get(path)).text, "html.parser")
    assert not page.find_all("style")
    for tag in page.find_all(True):
        assert not [name for name in tag.attrs if name == "style" or name.startswith("on")]
    assert all(script["src"] == "/widget.js" and not script.get_text() for script in page.find_all("script"))


async def test_an_example_is_for_a_site_that_there_is(stranger: httpx.AsyncClient) -> None:
    assert 'data-site="other" data-lang="fr"' in (await stranger.get("/widget/light?site=other")).text
    assert '<html lang="he" dir="rtl">' in (await stranger.get("/widget/rtl")).text
    assert_problem(await stranger.get("/widget/light?site=nowhere"), 404, "unknown-site")
    assert_problem(await stranger.get("/widget/nothing"), 404, "not-found")


def test_the_manual_the_live_page_and_the_widget_agree() -> None:
    manual = (ROOT / "docs/howto/embed.md").read_text("utf-8")
    source = "".join(path.read_text("utf-8") for path in sorted((ROOT / "widget/src").glob("*.*")))
    read = set(re.findall(r'getAttribute\("([a-z]+)"\)', source)) | set(re.findall(r':host\(\[([a-z]+)="', source))
    assert read == set(ATTRIBUTES)
    for name in ATTRIBUTES:
        assert f"\n| `{name}` |" in manual, name
    # Those that are nearly written like one of them are named in the console.
    known = re.search(r'NAMES = "([a-z -]+)"', source)
    assert known
    assert set(known[1].split()) == {*ATTRIBUTES, "token-url"}
    sent = source.partition("interface ChatEvents {")[2].partition("\n}")[0]
    assert {f"pagewire:{name}" for name in re.findall(r"^  (\w+): ", sent, re.MULTILINE)} == set(EVENTS)
    for name in EVENTS:
        assert f"\n| `{name}` |" in manual, name


@pytest.mark.parametrize(
    ("path", "media_type"),
    [("/widget.js", "text/javascript"), ("/page.css", "text/css"), ("/favicon.svg", "image/svg+xml")],
)
async def test_static_files_are_revalidated(stranger: httpx.AsyncClient, path: str, media_type: str) -> None:
    first = await stranger.get(path)
    assert first.headers["content-type"].startswith(media_type)
    assert first.headers["access-control-allow-origin"] == "*"
    again = await stranger.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_what_is_text_is_compressed(stranger: httpx.AsyncClient) -> None:
    packed = await stranger.get("/widget.js", headers={"Accept-Encoding": "gzip"})
    plain = await stranger.get("/widget.js", headers={"Accept-Encoding": "identity"})
    assert (packed.headers["content-encoding"], packed.headers["vary"]) == ("gzip", "Accept-Encoding")
    assert "content-encoding" not in plain.headers
    assert packed.content == plain.content  # httpx unpacks
    assert int(packed.headers["content-length"]) < len(plain.content) / 2


async def test_the_sample_site_is_there_with_its_site_alone(stranger: httpx.AsyncClient, tmp_path: Path) -> None:
    assert_problem(await stranger.get("/site/"), 404, "not-found")
    app = create_app(
        edge_settings(tmp_path, sites={"demo": SiteSettings(languages=("de", "en"))}, keys=()), FakePorts().ports
    )
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://gateway.test", headers=bearer(ADMIN)
    ) as client:
        index = await client.get("/site/")
        assert 'src="/widget.js" data-site="demo" data-lang="de"' in index.text
        assert (await client.get("/site/en/library")).status_code == 200
        assert (await client.get("/site/assets/site.css")).headers["content-type"].startswith("text/css")
        assert_problem(await client.get("/site/en/nothing"), 404, "not-found")
        assert_problem(await client.get("/site/assets/nothing.css"), 404, "not-found")


@pytest.mark.parametrize(
    ("accept", "lang"),
    [
        ("", "de"),
        ("en", "en-GB"),
        ("EN-us,en;q=0.9", "en-GB"),
        ("fr-FR,fr;q=0.9,en;q=0.5,de;q=0.8", "de"),
        ("de;q=0,en;q=0.1", "en-GB"),
        ("fr, *;q=0.5", "de"),
        (";;q=x,,=", "de"),
    ],
)
def test_the_chat_page_opens_in_the_language_that_the_browser_likes_best(accept: str, lang: str) -> None:
    assert preferred(accept, ["de", "en-GB"]) == lang


async def test_the_chat_page_asks_the_browser_unless_it_is_told(stranger: httpx.AsyncClient) -> None:
    german = {"Accept-Language": "de-AT"}
    for path, lang in (("/", "de"), ("/?lang=en", "en"), ("/?lang=xx", "de")):
        page = await stranger.get(path, headers=german)
        assert f'<html lang="{lang}"' in page.text
        assert page.headers["Vary"] == "Accept-Language"
