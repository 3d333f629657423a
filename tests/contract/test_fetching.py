"""SafeFetch against a real server on loopback, with the resolver's answers scripted where names matter."""

from __future__ import annotations

import asyncio
import gzip
import socket
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from traceback import format_exception
from typing import Any

import pytest
from aiohttp import web

from connectors.cms import fetching
from connectors.cms.fetching import Fetched, FetchRefused, SafeFetch, ServerUnavailable

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
HERE = ("127.0.0.1", "::1")


@dataclass
class Site:
    """A server whose paths a test scripts; remembers what was asked."""

    port: int = 0
    paths: dict[str, Handler] = field(default_factory=dict)
    asked: list[web.Request] = field(default_factory=list)

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def answers(self, path: str, *answers: dict[str, Any]) -> str:
        """One after the other, the last one for ever."""
        left = list(answers)

        async def answer(request: web.Request) -> web.Response:
            return web.Response(**(left.pop(0) if len(left) > 1 else left[0]))

        self.paths[path] = answer
        return self.url(path)

    def redirects(self, path: str, to: str) -> str:
        return self.answers(path, {"status": 302, "headers": {"Location": to}})

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        return await self.paths[request.path](request)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", site.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    tcp = web.TCPSite(runner, "127.0.0.1", 0)
    await tcp.start()
    site.port = runner.addresses[0][1]
    yield site
    await runner.cleanup()


@pytest.fixture
async def fetch() -> AsyncIterator[SafeFetch]:
    async with SafeFetch(HERE, timeout=10, patience=2) as fetch:
        yield fetch


