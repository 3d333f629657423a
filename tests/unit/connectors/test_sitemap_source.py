"""A website as a source: what is asked, how often, and what is public by its own word."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from connectors.cms import sources as changing
from connectors.cms import sync as syncing
from connectors.cms.fetching import LIMIT, Fetched, FetchRefused, ServerUnavailable
from connectors.cms.frame import Listed, Omitted, OwnThread, UnreadablePage
from connectors.cms.reconcile import Reconciled, reconcile
from connectors.cms.settings import ConnectorsSettings, SitemapConnector
from connectors.cms.sitemap import discover, visits
from connectors.cms.sitemap import source as sitemap_source
from connectors.cms.sitemap.discover import Location, NotASitemap
from connectors.cms.sitemap.feeds import ENTRIES, entries_of
from connectors.cms.sitemap.follow import poll
from connectors.cms.sitemap.reader import DOCUMENTS
from connectors.cms.sitemap.source import FAILURES, SitemapSource
from connectors.cms.sitemap.visits import Visit, Visits
from connectors.cms.sources import take_changed
from schemas.http import ListedPage
from schemas.page import PageDocument
from tests.connecting import SITE, Log

HOST = "https://www.town.example"
WEB = {"kind": "sitemap", "url": HOST, "delay": 0}


@dataclass
class FakeWeb:
    """A server: what stands at each path. A page has an etag, as good servers have."""

    pages: dict[str, str | bytes] = field(default_factory=dict)
    headers: dict[str, dict[str, str]] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    errors: dict[str, Exception] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    takes: float = 0.0  # seconds a request

    async def get(
        self, url: str, *, etag: str | None = None, modified: str | None = None, limit: int = LIMIT
    ) -> Fetched:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(self.takes)
        self.at_once -= 1
        path = url.removeprefix(HOST)
        self.asked.append(path)
        if path in self.errors:
            raise self.errors[path]
        path = self.moved.get(path, path)
        if path not in self.pages:
            raise FetchRefused(f"{url}: the server answered 404", 404)
        body = self.pages[path]
        encoded = body.encode() if isinstance(body, str) else body
        own = f'"{hash(encoded)}"'
        headers = {"content-type": "text/html; charset=utf-8", "etag": own} | self.headers.get(path, {})
        if etag == own:
            self.unchanged.append(path)
            return Fetched(HOST + path, 304, b"", headers)
        return Fetched(HOST + path, 200, encoded, headers)

    def page(
        self, path: str, text: str = "text", links: tuple[str, ...] = (), head: str = "", lang: str = "en"
    ) -> None:
        anchors = "".join(f'<a href="{link}">{link}</a>' for link in links)
        body = f"<main><p>{text}</p>{anchors}</main>"
        self.pages[path] = f'<html lang="{lang}"><head><title>{path}</title>{head}</head><body>{body}</body></html>'

    def sitemap(self, *paths: str, at: str = "/sitemap.xml", lastmod: str = "") -> None:
        time = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
        entries = "".join(f"<url><loc>{HOST if p.startswith('/') else ''}{p}</loc>{time}</url>" for p in paths)
        self.pages[at] = f"<urlset>{entries}</urlset>"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syncing, "PAUSES", ())


@pytest.fixture
def web() -> FakeWeb:
    return FakeWeb()


@pytest.fixture
async def made(web: FakeWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    """Makes sources; each is a new run of the command, and begins after all that the last one did."""
    milliseconds = itertools.count(int(time.time() * 1000))
    monkeypatch.setattr(SitemapSource, "_clock", staticmethod(lambda: next(milliseconds)))
    async with OwnThread(lambda: Visits(tmp_path / "crawls" / "visits.db")) as own:

        def make(path: str = "/", **more: Any) -> SitemapSource:
            values = {"kind": "sitemap", "url": HOST + path, "delay": 0} | more
            return SitemapSource(SitemapConnector.model_validate(values), web, ("en", "de"), own)

        yield make


async def listed(source: SitemapSource) -> list[str]:
    return [f"{one.lang} {one.page_id}" async for one in source.inventory() if isinstance(one, Listed)]


async def omitted(source: SitemapSource) -> dict[str, str]:
    return {one.address.removeprefix(HOST): one.reason async for one in source.inventory() if isinstance(one, Omitted)}


async def pages(source: SitemapSource) -> list[PageDocument | UnreadablePage]:
    return [page async for page in source.fetch([one async for one in source.inventory() if isinstance(one, Listed)])]


async def test_a_sitemap_found_through_robots_txt(web: FakeWeb, made: Any) -> None:
    web.pages["/robots.txt"] = f"User-agent: *\nDisallow: /private\nSitemap: {HOST}/all.xml"
    web.pages["/all.xml"] = f"<sitemapindex><sitemap><loc>{HOST}/en.xml.gz</loc></sitemap></sitemapindex>"
    web.sitemap("/fees", "/private/x", "https://other.example/y", "/gone", at="/en.xml.gz")
    web.pages["/en.xml.gz"] = gzip.compress(str(web.pages["/en.xml.gz"]).encode())
    web.page("/fees", "12 euros")
    web.page("/private/x")
    [page] = await pages(made())
    assert isinstance(page, PageDocument)
    assert (page.id, page.lang, page.url, page.title) == ("/fees", "en", f"{HOST}/fees", "/fees")
    assert "12 euros" in page.content
    assert "/private/x" not in web.asked


async def test_an_unchanged_page_costs_a_304_and_is_there_all_the_same(web: FakeWeb, made: Any) -> None:
    web.sitemap("/a", "/b")
    web.page("/a")
    web.page("/b")
    [first, _] = await pages(made())
    web.page("/b", "new")
    [again, changed] = await pages(made())
    assert again == first
    assert web.unchanged == ["/a"]
    assert isinstance(changed, PageDocument)
    assert "new" in changed.content


async def test_another_etag_with_the_same_text_is_no_new_revision(web: FakeWeb, made: Any) -> None:
    web.sitemap("/a")
    web.page("/a", head="<!-- made in 3 ms -->")
    before = await pages(made())
    web.page("/a", head="<!-- made in 4 ms -->")
    assert await pages(made()) == before
    assert web.unchanged == []


async def test_what_stands_around_the_content_is_counted_and_makes_no_new_revision(web: FakeWeb, made: Any) -> None:
    web.sitemap("/fees")
    web.pages["/fees"] = "<body><nav>Home Fees Pool</nav><main><p>12 euros</p></main><p>Imprint</p></body>"
    [page] = await pages(made())
    web.pages["/fees"] = "<body><nav>Home</nav><main><p>12 euros</p></main></body>"
    [later] = await pages(made())
    assert isinstance(page, PageDocument)
    assert isinstance(later, PageDocument)
    assert (page.left_out, later.left_out) == ({"menu": 3, "not taken for content": 1}, {"menu": 1})
    assert later.revision == page.revision


async def test_a_version_that_finds_content_otherwise_fetches_all_pages_once(
    web: FakeWeb, made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.sitemap("/fees", "/pool", lastmod="2001-01-01")
    web.page("/fees")
    web.page("/pool")
    before = await pages(made())
    monkeypatch.setattr(visits, "FINDER", visits.FINDER + 1)
    for _ in range(2):
        Visits(tmp_path / "crawls" / "visits.db").close()
        web.asked.clear()
        assert await pages(made()) == before  # what reads the same is the same revision
        assert sorted(set(web.asked) & {"/fees", "/pool"}) == (["/fees", "/pool"] if _ == 0 else [])
    assert not web.unchanged


async def test_a_page_whose_time_is_long_past_is_not_asked_for(web: FakeWeb, made: Any) -> None:
    web.sitemap("/a", lastmod="2020-01-01")
    web.page("/a")
    before = await pages(made())
    web.asked.clear()
    assert await pages(made()) == before
    assert "/a" not in web.asked
    web.sitemap("/a", lastmod="2099-01-01")
    await pages(made())
    assert "/a" in web.asked


async def test_one_page_under_many_addresses_is_one_page(web: FakeWeb, made: Any) -> None:
    canonical = f'<link rel="canonical" href="{HOST}/a">'
    web.sitemap("/a?from=news", "/a", "/old", "/elsewhere", "/A#x")
    web.page("/a", head=canonical)
    web.page("/a?from=news", head=canonical)
    web.page("/elsewhere", head='<link rel="canonical" href="https://other.example/a">')
    web.moved["/old"] = "/a"
    assert await listed(made()) == ["en /a"]
    assert web.asked.count("/a") == 1


async def test_a_canonical_address_that_no_sitemap_lists_is_visited(web: FakeWeb, made: Any) -> None:
    web.sitemap("/a?x=1")
    web.page("/a?x=1", head='<link rel="canonical" href="/a">')
    web.page("/a", lang="de")
    assert await listed(made()) == ["de /a"]


async def test_pages_that_lead_in_circles_come_to_an_end(web: FakeWeb, made: Any) -> None:
    web.sitemap("/a", "/loop")
    web.page("/a", head='<link rel="canonical" href="/b">')
    web.page("/b", head='<link rel="canonical" href="/a">')
    web.errors["/loop"] = FetchRefused("/loop: more than 5 redirects", 302)
    source = made()
    [loop] = await pages(source)
    assert isinstance(loop, UnreadablePage)
    assert "more than 5 redirects" in loop.reason


async def test_a_page_whose_canonical_address_redirects_back_to_it_is_listed(web: FakeWeb, made: Any) -> None:
    web.page("/a", head='<link rel="canonical" href="/a/">')
    web.moved["/a/"] = "/a"
    for order in (("/a",), ("/a/",), ("/a", "/a/")):
        web.sitemap(*order)
        assert await listed(made()) == ["en /a"]


async def test_a_page_is_left_out_from_the_time_that_it_says(web: FakeWeb, made: Any) -> None:
    web.sitemap("/past", "/coming")
    web.page(
        "/past",
        head='<meta name="robots" content="max-snippet:5, unavailable_after: Saturday, 30-Nov-24 12:00:00 GMT">',
    )
    web.page("/coming", head='<meta name="robots" content="unavailable_after: 2999-01-01">')
    for _ in range(2):
        assert await omitted(made()) == {"/past": "unavailable_after 2024-11-30"}
    assert web.asked.count("/coming") == 2
    assert "/coming" not in web.unchanged  # its time is read again


async def test_what_is_not_for_searches_and_what_is_no_text_is_not_listed(web: FakeWeb, made: Any) -> None:
    web.sitemap("/hidden", "/tagged", "/picture", "/plan.pdf")
    web.page("/hidden", head='<meta name="robots" content="noindex">')
    web.page("/tagged")
    web.headers["/tagged"] = {"x-robots-tag": "noindex"}
    web.pages["/picture"], web.headers["/picture"] = b"\x89PNG", {"content-type": "image/png"}
    web.pages["/plan.pdf"], web.headers["/plan.pdf"] = b"%PDF", {"content-type": "application/pdf"}
    [plan] = await pages(made())
    assert isinstance(plan, PageDocument)
    assert (plan.title, [one.url for one in plan.attachments]) == ("plan.pdf", [f"{HOST}/plan.pdf"])


async def test_what_is_left_out_is_named_with_its_reason_also_the_next_time(web: FakeWeb, made: Any) -> None:
    web.pages["/robots.txt"] = "User-agent: *\nDisallow: /intern"
    web.sitemap("/a", "/a?x=1", "/old", "/gone", "/hidden", "/intern/x", "/drafts/y", "/logo")
    web.page("/a")
    web.page("/a?x=1", head=f'<link rel="canonical" href="{HOST}/a">')
    web.moved["/old"] = "/a"
    web.page("/hidden", head='<meta name="robots" content="noindex">')
    web.pages["/logo"], web.headers["/logo"] = b"\x89PNG", {"content-type": "image/png"}
    for _ in range(2):
        assert await omitted(made(exclude=["/drafts/"])) == {
            "/a?x=1": f"its canonical address is {HOST}/a",
            "/old": f"redirects to {HOST}/a",
            "/gone": "the server answered 404",
            "/hidden": "noindex",
            "/intern/x": "robots.txt forbids it",
            "/drafts/y": "the connector's `exclude`",
            "/logo": "no text is read from image/png",
        }
    assert "/logo" in web.unchanged


async def test_visits_that_an_older_version_kept_are_read(tmp_path: Path) -> None:
    file = tmp_path / "visits.db"
    Visits(file).close()
    with sqlite3.connect(file) as db:
        db.execute("ALTER TABLE visit DROP COLUMN why")
        db.execute("INSERT INTO visit (url, kind, target, fetched_at, page_id, lang, revision) "
                   "VALUES ('/a', 'nothing', '', 7, '', '', 0)")  # fmt: skip
    visits = Visits(file)
    assert visits.get("/a") == Visit("/a", "nothing", fetched_at=7)
    visits.close()


async def test_links_are_followed_within_the_site_and_its_rules(
    web: FakeWeb, made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sitemap_source, "MAX_DEPTH", 2)
    web.pages["/robots.txt"] = "User-agent: *\nDisallow: /intern"
    web.page("/", links=("/a", "/a#top", "https://other.example/", "/intern", "/logo.png", "/calendar/1", "mailto:x"))
    web.page("/a", links=("/", "/b"))
    web.page("/b", links=("/c",))
    web.page("/c")
    web.page("/calendar/1", links=("/calendar/2",))
    assert await listed(made(crawl=True, exclude=["/calendar/"])) == ["en /", "en /a", "en /b"]
    assert web.asked == ["/robots.txt", "/", "/a", "/b"]


async def test_a_crawl_goes_on_from_what_an_unchanged_page_linked_to(web: FakeWeb, made: Any) -> None:
    web.page("/", links=("/a",))
    web.page("/a")
    await listed(made(crawl=True))
    assert await listed(made(crawl=True)) == ["en /", "en /a"]
    assert web.unchanged == ["/", "/a"]
    web.errors["/"] = ServerUnavailable("/: the server answered 500")
    assert await listed(made(crawl=True)) == ["en /", "en /a"]  # its links are still known


@pytest.mark.parametrize("crawl", [True, False])
async def test_a_trap_of_pages_without_end_is_refused(
    web: FakeWeb, made: Any, crawl: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sitemap_source, "MAX_DEPTH", 100)
    web.sitemap(*(f"/{n}" for n in range(60)))
    for n in range(60):
        web.page(f"/{n}", links=(f"/{n + 1}",))
    web.page("/", links=("/0",))
    with pytest.raises(NotASitemap, match="more than 50 addresses"):
        await listed(made(crawl=crawl, max_pages=50))


@pytest.mark.parametrize(
    ("robots", "sitemap", "error"),
    [
        (ServerUnavailable("robots.txt: the server answered 503"), None, ServerUnavailable),
        (None, FetchRefused("sitemap.xml: the server answered 404", 404), FetchRefused),
        (None, ServerUnavailable("sitemap.xml: the server answered 500"), ServerUnavailable),
        (FetchRefused("10.0.0.1, which is not public"), None, FetchRefused),
    ],
)
async def test_when_nobody_knows_all_pages_nothing_is_listed(
    web: FakeWeb, made: Any, robots: Exception | None, sitemap: Exception | None, error: type[Exception]
) -> None:
    web.sitemap("/a")
    web.page("/a")
    for path, said in (("/robots.txt", robots), ("/sitemap.xml", sitemap)):
        if said is not None:
            web.errors[path] = said
    with pytest.raises(error):
        await listed(made())


async def test_http_canonicals_behind_https_are_the_pages_themselves(web: FakeWeb, made: Any) -> None:
    # codelibs/fess issue 1199, algolia/docsearch issue 1222
    web.sitemap("/a", "/b", "/b?x=1")
    for path in ("/a", "/b", "/b?x=1"):
        web.page(path, head=f'<link rel="canonical" href="http://www.town.example{path.partition("?")[0]}">')
    assert sorted(await listed(made())) == ["en /a", "en /b"]


async def test_translations_that_a_sitemap_names_are_visited(web: FakeWeb, made: Any) -> None:
    web.pages["/sitemap.xml"] = (
        '<urlset xmlns:xhtml="http://www.w3.org/1999/xhtml"><url><loc>/a</loc>'
        '<xhtml:link rel="alternate" hreflang="de" href="/de/a"/></url></urlset>'
    )
    web.page("/a")
    web.page("/de/a", lang="de")
    assert await listed(made()) == ["en /a", "de /de/a"]


async def test_robots_txt_vouches_for_a_sitemap_at_another_host(web: FakeWeb, made: Any) -> None:
    # crawler-commons/crawler-commons issue 81
    cdn = "https://cdn.example/index.xml"
    web.pages["/robots.txt"] = f"Sitemap: {cdn}"
    web.pages[cdn] = (
        "<sitemapindex><sitemap><loc>/a.xml</loc></sitemap>"
        "<sitemap><loc>http://169.254.169.254/b.xml</loc></sitemap></sitemapindex>"
    )
    web.sitemap("/a", "https://cdn.example/x", "https://other.example/y", at="https://cdn.example/a.xml")
    web.page("/a")
    found = [one async for one in made().inventory()]
    assert [one.page_id for one in found if isinstance(one, Listed)] == ["/a"]
    [refused] = [one for one in found if isinstance(one, UnreadablePage)]
    assert "at another host" in refused.reason
    assert not any("169.254" in path for path in web.asked)


async def test_one_broken_sitemap_stops_no_other_and_deletes_nothing(web: FakeWeb, made: Any, tmp_path: Path) -> None:
    # GateNLP/ultimate-sitemap-parser issue 6
    log = Log()
    names = ("one", "two")
    web.pages["/sitemap.xml"] = "<sitemapindex>{}</sitemapindex>".format(
        "".join(f"<sitemap><loc>{HOST}/{name}.xml</loc></sitemap>" for name in names)
    )
    for name in names:
        web.sitemap(f"/{name}", at=f"/{name}.xml")
        web.page(f"/{name}")
    await run(made(), log, tmp_path)
    del web.pages["/two.xml"]
    web.sitemap("/new", at="/one.xml")
    web.page("/new")
    found = await run(made(), log, tmp_path)
    assert (found.refused, found.missing, found.deleted, found.failed) == (True, 1, 0, 1)
    assert found.failures[0].reason == f"{HOST}/two.xml: the server answered 404"
    assert set(log.titles()) == {"en:/one", "en:/two", "en:/new"}
    web.sitemap("/two", at="/two.xml")
    found = await run(made(), log, tmp_path)
    assert (found.refused, found.deleted, found.failed) == (False, 1, 0)


async def test_a_date_that_nobody_believes_ends_no_run(web: FakeWeb, made: Any) -> None:
    web.sitemap("/a", lastmod="9999-12-31")
    web.page("/a")
    for _ in range(2):
        assert await listed(made()) == ["en /a"]


async def test_a_sitemap_at_another_host_is_not_followed(web: FakeWeb, made: Any) -> None:
    web.pages["/sitemap.xml"] = (
        "<sitemapindex><sitemap><loc>http://169.254.169.254/latest/meta-data.xml</loc></sitemap></sitemapindex>"
    )
    with pytest.raises(NotASitemap, match="at another host"):
        await listed(made())
    assert web.asked == ["/robots.txt", "/sitemap.xml"]


@pytest.mark.parametrize("crawl", [True, False])
async def test_a_site_that_moved_to_another_host_is_named_not_empty(web: FakeWeb, made: Any, crawl: bool) -> None:
    web.sitemap("https://town.example/a", "https://town.example/b")
    web.page("/", head='<link rel="canonical" href="https://town.example/">')
    with pytest.raises(NotASitemap, match=r"its pages are at https://town.example; give that as `url`"):
        await listed(made(crawl=crawl))


async def test_an_index_that_names_itself_comes_to_an_end(web: FakeWeb, made: Any) -> None:
    web.pages["/sitemap.xml"] = f"<sitemapindex><sitemap><loc>{HOST}/sitemap.xml</loc></sitemap></sitemapindex>"
    assert await listed(made()) == []


async def test_a_server_that_is_away_is_not_asked_for_every_page(web: FakeWeb, made: Any) -> None:
    paths = [f"/{n}" for n in range(200)]
    web.sitemap(*paths)
    web.errors = {path: ServerUnavailable(f"{path}: no connection") for path in paths}
    with pytest.raises(ServerUnavailable):
        await listed(made())
    assert len(web.asked) < 100


async def test_some_pages_that_fail_are_told_and_stop_no_other(web: FakeWeb, made: Any) -> None:
    paths = [f"/{n}" for n in range(FAILURES)]
    web.sitemap(*paths)
    for path in paths:
        web.page(path)
    web.errors["/3"] = ServerUnavailable("/3: the server answered 500")
    web.errors["/4"] = FetchRefused("/4: its certificate is not good")
    found = await pages(made())
    assert [one.reason for one in found if isinstance(one, UnreadablePage)] == [
        "/3: the server answered 500", "/4: its certificate is not good",
    ]  # fmt: skip
    assert len(found) == FAILURES


async def test_a_server_that_asks_for_patience_gets_it(
    web: FakeWeb, made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if seconds > 1:
            web.errors.clear()

    web.sitemap("/a")
    web.page("/a")
    web.errors["/a"] = ServerUnavailable("/a: the server answered 429", 7.0)
    monkeypatch.setattr(discover.asyncio, "sleep", sleep)
    assert await listed(made()) == ["en /a"]
    assert 6.5 < max(slept) <= 7.0


async def test_never_more_at_once_than_it_may_be(web: FakeWeb, made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemap_source, "CONCURRENCY", 3)
    paths = [f"/{n}" for n in range(40)]
    web.sitemap(*paths)
    for path in paths:
        web.page(path)
    web.takes = 0.02
    await listed(made())
    assert web.most_at_once == 3


async def test_a_longer_delay_in_robots_txt_wins(web: FakeWeb, made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    original = asyncio.sleep

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await original(0)

    monkeypatch.setattr(discover.asyncio, "sleep", sleep)
    web.pages["/robots.txt"] = "User-agent: *\nCrawl-delay: 5"
    web.sitemap("/a", "/b")
    await listed(made(delay=0.1))
    assert sorted(round(seconds) for seconds in slept if seconds > 1) == [5, 10]


async def run(source: SitemapSource, log: Log, home: Path, **how: Any) -> Reconciled:
    return await reconcile(source, SITE, "site", log.opened, log.intake(), home, **how)


async def test_reconciled_the_log_says_what_the_site_says(web: FakeWeb, made: Any, tmp_path: Path) -> None:
    log = Log()
    web.sitemap("/a", "/b", "/c", "/d")
    for path in "abcd":
        web.page(f"/{path}")
    await run(made(), log, tmp_path)
    web.page("/a", "new")
    del web.pages["/b"]  # still listed, but gone
    web.errors["/c"] = FetchRefused("/c: larger than 1 byte", 200)
    web.page("/e")
    web.sitemap("/a", "/b", "/c", "/e")
    found = await run(made(), log, tmp_path)
    assert (found.missing, found.deleted, found.failed) == (1, 2, 1)
    assert set(log.titles()) == {"en:/a", "en:/c", "en:/e"}
    assert "new" in log.public()["town:en:%2Fa"].content
    web.errors.clear()
    web.page("/b")
    web.sitemap("/a", "/b", "/c", "/e")
    await run(made(), log, tmp_path)
    assert set(log.titles()) == {"en:/a", "en:/b", "en:/c", "en:/e"}
    count = len(log.changes)
    await run(made(), log, tmp_path)
    assert len(log.changes) == count


@pytest.mark.parametrize("status", [401, 403])
async def test_a_page_that_visitors_may_not_read_any_more_leaves_the_search(
    web: FakeWeb, made: Any, tmp_path: Path, status: int
) -> None:
    log = Log()
    web.sitemap("/a", "/b", "/c", "/never")
    for path in ("/", "/a", "/b", "/c"):
        web.page(path)
    for path in ("/b", "/never"):
        web.errors[path] = FetchRefused(f"{path}: the server answered {status}", status)
    await run(made(), log, tmp_path)
    assert set(log.titles()) == {"en:/a", "en:/c"}
    del web.errors["/b"]
    await run(made(), log, tmp_path)
    assert set(log.titles()) == {"en:/a", "en:/b", "en:/c"}
    web.errors["/b"] = FetchRefused(f"/b: the server answered {status}", status)
    found = await run(made(), log, tmp_path)
    assert (found.deleted, found.failed) == (1, 0)
    assert set(log.titles()) == {"en:/a", "en:/c"}


async def test_a_server_that_refuses_us_altogether_takes_no_page_out_of_the_search(
    web: FakeWeb, made: Any, tmp_path: Path
) -> None:
    log = Log()
    web.sitemap("/a", "/b", "/c")
    for path in ("/", "/a", "/b", "/c"):
        web.page(path)
    await run(made(), log, tmp_path)
    for path in ("/", "/c"):  # the limit of a firewall
        web.errors[path] = FetchRefused(f"{path}: the server answered 403", 403)
    found = await run(made(), log, tmp_path)
    assert (found.deleted, found.failed) == (0, 1)
    assert set(log.titles()) == {"en:/a", "en:/b", "en:/c"}


async def test_a_server_that_refuses_us_takes_no_page_out_that_was_never_visited_from_here(
    web: FakeWeb, made: Any, tmp_path: Path
) -> None:
    log = Log()
    web.sitemap("/a", "/b")
    for path in ("/", "/a", "/b"):
        web.page(path)
    await run(made(), log, tmp_path)
    with closing(sqlite3.connect(tmp_path / "crawls" / "visits.db")) as visits, visits:
        visits.execute("DELETE FROM visit")
    for path in ("/", "/b"):
        web.errors[path] = FetchRefused(f"{path}: the server answered 403", 403)
    source = made()
    found = await run(source, log, tmp_path)
    assert (found.deleted, found.failed) == (0, 1)
    assert set(log.titles()) == {"en:/a", "en:/b"}
    [(_, seen)] = [each async for each in source.visited([f"{HOST}/b"])]
    assert isinstance(seen, Listed)


async def test_addresses_that_have_changed_are_visited_at_once(
    web: FakeWeb, made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.pages["/robots.txt"] = "User-agent: *\nDisallow: /private"
    for path in ("/fees", "/gone", "/old", "/new", "/down", "/private/x"):
        web.page(path)
    settings, log = ConnectorsSettings.model_validate({"sites": {SITE: {"connectors": {"web": WEB}}}}), Log()

    @asynccontextmanager
    async def opened(*_: object) -> AsyncIterator[SitemapSource]:
        yield made()

    async def at(url: str) -> list[ListedPage]:
        """Two pages at each address: the website's own, and one that somebody else has put there."""
        path = url.removeprefix(HOST)
        own = [change for change in log.changes if change.page_id == path][-1:]
        ids = [change.page_id for change in own if change.op == "upsert"] + ["other"]
        return [ListedPage(page_id=id, lang="en", title="", url=url, revision=1) for id in ids]

    async def changed(*paths: str) -> list[tuple[str, str]]:
        urls = [HOST + path if path.startswith("/") else path for path in paths]
        told = await take_changed(settings, SITE, "web", urls, log.intake(), at)
        assert [one.url for one in told] == urls
        return [(one.state, one.page_key or one.detail) for one in told]

    monkeypatch.setattr(changing, "opened", opened)
    elsewhere = ("https://other.example/x", "http://127.0.0.1/x", "no address")
    assert await changed("/fees", *elsewhere, "/private/x", "/gone", "/old", "/down", "/never") == [
        ("accepted", f"{SITE}:en:%2Ffees"),
        *[("refused", "another website")] * 3,
        ("refused", "robots.txt forbids it"),
        *[("accepted", f"{SITE}:en:%2F{path}") for path in ("gone", "old", "down")],
        ("refused", "the server answered 404"),
    ]
    assert set(log.lanes) == {"save"}
    assert "/private/x" not in web.asked
    before, asked = len(log.changes), len(web.asked)
    del web.pages["/gone"]
    web.moved["/old"] = "/new"
    web.errors["/down"] = FetchRefused("the address of /down is private", None)
    assert await changed("/fees", "/gone", "/old", "/down") == [
        ("accepted", f"{SITE}:en:%2Ffees"),
        ("deleted", f"{SITE}:en:%2Fgone"),
        ("deleted", f"{SITE}:en:%2Fold"),
        ("failed", f"{SITE}:en:%2Fdown"),
    ]
    assert web.unchanged == ["/fees"]
    assert web.asked[asked:].count("/new") == 1
    last = [(change.op, change.page_id) for change in log.changes[before:]]
    assert last == [("upsert", "/fees"), ("delete", "/gone"), ("delete", "/old"), ("upsert", "/new")]
    web.errors["/robots.txt"] = ServerUnavailable("it does not answer")
    assert await changed("/fees", "https://other.example/x") == [
        ("failed", "it does not answer"),
        ("refused", "another website"),
    ]


