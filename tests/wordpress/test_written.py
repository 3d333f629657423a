"""Pages as editors write them, saved in WordPress and in a folder: what is indexed, and what visitors are told.

tests/written.py ─▶ WordPress ─plugin─▶ one site ─▶ the page as Markdown, the chat
                                  └─what it shows─▶ a folder ─▶ another site ─▶ the same
"""

from __future__ import annotations

import html
from collections.abc import Iterator

import httpx
import pytest
import yaml

from tests.acceptance.system import Instance, eventually
from tests.engine_fixture import Servers
from tests.wordpress import odd
from tests.wordpress.peer import WordPress
from tests.wordpress.receiver import SECRET
from tests.written import PAGES, Written

pytestmark = [pytest.mark.wordpress, pytest.mark.engine]

LANGUAGE = """<?php
function pll_get_post_language($id, $field) { return get_post_meta($id, 'lang', true) ?: 'de'; }
register_post_meta('post', 'lang', array('show_in_rest' => true, 'single' => true, 'type' => 'string'));
"""


class Saved:
    """The two sites, and a page's id in each."""

    def __init__(self, instance: Instance, url: str, ids: dict[str, dict[str, str]]) -> None:
        self._instance = instance
        self.url = url
        self.ids = ids

    def client(self, kind: str) -> httpx.Client:
        return self._instance.client(self.url, self._instance.sites[kind == "folder"])

    def markdown(self, kind: str, page: Written) -> str:
        with self.client(kind) as client:
            answer = client.get(f"/pages/{self.ids[kind][page.title]}.md", params={"lang": page.lang})
            return answer.text if answer.status_code == 200 else ""

    def told(self, kind: str, question: str, lang: str) -> str:
        with self.client(kind) as client:
            answer = client.post("/chat", json={"question": question, "lang": lang})
            assert answer.status_code == 200, answer.text
            return str(answer.json()["answer"])


@pytest.fixture(scope="module")
def saved(wordpress: WordPress, engine: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Saved]:
    home = tmp_path_factory.mktemp("written")
    instance = Instance(home, engine, sites=2, PAGEWIRE_FETCH_ALLOW="127.0.0.1", PAGEWIRE_VISITOR_RATE="10000/minute")
    folder = home / "pages"
    folder.mkdir()
    both = {"languages": ["de", "en"], "origins": [wordpress.url], "agents": ["pages"]}
    connectors = (
        {"wordpress": {"kind": "wordpress", "url": wordpress.url, "secret": SECRET}},
        {"folder": {"kind": "folder", "path": str(folder), "url": "https://town.example/"}},
    )
    sites = {site: both | {"connectors": of} for site, of in zip(instance.sites, connectors, strict=True)}
    (home / "pagewire.yaml").write_text(yaml.safe_dump({"sites": sites}))
    odd.install(wordpress, LANGUAGE, "languages")
    wordpress.configure(site=instance.site, connector="wordpress", types=["post"], lang="", secret=SECRET)
    ids: dict[str, dict[str, str]] = {"wordpress": {}, "folder": {}}
    with instance.started("up") as pagewire:
        wordpress.configure(endpoint=pagewire.url, private=True)
        for n, page in enumerate(PAGES):
            post = wordpress.create(title=page.title, content=page.content, meta={"lang": page.lang})
            ids["wordpress"][page.title], ids["folder"][page.title] = f"post-{post['id']}", f"p{n}"
            (folder / f"p{n}.{page.lang}.html").write_text(
                f"<html lang={page.lang}><title>{post['title']['rendered']}</title><body>"
                f"<h1>{post['title']['rendered']}</h1>{post['content']['rendered']}</body></html>"
            )
        done = instance.run("import", instance.sites[1], "folder", "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        saved = Saved(instance, pagewire.url, ids)
        for kind in ids:
            eventually(lambda kind=kind: all(saved.markdown(kind, page) for page in PAGES), timeout=120, every=1)
        yield saved
    odd.remove(wordpress, "languages")


@pytest.mark.parametrize("kind", ["wordpress", "folder"])
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.title)
def test_a_page_arrives_as_it_was_written(saved: Saved, kind: str, page: Written) -> None:
    markdown = saved.markdown(kind, page)
    assert html.unescape(page.title) in markdown
    assert [said for said in page.markdown if said not in markdown] == [], markdown
    assert [said for said in page.never if said in markdown] == [], markdown


@pytest.mark.parametrize("kind", ["wordpress", "folder"])
@pytest.mark.parametrize(
    ("page", "question", "told"), [pytest.param(page, *asked, id=asked[0]) for page in PAGES for asked in page.asked]
)
def test_a_visitor_is_told_what_the_page_says(saved: Saved, kind: str, page: Written, question: str, told: str) -> None:
    answer = saved.told(kind, question, page.lang)
    assert told in answer
    assert [said for said in page.never if said in answer] == []
