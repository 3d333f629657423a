"""Connectors from the outside: a signed webhook, a watched folder, a crawled website; search follows each of them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.acceptance.system import Instance, eventually
from tests.acceptance.test_story import found
from tests.engine_fixture import Servers
from tests.office_files import odt
from tests.signing import SECRET, signed

INDEXNOW = "0123456789abcdef"
pytestmark = pytest.mark.engine


@dataclass(frozen=True)
class Connected:
    """A running system with its connectors."""

    instance: Instance
    site: httpx.Client
    docs: Path
    web: Path
    address: str  # of the website

    def reconciled(self, connector: str, *options: str) -> tuple[int, dict[str, Any]]:
        done = self.instance.run("reconcile", self.instance.site, connector, "--json", *options)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)[0]


class _Quiet(SimpleHTTPRequestHandler):
    extensions_map = {**SimpleHTTPRequestHandler.extensions_map, "": "text/html"}  # noqa: RUF012  # as its base does

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def connected(engine: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connected]:
    home = tmp_path_factory.mktemp("connected")
    docs, web = home / "docs", home / "web"
    docs.mkdir()
    web.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(web)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    instance = Instance(home, engine, PAGEWIRE_FETCH_ALLOW="127.0.0.1", SHOP_SECRET=SECRET)
    here = f"http://127.0.0.1:{server.server_port}"
    feeds = [f"{here}/{name}.xml" for name in ("large", "bomb", "feed")]
    connectors = {
        "shop": {"kind": "push", "secret": "${SHOP_SECRET}"},
        "docs": {"kind": "folder", "path": str(docs)},
        "web": {"kind": "sitemap", "url": f"{here}/", "crawl": True, "delay": 0},
        "library": {"kind": "sitemap", "url": f"{here}/library.xml", "delay": 0, "linked_documents": True},
        "pushed": {"kind": "sitemap", "url": here, "delay": 0, "indexnow_key": INDEXNOW},
        "news": {"kind": "sitemap", "url": here, "delay": 0, "feeds": feeds, "feed_interval": 1},
    }
    sites = {instance.site: {"languages": ["en", "de"], "connectors": connectors}}
    (home / "pagewire.yaml").write_text(yaml.safe_dump({"sites": sites}))
    try:
        with instance.started("up") as up, instance.client(up.url) as client:
            yield Connected(instance, client, docs, web, here)
    finally:
        server.shutdown()
        server.server_close()


def shown(site: httpx.Client, word: str) -> list[str] | None:
    """Ids of the pages with this word; None while nobody can say: an index that was just made."""
    answer = site.get("/search", params={"q": word, "mode": "keyword"})
    return [hit["page_id"] for hit in answer.json()["hits"]] if answer.status_code == 200 else None


def deliver(site: httpx.Client, *lines: dict[str, Any], **more: str) -> httpx.Response:
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    request = site.build_request("POST", "/webhooks/shop", content=body, headers=signed(body) | more)
    del request.headers["Authorization"]  # the signature is all it needs
    return site.send(request)


def line(op: str, revision: int, content: str = "") -> dict[str, Any]:
    page: dict[str, Any] = {"id": "lamp", "lang": "en", "revision": revision}
    return {"op": op, "page": page | ({"content": content} if op == "upsert" else {})}


def test_what_a_webhook_says_is_searched_at_once(connected: Connected) -> None:
    site = connected.site
    assert deliver(site).json() == {"accepted": 0, "rejected": 0, "superseded": 0, "errors": []}
    saved = line("upsert", 1_000, "<p>A brass lantern with a chrysoprase lens.</p>")
    assert deliver(site, saved).json()["accepted"] == 1
    eventually(lambda: shown(site, "chrysoprase") == ["lamp"])
    edited = line("upsert", 2_000, "<p>A brass lantern with a tourmaline lens.</p>")
    assert deliver(site, edited).json()["accepted"] == 1
    eventually(lambda: shown(site, "tourmaline") == ["lamp"])
    assert deliver(site, saved).json()["superseded"] == 1  # once more, inside the window
    assert deliver(site, line("delete", 3_000)).json()["accepted"] == 1
    eventually(lambda: shown(site, "lantern") == [])
    assert deliver(site, edited).json()["superseded"] == 1
    assert found(site, "lantern", "keyword") == []


def test_a_webhook_that_nobody_signed_changes_nothing(connected: Connected) -> None:
    body = json.dumps(line("upsert", 9_000, "<p>An obsidian forgery.</p>")).encode()
    for headers in ({}, signed(body, "whsec_" + "A" * 40), signed(body + b" "), signed(body, age=400)):
        answer = connected.site.post("/webhooks/shop", content=body, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (401, "bad-signature")
    answer = connected.site.post("/webhooks/docs", content=body, headers=signed(body))
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown-connector")
    assert found(connected.site, "obsidian", "keyword") == []


def test_search_follows_a_watched_folder(connected: Connected) -> None:
    docs, site = connected.docs, connected.site
    (docs / "harbour").mkdir()
    (docs / "harbour" / "moor.md").write_text("---\ntitle: Mooring\n---\nAsk for the *zirconium* key.")
    with connected.instance.started("watch", connected.instance.site, "docs") as watching:
        eventually(lambda: shown(site, "zirconium") == ["harbour/moor"])
        (docs / "harbour" / "moor.md").write_text("---\ntitle: Mooring\n---\nAsk for the *palladium* key.")
        eventually(lambda: shown(site, "palladium") == ["harbour/moor"])
        (docs / "harbour" / "moor.md").rename(docs / "harbour" / "berth.md")
        eventually(lambda: shown(site, "palladium") == ["harbour/berth"])
        (docs / "harbour").rename(docs / "port")
        eventually(lambda: shown(site, "palladium") == ["port/berth"])
        (docs / "port" / "berth.md").unlink()
        eventually(lambda: shown(site, "palladium") == [])
        (docs / "plan.odt").write_bytes(b"PK damaged")
        eventually(lambda: "note en plan.odt: " in " ".join(watching.log.read_text().split()))
        (docs / "plan.odt").unlink()
        receipt = partial(site.get, "/pages/plan.odt/receipt", params={"lang": "en"})
        eventually(lambda: receipt().json()["state"] == "deleted")
    (docs / "tide.md").write_text("High tide at the rhodium mark.")
    (docs / "ebb.md").write_text("Low tide at the iridium mark.")
    code, seen = connected.reconciled("docs", "--dry-run")
    assert (code, seen["missing"], seen["sent"]) == (1, 2, 0)
    code, done = connected.reconciled("docs")
    assert (code, done["sent"]) == (0, 2)
    eventually(lambda: shown(site, "rhodium") == ["tide"])
    (docs / "tide.md").unlink()
    code, done = connected.reconciled("docs")
    assert (code, done["deleted"]) == (0, 1)
    eventually(lambda: shown(site, "rhodium") == [])
    assert connected.reconciled("docs")[1]["gone"] == 0


def test_a_website_is_crawled_and_followed(connected: Connected) -> None:
    web, site = connected.web, connected.site

    def write(name: str, text: str, *links: str) -> None:
        anchors = "".join(f'<a href="/{link}">{link}</a>' for link in links)
        (web / name).write_text(
            f'<html lang="en"><head><title>{name}</title></head><body><main>{text} {anchors}</main></body></html>'
        )

    write("index.html", "A vermilion gate.", "one", "two", "secret")
    write("one", "A cobalt door.", "three")
    write("two", "An ochre window.")
    write("three", "A magenta roof.")
    write("secret", "A hidden cellar.")
    (web / "robots.txt").write_text("User-agent: *\nDisallow: /secret\n")
    imported = connected.instance.run("import", connected.instance.site, "web")
    assert imported.returncode == 0, imported.stderr
    assert found(site, "magenta", "keyword") == ["/three"]
    assert found(site, "cellar", "keyword") == []
    write("two", "A saffron window.")
    write("one", "A cobalt door.")  # nothing leads to three any more
    code, done = connected.reconciled("web")
    assert (code, done["newer"], done["gone"], done["sent"], done["deleted"]) == (0, 2, 1, 2, 1)
    eventually(lambda: shown(site, "saffron") == ["/two"])
    eventually(lambda: shown(site, "magenta") == [])
    code, done = connected.reconciled("web")
    assert (code, done["sent"], done["deleted"]) == (0, 0, 0)


def test_pages_that_indexnow_names_are_searched_or_gone(connected: Connected) -> None:
    web, site = connected.web, connected.site
    (web / "robots.txt").unlink(missing_ok=True)

    def push(url: str, key: str = INDEXNOW) -> int:
        order = {"host": site.base_url.host, "key": key, "keyLocation": f"{url}/{key}.txt", "urlList": [url]}
        request = site.build_request("POST", "/connectors/pushed/indexnow", json=order)
        del request.headers["Authorization"]
        return site.send(request).status_code

    (web / "tram").write_text("<html><title>News</title><main>The tram is of yttrium.</main></html>")
    address = f"{connected.address}/tram"
    assert push(address, "another-key") == 403
    assert push("http://127.0.0.1:1/tram") == 422
    assert push(address) == 202
    eventually(lambda: shown(site, "yttrium") == ["/tram"])
    (web / "tram").unlink()
    assert push(address) == 202
    eventually(lambda: shown(site, "yttrium") == [])


def test_a_linked_document_is_searched_with_its_page_and_gone_with_the_link(connected: Connected) -> None:
    web, site = connected.web, connected.site
    (web / "robots.txt").unlink(missing_ok=True)
    (web / "library.xml").write_text("<urlset><url><loc>/library</loc></url></urlset>")
    (web / "statute.odt").write_bytes(odt("<text:p>Readers pay a thorium fee.</text:p>"))
    page = "<html><title>Library</title><main>The library is open. {}</main></html>"

    def reconciled(link: str) -> tuple[int, int]:
        (web / "library").write_text(page.format(link))
        code, done = connected.reconciled("library")
        return code, done["sent"]

    assert reconciled("<a href='/statute.odt'>Statute</a>") == (0, 1)
    eventually(lambda: shown(site, "thorium") == ["/library"])
    [hit] = site.get("/search", params={"q": "thorium", "mode": "keyword"}).json()["hits"]
    assert "Statute" in str(hit)
    assert hit["url"].endswith("/statute.odt")
    assert reconciled("The statute is withdrawn.") == (0, 1)
    eventually(lambda: shown(site, "thorium") == [])


def test_new_entries_of_a_feed_are_searched_and_bad_feeds_stop_no_other(connected: Connected) -> None:
    web, site, instance = connected.web, connected.site, connected.instance
    (web / "robots.txt").unlink(missing_ok=True)

    def publish(*names: str) -> None:
        for name in names:
            (web / name).write_text(f"<html><title>News</title><main>The {name} festival begins.</main></html>")
        items = [f"<item><link>{link}</link></item>" for link in (*map("/{}".format, names), "http://127.0.0.1:1/x")]
        (web / "feed.xml").write_text(f"<rss version='2.0'><channel>{''.join(items)}</channel></rss>")

    (web / "large.xml").write_bytes(b"<rss><channel>" + b"<item/>" * 1_500_000 + b"</channel></rss>")
    (web / "bomb.xml").write_text("<!DOCTYPE rss [<!ENTITY a '&b;&b;'><!ENTITY b '&a;'>]><rss><channel>&a;</rss>")
    publish("beryllium")
    with instance.started("watch", instance.site, "news") as watching:
        eventually(lambda: shown(site, "beryllium") == ["/beryllium"])
        publish("scandium")  # the older entry is not in the feed any more, and stays searchable
        eventually(lambda: shown(site, "scandium") == ["/scandium"])
        assert watching.stop() == 0
    said = watching.log.read_text()
    assert "large.xml" in said
    assert "bomb.xml: not XML" in said
    assert found(site, "beryllium", "keyword") == ["/beryllium"]
    refused = instance.run("watch", instance.site, "web")
    assert (refused.returncode, "sitemaps with `feeds`" in refused.stderr) == (2, True)


def test_audit_agrees_in_the_end(connected: Connected) -> None:
    eventually(lambda: connected.instance.run("audit", connected.instance.site).returncode == 0, timeout=120)