async def test_documents_that_a_page_links_to_are_attached(web: FakeWeb, made: Any) -> None:
    def write(*anchors: str) -> None:
        web.pages["/plan"] = f"<html><base href='/files/'><main>Plans. {' '.join(anchors)}</main>{menu}</html>"

    async def attached(**how: Any) -> tuple[str, list[tuple[str, str, str]]]:
        [page] = [one for one in await pages(made(**how)) if isinstance(one, PageDocument) and one.id == "/plan"]
        revisions.append(page.revision or 0)
        return page.id, [(str(one.url).removeprefix(HOST), one.title, one.media_type) for one in page.attachments]

    revisions: list[int] = []
    menu = "<nav><a href='/menu.pdf'>Menu</a></nav>"
    web.pages["/robots.txt"] = "User-agent: *\nDisallow: /secret"
    web.sitemap("/plan")
    pdf = "<a href='fees.PDF?v=2#page=3'>All <b>fees</b></a>"
    others = (
        "<a href='http://169.254.169.254/x.pdf'>x</a><a href='https://cdn.example/x.pdf'>x</a>"
        "<a href='https://www.town.example:8443/x.pdf'>x</a><a href='/secret/x.pdf'>x</a><a href='/old/x.pdf'>x</a>"
        "<a rel='nofollow' href='/x.pdf'>x</a><a href='/x.exe'>x</a><a href='//[/x.pdf'>x</a>"
    )
    write(pdf, pdf, "<a href='/way.odt'></a>", others)
    how = {"linked_documents": True, "exclude": ("/old/",)}
    assert await attached() == ("/plan", [])
    fees = ("/files/fees.PDF?v=2", "All fees", "application/pdf")
    found = [fees, ("/way.odt", "way.odt", "application/vnd.oasis.opendocument.text")]
    web.pages["/plan"] += " "  # another etag
    assert await attached(**how) == ("/plan", found)
    write(pdf)
    assert await attached(**how) == ("/plan", [fees])
    write(*(f"<a href='/{n}.docx'>{n}</a>" for n in range(300)))
    assert len((await attached(**how))[1]) == DOCUMENTS
    write("no links")
    assert await attached(**how) == ("/plan", [])
    assert revisions == sorted(set(revisions))