def names(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Let every name resolve to these addresses, one answer per question; returns the names asked for."""
    asked: list[str] = []
    left = list(answers)

    async def getaddrinfo(self: Any, host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        found = left.pop(0) if len(left) > 1 else left[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", getaddrinfo)
    return asked


async def test_a_body_and_what_the_server_says_of_it(site: Site, fetch: SafeFetch) -> None:
    said = {"Content-Type": "text/html; charset=ISO-8859-2", "ETag": '"1"', "Last-Modified": "yesterday"}
    url = site.answers("/page", {"body": b"hello", "headers": said})
    got = await fetch.get(url + "?a=1#b", headers={"Authorization": "Basic x"})
    assert (got.url, got.status, got.body, got.unchanged) == (url + "?a=1", 200, b"hello", False)
    assert (got.media_type, got.charset, got.etag, got.modified) == ("text/html", "iso-8859-2", '"1"', "yesterday")
    assert got.date is not None
    [asked] = site.asked
    assert asked.path_qs == "/page?a=1"
    assert asked.headers["Authorization"] == "Basic x"
    assert asked.headers["Host"] == f"127.0.0.1:{site.port}"


async def test_who_asks_may_turn_a_body_away_by_what_the_server_says_of_it(site: Site, fetch: SafeFetch) -> None:
    heads: list[Fetched] = []

    def answered(head: Fetched) -> None:
        heads.append(head)
        if head.media_type != "text/plain":
            raise ValueError("no film, please")

    film = {"body": b"x" * 1_000_000, "headers": {"Content-Type": "video/mp4"}}
    text = {"body": b"hello", "headers": {"Content-Type": "text/plain"}}
    moved = site.redirects("/moved", site.answers("/film", film))
    with pytest.raises(ValueError, match="no film"):
        await fetch.get(moved, answered=answered)
    assert (await fetch.get(site.answers("/text", text), answered=answered)).body == b"hello"
    assert [(head.media_type, head.length, head.body) for head in heads] == [
        ("video/mp4", 1_000_000, b""),
        ("text/plain", 5, b""),
    ]
    packed = {"body": gzip.compress(b"hello"), "headers": {"Content-Type": "text/plain", "Content-Encoding": "gzip"}}
    assert (await fetch.get(site.answers("/packed", packed), answered=answered)).body == b"hello"
    assert heads[-1].length is None  # nobody knows how long it will be


async def test_what_is_unchanged_is_not_sent_again(site: Site, fetch: SafeFetch) -> None:
    got = await fetch.get(site.answers("/page", {"status": 304}), etag='"1"', modified="yesterday")
    assert (got.unchanged, got.body) == (True, b"")
    assert site.asked[0].headers["If-None-Match"] == '"1"'
    assert site.asked[0].headers["If-Modified-Since"] == "yesterday"


async def test_unchanged_without_having_been_asked_is_no_answer(site: Site, fetch: SafeFetch) -> None:
    with pytest.raises(FetchRefused, match="304"):
        await fetch.get(site.answers("/page", {"status": 304}))


@pytest.mark.parametrize("url", ["http://127.0.0.1:{port}/", "http://2130706433:{port}/", "http://0x7f.1:{port}/"])
async def test_nothing_behind_the_walls_is_asked_however_it_is_written(site: Site, url: str) -> None:
    site.answers("/", {"body": b"secret"})
    async with SafeFetch() as fetch:
        with pytest.raises(FetchRefused, match="not public"):
            await fetch.get(url.format(port=site.port))
    assert site.asked == []


async def test_a_name_that_leads_behind_the_walls_is_refused(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    names(monkeypatch, ["127.0.0.1"])
    async with SafeFetch() as fetch:
        with pytest.raises(FetchRefused, match=r"^the address of cms\.example is not public; "):
            await fetch.get(site.url("/", "cms.example"))
    async with SafeFetch(["cms.example"]) as fetch:
        site.answers("/", {"body": b"ok"})
        assert (await fetch.get(site.url("/", "cms.example"))).body == b"ok"
    assert site.asked[0].headers["Host"] == f"cms.example:{site.port}"


async def test_the_address_that_was_checked_is_the_one_connected_to(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: the second answer of the name server is another one. There is no second question."""
    site.answers("/", {"body": b"secret"})
    connected: list[str] = []
    inner = fetching.httpcore.AnyIOBackend.connect_tcp

    async def connect(self: Any, host: str, *args: Any, **more: Any) -> Any:
        connected.append(host)
        return await inner(self, "127.0.0.1" if host == "203.0.113.7" else host, *args, **more)

    monkeypatch.setattr(fetching.httpcore.AnyIOBackend, "connect_tcp", connect)
    asked = names(monkeypatch, ["203.0.113.7"], ["127.0.0.1"])
    async with SafeFetch(["203.0.113.7"]) as fetch:
        await fetch.get(site.url("/", "cms.example"))
    assert asked[0] == "cms.example"
    assert connected == ["203.0.113.7"]


async def test_of_a_names_addresses_only_permitted_ones_are_tried(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.answers("/", {"body": b"ok"})
    names(monkeypatch, ["10.0.0.1", "127.0.0.1"])
    async with SafeFetch(["127.0.0.1"], timeout=5) as fetch:
        assert (await fetch.get(site.url("/", "cms.example"))).body == b"ok"


async def test_redirects_are_followed_and_checked_again(site: Site, fetch: SafeFetch) -> None:
    end = site.answers("/end", {"body": b"here"})
    site.redirects("/2", "/end")
    got = await fetch.get(site.redirects("/1", "2#x"))
    assert (got.url, got.body) == (end, b"here")
    for there, why in (
        ("http://[::ffff:10.0.0.1]/", "not public"),
        ("http://169.254.169.254/latest/meta-data", "not public"),
        ("file:///etc/passwd", "only http"),
        ("http://user:secret@127.0.0.1/", "user and password"),
        ("http://[::1", "not a URL"),
    ):
        with pytest.raises(FetchRefused, match=why):
            await fetch.get(site.redirects("/away", there))


async def test_redirects_come_to_an_end(site: Site, fetch: SafeFetch) -> None:
    with pytest.raises(FetchRefused, match="more than 5 redirects"):
        await fetch.get(site.redirects("/round", "/round"))
    assert len(site.asked) == 6


def test_from_https_to_http_is_no_redirect_to_follow() -> None:
    with pytest.raises(FetchRefused, match="from https to http"):
        fetching._next(fetching.checked("https://cms.example/a"), "http://cms.example/b")


async def test_who_is_asked_instead_gets_no_password(site: Site, fetch: SafeFetch) -> None:
    site.answers("/end", {"body": b"here"})
    await fetch.get(
        site.redirects("/1", site.url("/end", "localhost")), headers={"Authorization": "Basic x"}, etag='"1"'
    )
    assert "Authorization" in site.asked[0].headers
    assert "Authorization" not in site.asked[1].headers
    assert "If-None-Match" not in site.asked[1].headers


async def test_a_header_that_cannot_be_sent_is_in_no_message(site: Site, fetch: SafeFetch) -> None:
    url = site.answers("/", {"body": b"here"})
    for asked in (fetch.get(url, headers={"Key": "hush\n"}), fetch.post(url, b"", {"Key": "hush\n"})):
        with pytest.raises(FetchRefused, match="a header of the request") as refused:
            await asked
        assert "hush" not in "".join(format_exception(refused.value))


async def test_a_body_is_counted_as_it_comes(site: Site, fetch: SafeFetch) -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b"x" * 10_000)

    site.paths["/endless"] = endless
    with pytest.raises(FetchRefused, match="larger than 50,000 bytes"):
        await fetch.get(site.url("/endless"), limit=50_000)
    fits = site.answers("/fits", {"body": b"x" * 50_000})
    assert len((await fetch.get(fits, limit=50_000)).body) == 50_000
    with pytest.raises(FetchRefused, match="larger than 49,999 bytes"):
        await fetch.get(fits, limit=49_999)


async def test_a_body_is_counted_unpacked(site: Site, fetch: SafeFetch) -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    packed = {"Content-Encoding": "gzip"}
    with pytest.raises(FetchRefused, match="larger than"):
        await fetch.get(site.answers("/bomb", {"body": bomb, "headers": packed}), limit=1_000_000)
    small = gzip.compress(b"hello")
    assert (await fetch.get(site.answers("/gz", {"body": small, "headers": packed}))).body == b"hello"
    with pytest.raises(FetchRefused, match="gzip"):
        await fetch.get(site.answers("/no", {"body": b"not packed", "headers": packed}))
    with pytest.raises(ServerUnavailable, match="too early"):
        await fetch.get(site.answers("/half", {"body": small[:-4], "headers": packed}))
    for other in ("br", "gzip, gzip", "deflate"):
        answer = {"body": zlib.compress(b"x"), "headers": {"Content-Encoding": other}}
        with pytest.raises(FetchRefused, match="not asked for"):
            await fetch.get(site.answers("/other", answer))


async def test_time_is_limited_in_all(site: Site) -> None:
    async def drips(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b"x")
            await asyncio.sleep(0.05)

    site.paths["/drips"] = drips
    async with SafeFetch(HERE, timeout=0.5) as fetch:
        with pytest.raises(ServerUnavailable, match=r"within 0.5 s"):
            await fetch.get(site.url("/drips"))


async def test_a_busy_server_is_asked_once_more_when_it_says_when(site: Site, fetch: SafeFetch) -> None:
    busy = {"status": 429, "headers": {"Retry-After": "0"}}
    assert (await fetch.get(site.answers("/busy", busy, {"body": b"ok"}))).body == b"ok"
    with pytest.raises(ServerUnavailable, match="429"):
        await fetch.get(site.answers("/always", busy))
    assert len(site.asked) == 4
    later = {
        "status": 503,
        "headers": {"Retry-After": "Wed, 21 Oct 2026 07:30:00 GMT", "Date": "Wed, 21 Oct 2026 07:28:00 GMT"},
    }
    with pytest.raises(ServerUnavailable) as away:
        await fetch.get(site.answers("/later", later))
    assert away.value.retry_after == 120
    with pytest.raises(ServerUnavailable) as away:
        await fetch.get(site.answers("/someday", {"status": 503}))
    assert away.value.retry_after is None
    assert len(site.asked) == 6


@pytest.mark.parametrize(
    ("status", "error"),
    [(404, FetchRefused), (403, FetchRefused), (204, FetchRefused), (500, ServerUnavailable), (502, ServerUnavailable)],
)
async def test_what_is_no_page(
    site: Site, fetch: SafeFetch, status: int, error: type[FetchRefused | ServerUnavailable]
) -> None:
    with pytest.raises(error, match=str(status)) as raised:
        await fetch.get(site.answers("/x", {"status": status}))
    if isinstance(raised.value, FetchRefused):
        assert raised.value.status == status


async def test_nobody_there(fetch: SafeFetch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(ServerUnavailable, match="no connection"):
            await fetch.get(f"http://127.0.0.1:{taken.getsockname()[1]}/")


async def test_a_name_that_is_none(fetch: SafeFetch, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nobody(self: Any, *_: Any, **__: Any) -> Any:
        raise socket.gaierror(error, "resolver")

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", nobody)
    error = socket.EAI_NONAME
    with pytest.raises(FetchRefused, match="no such host"):
        await fetch.get("http://nowhere.example/")
    error = socket.EAI_AGAIN
    with pytest.raises(ServerUnavailable, match="looked up"):
        await fetch.get("http://nowhere.example/")


async def test_connections_are_kept_and_shared(site: Site, fetch: SafeFetch) -> None:
    url = site.answers("/page", {"body": b"hello"})
    got: list[Fetched] = [await fetch.get(url) for _ in range(3)]
    assert [each.body for each in got] == [b"hello"] * 3
    assert len({id(request.transport) for request in site.asked}) == 1


async def test_a_post_arrives_once_and_goes_nowhere_else(site: Site, fetch: SafeFetch) -> None:
    got: list[tuple[str, bytes]] = []

    async def take(request: web.Request) -> web.Response:
        got.append((request.headers["X-Signed"], await request.read()))
        return web.Response(status=204)

    site.paths["/in"] = take
    await fetch.post(site.url("/in"), b"{}", {"X-Signed": "1"})
    assert got == [("1", b"{}")]
    for status, kind in ((500, ServerUnavailable), (429, ServerUnavailable), (401, FetchRefused)):
        with pytest.raises(kind):
            await fetch.post(site.answers("/other", {"status": status}), b"{}", {})
    with pytest.raises(FetchRefused):
        await fetch.post(site.redirects("/moved", "/in"), b"{}", {})
    async with SafeFetch() as guarded:
        with pytest.raises(FetchRefused, match="not public"):
            await guarded.post(site.url("/in"), b"{}", {})
    assert len(got) == 1
