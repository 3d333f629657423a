"""A feed's hub, a small one of the test's own over HTTP, and the real system: a push is searched without a poll."""

from __future__ import annotations

import hmac
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import httpx
import pytest
import yaml

from infra.engine.state import any_free
from tests.acceptance.system import Instance, eventually
from tests.acceptance.test_connectors import shown
from tests.engine_fixture import Servers

pytestmark = pytest.mark.engine


@dataclass
class Web:
    """A website, and a hub that takes subscriptions as W3C's recommendation wants it: 202, then it verifies."""

    folder: Path
    address: str = ""
    confirmed: dict[str, str] = field(default_factory=dict)  # callbacks and their keys
    verifications: list[int] = field(default_factory=list)

    def subscribed(self, form: dict[str, str]) -> None:
        challenge = "a-challenge-that-nobody-guesses"
        asked = {name: form[name] for name in ("hub.mode", "hub.topic")}
        question = httpx.URL(form["hub.callback"]).copy_merge_params(
            {**asked, "hub.challenge": challenge, "hub.lease_seconds": form["hub.lease_seconds"]}
        )
        answer = httpx.get(question, timeout=30)
        self.verifications.append(answer.status_code)
        if answer.status_code == 200 and answer.text == challenge:
            self.confirmed[form["hub.callback"]] = form["hub.secret"]

    def push(self, key: str | None = None) -> list[int]:
        """Hand the feed as it is to all subscribers."""
        body, statuses = (self.folder / "feed.xml").read_bytes(), []
        for callback, own in self.confirmed.items():
            signature = hmac.digest((key or own).encode(), body, "sha256").hex()
            headers = {"X-Hub-Signature": f"sha256={signature}", "Content-Type": "application/rss+xml"}
            statuses.append(httpx.post(callback, content=body, headers=headers, timeout=30).status_code)
        return statuses

    def publish(self, name: str) -> None:
        (self.folder / name).write_text(f"<html><title>News</title><main>The {name} festival begins.</main></html>")
        (self.folder / "feed.xml").write_text(
            "<rss version='2.0' xmlns:atom='http://www.w3.org/2005/Atom'><channel>"
            f"<atom:link rel='hub' href='{self.address}/hub'/><item><link>/{name}</link></item></channel></rss>"
        )


@contextmanager
def serving(folder: Path) -> Iterator[Web]:
    web = Web(folder)

    class Handler(SimpleHTTPRequestHandler):
        extensions_map = {**SimpleHTTPRequestHandler.extensions_map, "": "text/html"}  # noqa: RUF012  # as its base

        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, directory=str(folder), **more)

        def do_POST(self) -> None:
            form = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
            self.send_response(202)
            self.end_headers()
            threading.Thread(target=web.subscribed, args=(form,), daemon=True).start()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    web.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()


def test_a_push_of_the_hub_is_searched_without_a_poll(engine: Servers, tmp_path: Path) -> None:
    folder, port = tmp_path / "web", any_free(set())
    folder.mkdir()
    instance = Instance(tmp_path, engine, PAGEWIRE_FETCH_ALLOW="127.0.0.1")
    with serving(folder) as web:
        web.publish("beryllium")
        connector = {
            "kind": "sitemap", "url": web.address, "delay": 0, "feeds": [f"{web.address}/feed.xml"],
            "feed_interval": 86_400, "websub": f"http://127.0.0.1:{port}",
        }  # fmt: skip
        sites = {instance.site: {"languages": ["en"], "connectors": {"news": connector}}}
        (tmp_path / "pagewire.yaml").write_text(yaml.safe_dump({"sites": sites}))
        with (
            instance.started("up", "--port", str(port)) as up,
            instance.client(up.url) as site,
            instance.started("watch", instance.site, "news") as watching,
        ):
            eventually(lambda: shown(site, "beryllium") == ["/beryllium"])  # by the first poll
            eventually(lambda: len(web.confirmed) == 1)
            web.publish("scandium")
            assert web.push("not the key") == [202]
            assert web.push() == [202]
            eventually(lambda: shown(site, "scandium") == ["/scandium"])
            web.publish("yttrium")
            assert web.push("not the key") == [202]
            assert web.push(None) == [202]
            eventually(lambda: shown(site, "yttrium") == ["/yttrium"])
            assert web.verifications == [200]
            assert watching.stop() == 0
        assert "not signed by the hub" in up.log.read_text()