async def test_a_crawl_makes_no_page_of_an_attached_document(web: FakeWeb, made: Any, tmp_path: Path) -> None:
    web.page("/", links=("/a.pdf", "/b"))
    web.page("/b")
    web.pages["/a.pdf"] = b"%PDF"
    web.headers["/a.pdf"] = {"content-type": "application/pdf"}
    assert await listed(made(crawl=True)) == ["en /", "en /a.pdf", "en /b"]
    assert await listed(made(crawl=True, linked_documents=True)) == ["en /", "en /a.pdf", "en /b"]  # 304
    for documents in (True, True, False):
        Visits(tmp_path / "crawls" / "visits.db", documents=documents).close()
        expected = ["en /", "en /b"] if documents else ["en /", "en /a.pdf", "en /b"]
        assert await listed(made(crawl=True, linked_documents=documents)) == expected


FEED = f"{HOST}/feed"


def atom(*entries: tuple[str, str]) -> str:
    inner = "".join(f'<entry><link href="{url}"/><updated>{at}</updated></entry>' for url, at in entries)
    return f'<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><link href="{HOST}/"/>{inner}</feed>'


@pytest.mark.parametrize(
    ("feed", "entries"),
    [
        (
            "<rss version='2.0'><channel><link>/</link>"
            "<item><link> /a </link><guid>x</guid><pubDate>Fri, 20 Nov 2026 09:00:00 +0100</pubDate></item>"
            "<item><title>no link</title></item></channel></rss>",
            [Location(f"{HOST}/a", "2026-11-20T09:00:00+01:00")],
        ),
        (
            "<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/' "
            "xmlns:dc='http://purl.org/dc/elements/1.1/'><item><link>b</link><dc:date>2026-11-20</dc:date></item>"
            "<item><link>http://[</link></item></r:RDF>",
            [Location(f"{HOST}/b", "2026-11-20")],
        ),
        (
            "<feed xmlns='http://www.w3.org/2005/Atom'><entry><link rel='edit' href='/edit'/>"
            "<link rel='alternate' href='/c'/><published>2026-11-19</published><updated>never</updated></entry></feed>",
            [Location(f"{HOST}/c", "never")],
        ),
        (atom(*[(f"{HOST}/{n}", "") for n in range(ENTRIES + 1)]), [Location(f"{HOST}/{n}") for n in range(ENTRIES)]),
    ],
)
def test_feeds_of_each_kind(feed: str, entries: list[Location]) -> None:
    assert entries_of(feed.encode(), FEED) == entries


