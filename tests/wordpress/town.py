"""A real WordPress and a real Pagewire, connected, and compared from the outside."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.acceptance.system import Instance, Started, eventually
from tests.engine_fixture import Servers
from tests.wordpress.peer import USER, WordPress
from tests.wordpress.receiver import SECRET

MARK = "kranichmark"  # a word that stands on every page of these tests


class Town:
    """WordPress and Pagewire, connected."""

    def __init__(self, wordpress: WordPress, instance: Instance) -> None:
        self.wordpress = wordpress
        self.instance = instance
        self.pagewire: Started | None = None

    @contextmanager
    def started(self) -> Iterator[str]:
        """Pagewire's address; WordPress knows nothing of it."""
        with self.instance.started("up") as self.pagewire:
            yield self.pagewire.url
        self.pagewire = None

    @contextmanager
    def up(self) -> Iterator[None]:
        with self.started() as address:
            self.wordpress.configure(endpoint=address, private=True)
            yield

    @property
    def client(self) -> httpx.Client:
        assert self.pagewire
        return self.instance.client(self.pagewire.url)

    def found(self) -> dict[str, tuple[str, str]]:
        """Pages that visitors find: id -> address and what the page says."""
        with self.client as client:
            answer = client.get("/search", params={"q": MARK, "mode": "keyword", "size": 100})
            if answer.status_code == 503:  # the first moments of a site: its index is there, the shard not yet started
                return {"": ("503", answer.text)}
            assert answer.status_code == 200, answer.text
            hits = answer.json()["hits"]
        return {hit["page_id"]: (hit["url"], _says(hit["text"])) for hit in hits if hit["field"] == "content"}

    def public(self) -> dict[str, tuple[str, str]]:
        """Pages that WordPress shows to anybody, the same way."""
        found = {}
        for kind in ("posts", "pages", "event"):
            query = {"search": MARK, "per_page": 100}
            for post in httpx.get(f"{self.wordpress.url}/wp-json/wp/v2/{kind}", params=query, timeout=60).json():
                if not post["content"]["protected"]:
                    found[f"{post['type']}-{post['id']}"] = (post["link"], _says(post["content"]["rendered"]))
        return found

    def agree(self) -> None:
        """Nothing waits, visitors find exactly what WordPress shows, and the index holds what the log says."""
        eventually(lambda: not self.wordpress.queue(), timeout=60)
        eventually(lambda: self.found() == self.public(), timeout=60)
        eventually(self._clean, timeout=120)

    def _clean(self) -> bool:
        """Whether an audit could be taken; where it could, it is clean. A busy machine may not answer in time."""
        assert self.pagewire
        answer = httpx.get(
            f"{self.pagewire.url}/v1/admin/sites/{self.instance.site}/audit",
            headers={"Authorization": "Bearer key-of-the-acceptance-ring"},
            timeout=60,
        )
        if answer.status_code == 503:
            return False
        assert answer.json().get("clean"), answer.text
        return True

    def nothing_to_reconcile(self) -> None:
        """The log knows of every page that WordPress lists, in its newest state, and of no other."""
        looked = self.reconcile("--dry-run")
        assert {looked[key] for key in ("missing", "newer", "revived", "gone")} == {0}, looked
        audit = self.instance.run("audit", self.instance.site)
        assert audit.returncode == 0, audit.stdout + audit.stderr

    def reconcile(self, *options: str) -> dict[str, Any]:
        done = self.instance.run("reconcile", self.instance.site, "wordpress", "--json", *options)
        assert done.returncode in (0, 1), done.stderr
        [report] = json.loads(done.stdout)
        return dict(report)

    def ask(self, question: str) -> str:
        with self.client as client:
            answer = client.post("/chat", json={"question": question, "lang": "en"})
            assert answer.status_code == 200, answer.text
            return str(answer.json()["answer"])

    def create(self, kind: str = "posts", *, says: str, **fields: object) -> dict[str, Any]:
        return self.wordpress.create(kind, content=content(says), **fields)


def content(says: str) -> str:
    return f"<!-- wp:paragraph --><p>{MARK} {says}</p><!-- /wp:paragraph -->"


def _says(text: str) -> str:
    return " ".join(re.sub(r"<[^>]+>|[*#_]", "", text).split())


def joined(wordpress: WordPress, engine: Servers, home: Path) -> Town:
    """Configured on both sides; Pagewire does not run yet."""
    instance = Instance(home, engine, PAGEWIRE_FETCH_ALLOW="127.0.0.1", PAGEWIRE_VISITOR_RATE="10000/minute")
    connector = {
        "kind": "wordpress", "url": wordpress.url, "secret": SECRET,
        "user": USER, "password": wordpress.application_password,
    }  # fmt: skip
    site = {"languages": ["en"], "origins": [wordpress.url], "connectors": {"wordpress": connector}}
    (instance.home / "pagewire.yaml").write_text(yaml.safe_dump({"sites": {instance.site: site}}))
    wordpress.configure(
        site=instance.site, connector="wordpress", types=["post", "page", "event"], lang="", secret=SECRET
    )
    return Town(wordpress, instance)
