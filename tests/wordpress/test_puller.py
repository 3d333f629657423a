"""The puller on a real site: it reads the same document that the plugin sends, and only what everybody may read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TypeVar

import pytest

from connectors.cms.fetching import SafeFetch
from connectors.cms.frame import Barred, Listed, UnreadablePage
from connectors.cms.settings import WordPressConnector
from connectors.cms.wordpress.client import NotWordPress, WordPressClient
from connectors.cms.wordpress.source import WordPressSource
from schemas.page import PageDocument
from tests.acceptance.system import eventually
from tests.wordpress.peer import USER, WordPress
from tests.wordpress.receiver import Receiver
from text.html import to_markdown

pytestmark = pytest.mark.wordpress
T = TypeVar("T")

TITLES = (
    "Plain",
    "AT&T; &copy=1 &amp;amp; 3 < 4 > 2",
    "It’s “quoted” -- really... <em>so</em>",
    "Straße ÄÖÜ 東京 🚢",
    "  spaces   and\ttabs ",
)
CONTENTS = (
    "<!-- wp:paragraph --><p>One <strong>paragraph</strong>.</p><!-- /wp:paragraph -->",
    "Classic text with \"quotes\" -- and\n\ntwo paragraphs, & an ampersand.",
    "<!-- wp:heading --><h2>Opening hours</h2><!-- /wp:heading -->"
    "<!-- wp:table --><figure class=\"wp-block-table\"><table><tbody><tr><td>Mon</td><td>9-12</td></tr></tbody></table>"
    "</figure><!-- /wp:table --><!-- wp:list --><ul><li>a</li><li>b</li></ul><!-- /wp:list -->",
    "<p>" + "Many words make WordPress cut an excerpt out of them. " * 30 + "</p>",
    "[gallery]",
    "",
)  # fmt: skip


def asked(wordpress: WordPress, work: Callable[[WordPressSource], Awaitable[T]], **more: object) -> T:
    async def run() -> T:
        connector = WordPressConnector.model_validate({"kind": "wordpress", "url": wordpress.url, **more})
        async with SafeFetch(["127.0.0.1"], patience=5) as fetch:
            return await work(WordPressSource(connector, fetch, ["de"]))

    return asyncio.run(run())


async def everything(source: WordPressSource) -> list[Listed]:
    async with aclosing(source.inventory()) as listed:
        return [one async for one in listed]


async def read(source: WordPressSource, wanted: Sequence[Listed]) -> list[PageDocument | UnreadablePage | Barred]:
    async with aclosing(source.fetch(wanted)) as pages:
        return [page async for page in pages]


async def all_pages(source: WordPressSource) -> list[PageDocument | UnreadablePage | Barred]:
    return await read(source, await everything(source))


def test_the_puller_reads_what_the_plugin_sends(wordpress: WordPress, receiver: Receiver) -> None:
    tag = wordpress.rest.post("/tags", json={"name": "Boats & ships, ”new“"}).json()["id"]
    venue = wordpress.rest.post("/venue", json={"name": "Town hall"}).json()["id"]
    for n, content in enumerate(CONTENTS):
        title = TITLES[n % len(TITLES)]
        wordpress.create(title=title, content=content, excerpt="By hand & <b>short</b>." if n % 2 else "", tags=[tag])
        # A page with the address of a post would hide it.
        parent = wordpress.create("pages", title=title, content=content, slug=f"page-{n}")
        wordpress.create("pages", title="Below", content=content, parent=parent["id"], slug="日本 below")
        wordpress.create("event", title=title, content=content, venue=[venue])
    wordpress.php("update_option('pagewire_state', array());")
    with wordpress.admin() as admin:
        admin.press("pagewire_send_everything")
    listed = asked(wordpress, everything)
    eventually(lambda: len(receiver.pages) == len(listed), timeout=60)
    pulled = {page.id: page for page in asked(wordpress, all_pages) if isinstance(page, PageDocument)}
    pushed = receiver.pages
    assert set(pulled) == set(pushed)
    for id, page in pulled.items():
        same = {"revision", "content"}
        assert page.model_dump(exclude=same) == pushed[id].model_dump(exclude=same)
        assert to_markdown(page.content) == to_markdown(pushed[id].content)
        assert (page.revision or 0) % 1000 == 999
    assert {page.lang for page in pulled.values()} == {"en"}
    assert any(page.keywords == ("Town hall",) for page in pulled.values())
    assert any(page.description == "By hand & short." for page in pulled.values())
    assert any("…" in page.description for page in pulled.values()) is False


def test_only_what_everybody_may_read_is_listed_and_read(wordpress: WordPress, receiver: Receiver) -> None:
    shown = wordpress.create(title="Shown", content="<p>x</p>")
    hidden = [
        wordpress.create(title="Draft", content="<p>x</p>", status="draft"),
        wordpress.create(title="Private", content="<p>x</p>", status="private"),
        wordpress.create(title="Locked", content="<p>x</p>", password="secret"),
        wordpress.create(title="Later", content="<p>x</p>", status="future", date_gmt="2099-01-01T00:00:00"),
    ]
    for login in ({}, {"user": USER, "password": wordpress.application_password}):
        ids = {one.page_id for one in asked(wordpress, everything, **login)}
        assert f"post-{shown['id']}" in ids
        assert not ids & {f"post-{post['id']}" for post in hidden}
        wanted = [Listed(f"post-{post['id']}", "en", 1) for post in [*hidden, shown]]
        pages = asked(wordpress, lambda source, wanted=wanted: read(source, wanted), **login)
        assert [page.id for page in pages if isinstance(page, PageDocument)] == [f"post-{shown['id']}"]


def test_a_post_that_breaks_wordpress_is_left_out_and_the_others_are_read(
    wordpress: WordPress, receiver: Receiver
) -> None:
    good = [wordpress.create(title=f"Good {n}", content="<p>x</p>") for n in range(5)]
    broken = wordpress.php(
        "echo wp_insert_post("
        "array('post_title' => 'Broken', 'post_content' => '[breaks]', 'post_status' => 'publish'));"
    )
    try:
        wanted = [Listed(f"post-{id}", "en", 1) for id in (*(post["id"] for post in good), int(broken))]
        pages = asked(wordpress, lambda source: read(source, wanted))
        assert {page.id for page in pages if isinstance(page, PageDocument)} == {f"post-{post['id']}" for post in good}
        [left_out] = [page for page in pages if isinstance(page, UnreadablePage)]
        assert left_out.listed.page_id == f"post-{broken}"
        assert "500" in left_out.reason
    finally:
        wordpress.php(f"wp_delete_post({broken}, true);")


def test_an_inventory_misses_nobody_when_a_post_goes_in_the_middle(wordpress: WordPress, receiver: Receiver) -> None:
    wordpress.php(
        "remove_all_actions('wp_after_insert_post'); for ($i = 0; $i < 230; $i++) { wp_insert_post(array("
        "'post_title' => \"Many $i\", 'post_content' => 'x', 'post_status' => 'publish')); }"
    )
    before = {one.page_id for one in asked(wordpress, everything)}
    first, second, *_ = sorted(int(id.split("-")[1]) for id in before if id.startswith("post-"))

    async def with_a_delete(source: WordPressSource) -> list[str]:
        seen: list[str] = []
        async with aclosing(source.inventory()) as listed:
            async for one in listed:
                seen.append(one.page_id)
                if len(seen) == 150:  # behind us, while more than one request is to come
                    wordpress.sql(f"UPDATE wp_posts SET post_status = 'draft' WHERE ID IN ({first}, {second})")
        return seen

    seen = asked(wordpress, with_a_delete)
    assert len(seen) == len(set(seen))
    assert before - set(seen) <= {f"post-{first}", f"post-{second}"}


def test_a_site_without_the_plugin_and_without_names_in_addresses(wordpress: WordPress, receiver: Receiver) -> None:
    post = wordpress.create(title="Bare", content="<p>x</p>")
    wordpress.php(
        "require ABSPATH . 'wp-admin/includes/plugin.php'; deactivate_plugins('pagewire/pagewire.php');"
        "update_option('permalink_structure', '');"
    )
    try:
        pages = asked(wordpress, all_pages)
        page = next(page for page in pages if isinstance(page, PageDocument) and page.id == f"post-{post['id']}")
        assert (page.lang, page.url) == ("de", f"{wordpress.url}/?p={post['id']}")
    finally:
        wordpress.php(
            "require ABSPATH . 'wp-admin/includes/plugin.php'; update_option('permalink_structure', '/%postname%/');"
            "activate_plugin('pagewire/pagewire.php');"
        )


def test_something_else_than_wordpress_is_called_so(receiver: Receiver) -> None:
    async def ask() -> None:
        connector = WordPressConnector.model_validate({"kind": "wordpress", "url": receiver.url})
        async with SafeFetch(["127.0.0.1"]) as fetch:
            await WordPressClient(connector, fetch).now()

    with pytest.raises((NotWordPress, Exception), match="no WordPress REST API here"):
        asyncio.run(ask())


def test_the_clock_is_that_of_wordpress(wordpress: WordPress) -> None:
    here = int(wordpress.php("echo time();"))
    assert abs(asked(wordpress, lambda source: source.now()) // 1000 - here) <= 5