BOMB = (
    '<!DOCTYPE rss [<!ENTITY a "https://www.town.example/x"><!ENTITY f SYSTEM "file:///etc/passwd">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in itertools.pairwise("abcde"))
    + "]><rss><channel><item><link>&{}</link></item></channel></rss>"
)


def test_what_is_no_feed_is_refused_and_entities_are_not_read() -> None:
    for wrong in ("", "no feed", "<rss><channel>", "<html/>", "<urlset/>", '{"items": []}', "\0"):
        with pytest.raises(NotASitemap):
            entries_of(wrong.encode(), FEED)
    for entity in ("e;", "f;"):
        assert entries_of(BOMB.replace("{}", entity).encode(), FEED) == []


async def test_new_entries_of_feeds_are_visited_and_nothing_is_deleted(web: FakeWeb, made: Any) -> None:
    log = Log()
    web.pages["/robots.txt"] = "User-agent: *\nDisallow: /private"
    for path in ("/a", "/b", "/c", "/private/x"):
        web.page(path)
    elsewhere = [("https://other.example/x", ""), ("http://127.0.0.1/x", ""), ("mailto:a@b.example", "")]
    web.pages["/feed"] = atom(("/a", "1"), ("/b", "1"), ("/private/x", "1"), *elsewhere)
    web.errors["/large"] = FetchRefused("more than 5 MiB")

    async def polled() -> list[str]:
        """The pages sent by one run, and its requests."""
        before, web.asked[:], web.unchanged[:] = len(log.changes), [], []
        async for _ in poll(made(), (f"{HOST}/large", f"{HOST}/none", FEED), SITE, "site", log.intake()):
            pass
        assert {change.op for change in log.changes} == {"upsert"}
        return [change.page_id for change in log.changes[before:]]

    assert await polled() == ["/a", "/b"]
    assert "/private/x" not in web.asked
    assert set(log.lanes) == {"save"}
    assert await polled() == []
    assert (web.asked, web.unchanged) == (["/large", "/none", "/feed"], ["/feed"])

    web.page("/a", "new")
    del web.pages["/b"]
    web.pages["/feed"] = atom(("/c", "1"), ("/a", "2"), ("/b", "2"))
    assert sorted(await polled()) == ["/a", "/c"]  # the page that is gone is left to reconcile
    web.pages["/feed"] = atom(("/c", "1"))
    assert await polled() == []
    assert web.asked == ["/large", "/none", "/feed"]

    web.page("/d")
    web.pages["/feed"] = atom(("/d", "1"), ("/c", "1"))
    web.errors["/d"] = ServerUnavailable("busy")
    assert await polled() == []
    del web.errors["/d"]
    assert await polled() == ["/d"]  # although the feed is the same
    assert await polled() == []
    web.errors["/robots.txt"] = ServerUnavailable("down")
    web.pages["/feed"] = atom(("/c", "2"))
    with pytest.raises(ServerUnavailable):
        await polled()
    del web.errors["/robots.txt"]
    assert await polled() == ["/c"]
