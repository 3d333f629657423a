"""The plugin against a scripted receiver: what it sends when, what it keeps, what it says."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from connectors.cms.package import PACKAGES
from schemas.http import BulkLine
from tests.acceptance.system import eventually
from tests.wordpress import odd
from tests.wordpress.peer import Admin, WordPress
from tests.wordpress.receiver import SECRET, Answer, Receiver, result, sent

pytestmark = pytest.mark.wordpress


@pytest.mark.parametrize("path", sorted(PACKAGES["wordpress"].source.rglob("*.php")), ids=lambda path: path.name)
def test_php_reads_it(path: Path) -> None:
    assert subprocess.run(["php", "-l", path], capture_output=True, check=False).returncode == 0


def test_a_published_post_is_sent_as_visitors_see_it(wordpress: WordPress, receiver: Receiver) -> None:
    tag = wordpress.rest.post("/tags", json={"name": "Boats & ships"}).json()["id"]
    post = wordpress.create(
        title="The “Lake” & its <em>ferry</em>",
        content="<!-- wp:paragraph --><p>A ticket costs 4 euros.</p><!-- /wp:paragraph -->",
        excerpt="What it costs to cross.",
        slug="lake-ferry",
        tags=[tag],
    )
    sent(wordpress)
    page = receiver.pages[f"post-{post['id']}"]
    assert (page.lang, page.url, page.name) == ("en", f"{wordpress.url}/lake-ferry/", "lake ferry")
    assert (page.title, page.description) == ("The “Lake” & its ferry", "What it costs to cross.")
    assert page.keywords == ("Boats & ships",)
    assert page.labels == {"post_tag": ("Boats & ships",)}
    assert page.content.strip() == "<p>A ticket costs 4 euros.</p>"
    assert page.changed_at is not None
    assert f"{page.changed_at:%Y-%m-%dT%H:%M:%S}" == post["modified_gmt"]
    assert receiver.lanes[-1] == "save"


def test_a_page_that_is_not_public_any_more_is_deleted_and_comes_back(wordpress: WordPress, receiver: Receiver) -> None:
    post = wordpress.create(title="Sauna", content="<p>Opens at 14:00.</p>")
    id = f"post-{post['id']}"
    sent(wordpress)
    revisions = [receiver.pages[id].revision]
    for hide, show in (
        ({"status": "draft"}, {"status": "publish"}),
        ({"status": "private"}, {"status": "publish"}),
        ({"password": "secret"}, {"password": ""}),
    ):
        wordpress.change(post, **hide)
        sent(wordpress)
        assert id not in receiver.pages, hide
        assert receiver.latest[id, "en"].page.content == ""
        wordpress.change(post, **show)
        sent(wordpress)
        assert id in receiver.pages, show
        revisions.append(receiver.pages[id].revision)
    wordpress.remove(post)
    sent(wordpress)
    assert id not in receiver.pages
    wordpress.change(post, status="publish")
    sent(wordpress)
    assert id in receiver.pages
    wordpress.remove(post, force=True)
    sent(wordpress)
    assert id not in receiver.pages
    assert revisions == sorted(set(revisions), key=lambda revision: revision or 0)
    assert wordpress.sql(f"SELECT COUNT(*) FROM wp_pagewire_pages WHERE post_id = {post['id']}").strip() == "0"


def test_what_was_never_public_is_never_mentioned(wordpress: WordPress, receiver: Receiver) -> None:
    draft = wordpress.create(title="Draft", content="<p>Not yet.</p>", status="draft")
    wordpress.change(draft, content="<p>Still not.</p>")
    wordpress.create(title="Private", content="<p>Not ever.</p>", status="private")
    wordpress.create(title="Locked", content="<p>Not for all.</p>", password="secret")
    wordpress.php("wp_insert_post(array('post_type' => 'hidden', 'post_title' => 'H', 'post_status' => 'publish'));")
    wordpress.remove(draft, force=True)
    shown = wordpress.create(title="Shown", content="<p>For all.</p>")
    sent(wordpress)
    assert {line.page.id for delivery in receiver.deliveries for line in delivery} == {f"post-{shown['id']}"}


def test_pages_below_follow_their_parent(wordpress: WordPress, receiver: Receiver) -> None:
    top = wordpress.create("pages", title="Town", slug="town")
    middle = wordpress.create("pages", title="Office", slug="office", parent=top["id"])
    leaf = wordpress.create("pages", title="Hours", slug="hours", parent=middle["id"])
    id = f"page-{leaf['id']}"
    sent(wordpress)
    assert receiver.pages[id].url == f"{wordpress.url}/town/office/hours/"
    wordpress.change(top, slug="city")
    sent(wordpress)
    assert receiver.pages[id].url == f"{wordpress.url}/city/office/hours/"
    wordpress.remove(middle)
    sent(wordpress)
    assert receiver.pages[id].url == wordpress.rest.get(f"/pages/{leaf['id']}").json()["link"]
    assert f"page-{middle['id']}" not in receiver.pages
    wordpress.remove(middle, force=True)
    sent(wordpress)
    assert receiver.pages[id].url == f"{wordpress.url}/city/hours/"
    wordpress.remove(top, force=True)
    sent(wordpress)
    assert receiver.pages[id].url == f"{wordpress.url}/hours/"


def test_a_scheduled_post_is_sent_when_it_is_really_published(wordpress: WordPress, receiver: Receiver) -> None:
    post = wordpress.create(title="Fair", content="<p>Soon.</p>", status="future", date_gmt="2099-01-01T00:00:00")
    assert post["status"] == "future"
    other = wordpress.create(title="Now", content="<p>Now.</p>")
    sent(wordpress)
    assert f"post-{post['id']}" not in receiver.pages
    assert f"post-{other['id']}" in receiver.pages
    wordpress.sql(
        "UPDATE wp_posts SET post_date = UTC_TIMESTAMP() - INTERVAL 5 SECOND, "
        f"post_date_gmt = UTC_TIMESTAMP() - INTERVAL 5 SECOND WHERE ID = {post['id']}"
    )
    wordpress.php(
        f"wp_clear_scheduled_hook('publish_future_post', array({post['id']}));"
        f"wp_schedule_single_event(time() - 1, 'publish_future_post', array({post['id']}));"
    )
    wordpress.cron()
    sent(wordpress)
    assert f"post-{post['id']}" in receiver.pages


def test_a_renamed_and_a_deleted_term_change_their_pages(wordpress: WordPress, receiver: Receiver) -> None:
    term = wordpress.rest.post("/categories", json={"name": "Water"}).json()["id"]
    post = wordpress.create(title="Pool", content="<p>Open.</p>", categories=[term])
    sent(wordpress)
    wordpress.rest.post(f"/categories/{term}", json={"name": "Swimming"})
    sent(wordpress)
    assert receiver.pages[f"post-{post['id']}"].keywords == ("Swimming",)
    assert receiver.lanes[-1] == "bulk"
    wordpress.rest.delete(f"/categories/{term}", params={"force": "true"})
    sent(wordpress)
    assert receiver.pages[f"post-{post['id']}"].keywords == ()
    assert receiver.pages[f"post-{post['id']}"].labels == {}


def shows(pattern: int, **more: object) -> str:
    """The block that shows a synced pattern, as the editor writes it."""
    return f"<!-- wp:block {json.dumps({'ref': pattern, **more}, separators=(',', ':'))} /-->"


def pattern(wordpress: WordPress, title: str, content: str) -> int:
    made = wordpress.rest.post("/blocks", json={"title": title, "content": content, "status": "publish"})
    assert made.status_code == 201, made.text
    return int(made.json()["id"])


def test_a_synced_pattern_changes_the_pages_that_show_it(wordpress: WordPress, receiver: Receiver) -> None:
    fee = pattern(wordpress, "Fee", "<p>A card costs 4 euros.</p>")
    box = pattern(wordpress, "Box", f"<h2>Fees</h2>{shows(fee)}")
    direct = wordpress.create(title="Direct", content=f"<p>Read.</p>{shows(fee, overridden=True)}")["id"]
    nested = wordpress.create("pages", title="Nested", content=shows(box))["id"]
    event = wordpress.create("event", title="Reading", content=shows(fee))["id"]
    hidden = wordpress.create(title="Hidden", content=shows(fee), status="draft")["id"]
    others = [
        wordpress.create(title="Longer number", content=shows(int(f"{fee}0")))["id"],
        wordpress.create(title="Another", content="<p>A card costs 4 euros.</p>")["id"],
    ]
    sent(wordpress)
    showing = {f"post-{direct}", f"page-{nested}", f"event-{event}"}
    for change, says in (
        ({"content": "<p>A card costs 7 euros.</p>"}, "7 euros"),
        ({"status": "draft"}, ""),
        ({"status": "publish"}, "7 euros"),
    ):
        receiver.deliveries.clear()
        wordpress.rest.post(f"/blocks/{fee}", json=change).raise_for_status()
        sent(wordpress)
        assert {line.page.id for delivery in receiver.deliveries for line in delivery} == showing, change
        for id in showing:
            assert says in receiver.pages[id].content
            assert ("euros" in receiver.pages[id].content) == bool(says)
        assert receiver.lanes[-1] == "bulk"
    receiver.deliveries.clear()
    wordpress.rest.delete(f"/blocks/{fee}", params={"force": "true"}).raise_for_status()
    sent(wordpress)
    assert {line.page.id for delivery in receiver.deliveries for line in delivery} == showing
    assert all("euros" not in receiver.pages[id].content for id in showing)
    assert not {f"post-{id}" for id in (hidden, *others)} & showing


def test_patterns_that_hold_each_other_end(wordpress: WordPress, receiver: Receiver) -> None:
    one = pattern(wordpress, "One", "<p>Round</p>")
    two = pattern(wordpress, "Two", shows(one))
    post = wordpress.create(title="Circle", content=shows(two))["id"]
    sent(wordpress)
    receiver.deliveries.clear()
    wordpress.rest.post(f"/blocks/{one}", json={"content": f"<p>and round</p>{shows(two)}"}).raise_for_status()
    sent(wordpress)
    assert [line.page.id for delivery in receiver.deliveries for line in delivery] == [f"post-{post}"]
    assert "and round" in receiver.pages[f"post-{post}"].content


def test_an_editor_in_wp_admin(wordpress: WordPress, receiver: Receiver) -> None:
    with wordpress.admin() as admin:
        post_id = admin.publish("Market", "<p>Every Saturday.</p>")
        sent(wordpress)
        assert receiver.pages[f"post-{post_id}"].title == "Market"
        admin.trash(post_id)
        sent(wordpress)
        assert f"post-{post_id}" not in receiver.pages


def test_nothing_is_lost_while_pagewire_is_away_and_ten_saves_are_one(wordpress: WordPress, receiver: Receiver) -> None:
    def away(lines: list[BulkLine]) -> Answer:
        return 503, {"code": "unavailable"}, {"Retry-After": "1000"}

    receiver.answers = away
    post = wordpress.create(title="Bridge", content="<p>0</p>")
    for n in range(1, 10):
        wordpress.change(post, content=f"<p>{n}</p>")
    other = wordpress.create(title="Tower", content="<p>42 metres</p>")
    eventually(lambda: "503" in wordpress.php("echo get_option('pagewire_state', array())['problem'] ?? '';"))
    assert {row["page_id"] for row in wordpress.queue()} == {f"post-{post['id']}", f"post-{other['id']}"}
    with wordpress.admin() as admin:
        said = admin.settings()
    assert "2 pages are waiting" in said
    assert "cannot take anything just now (503)" in said
    assert "Next try in 17 mins" in said
    receiver.answers = lambda lines: None
    wordpress.due()
    sent(wordpress)
    assert [len(delivery) for delivery in receiver.deliveries] == [2]
    assert receiver.pages[f"post-{post['id']}"].content.strip() == "<p>9</p>"


def test_a_save_while_its_page_is_under_way_is_sent_after_it(wordpress: WordPress, receiver: Receiver) -> None:
    begun: list[str] = []

    def save_again(lines: list[BulkLine]) -> None:
        if not begun:
            begun.append(lines[0].page.content)
            wordpress.change(post, content="<p>second</p>")

    receiver.answers = lambda lines: (503, {}, {})
    post = wordpress.create(title="Quick", content="<p>first</p>")
    receiver.answers = save_again
    wordpress.due()
    eventually(lambda: len(receiver.deliveries) == 2)
    sent(wordpress)
    assert "first" in begun[0]
    assert "second" in receiver.pages[f"post-{post['id']}"].content


def test_a_refused_page_is_told_with_its_reason_and_does_not_hold_up_the_others(
    wordpress: WordPress, receiver: Receiver
) -> None:
    def refuse(lines: list[BulkLine]) -> Answer | None:
        bad = [n for n, line in enumerate(lines, 1) if line.page.title == "Bad"]
        errors = [{"line": n, "code": "too-large", "message": "content is <b>too</b> long"} for n in bad]
        return (200, result(len(lines) - len(bad), len(bad), 0, errors), {}) if bad else None

    receiver.answers = refuse
    bad = wordpress.create(title="Bad", content="<p>x</p>")
    good = wordpress.create(title="Good", content="<p>y</p>")
    sent(wordpress)
    with wordpress.admin() as admin:
        said = admin.settings()
    assert "too-large: content is too long" in said
    assert f"post={bad['id']}&#038;action=edit" in said or f"post={bad['id']}&amp;action=edit" in said
    assert f"post={good['id']}" not in said
    wordpress.change(bad, title="Better")
    sent(wordpress)
    with wordpress.admin() as admin:
        assert "too-large" not in admin.settings()


def test_a_page_that_dies_is_left_out_and_told(wordpress: WordPress, receiver: Receiver) -> None:
    broken = wordpress.php(  # not through REST: it would show the page itself
        "echo wp_insert_post("
        "array('post_title' => 'Broken', 'post_content' => '[breaks]', 'post_status' => 'publish'));"
    )
    fine = wordpress.create(title="Fine", content="<p>y</p>")
    sent(wordpress)
    assert f"post-{fine['id']}" in receiver.pages
    assert f"post-{broken}" not in receiver.pages
    with wordpress.admin() as admin:
        assert "This page cannot be shown: an error ends it" in admin.settings()
    wordpress.php(f"wp_delete_post({broken}, true);")


def test_a_delivery_that_is_too_large_is_halved(wordpress: WordPress, receiver: Receiver) -> None:
    def small(lines: list[BulkLine]) -> Answer | None:
        if len(lines) > 2 or any(line.page.title == "Huge" for line in lines):
            return 413, {"code": "too-large"}, {}
        return None

    receiver.answers = lambda lines: (503, {}, {})
    posts = [wordpress.create(title="Huge" if n == 2 else f"Page {n}", content="<p>x</p>") for n in range(6)]
    receiver.answers = small
    wordpress.due()
    sent(wordpress)
    assert set(receiver.pages) == {f"post-{post['id']}" for n, post in enumerate(posts) if n != 2}


def test_a_proxy_that_says_200_to_everything_gets_nothing_out_of_the_queue(
    wordpress: WordPress, receiver: Receiver
) -> None:
    receiver.answers = lambda lines: (200, {"welcome": "to our portal"}, {})
    wordpress.create(title="Kept", content="<p>x</p>")
    problem = "echo get_option('pagewire_state', array())['problem'] ?? '';"
    eventually(lambda: "it is not Pagewire" in wordpress.php(problem))
    assert len(wordpress.queue()) == 1


def test_everything_is_sent_in_the_bulk_lane_and_saves_overtake_it(wordpress: WordPress, receiver: Receiver) -> None:
    # Behind the plugin's back, as a restored backup.
    wordpress.php(
        "remove_all_actions('wp_after_insert_post'); for ($i = 0; $i < 250; $i++) { wp_insert_post(array("
        "'post_title' => \"Old $i\", 'post_content' => \"<p>$i</p>\", 'post_status' => 'publish')); }"
    )
    public = int(
        wordpress.sql(
            "SELECT COUNT(*) FROM wp_posts WHERE post_status = 'publish' AND post_password = '' "
            "AND post_type IN ('post', 'page', 'event')"
        )
    )
    with wordpress.admin() as admin:
        assert "public pages are being sent" in admin.press("pagewire_send_everything")
        wordpress.create(title="Meanwhile", content="<p>Saved meanwhile.</p>")
        eventually(lambda: len(receiver.pages) == public + 1, timeout=60)
        sent(wordpress)
        eventually(lambda: "Sending everything" not in admin.settings())
    assert max(len(delivery) for delivery in receiver.deliveries) <= 500
    assert {"save", "bulk"} == set(receiver.lanes)
    receiver.deliveries.clear()
    with wordpress.admin() as admin:  # now that all are known
        admin.press("pagewire_send_everything")
        eventually(lambda: "Sending everything" not in admin.settings())
        sent(wordpress)
    again = [line.page.id for delivery in receiver.deliveries for line in delivery if line.op == "upsert"]
    assert sorted(again) == sorted(receiver.pages)


def test_the_test_button_says_plainly_what_is_wrong(wordpress: WordPress, receiver: Receiver) -> None:
    with wordpress.admin() as admin:
        assert "The connection works" in admin.press("pagewire_test")
        assert receiver.deliveries == [[]]
        wordpress.configure(site="village")
        assert "has no such connector for this site (404)" in admin.press("pagewire_test")
        wordpress.configure(site="town", secret="whsec_" + "A" * 40)
        assert "the secret here is not the one in pagewire.yaml" in admin.press("pagewire_test")
        wordpress.configure(secret=SECRET)
        receiver.skew = 100
        assert "differ by 100 seconds" in re.sub(r"by (99|101)", "by 100", admin.press("pagewire_test"))
        receiver.skew = 1000
        assert re.search(r"this server is (999|1000|1001) seconds behind", admin.press("pagewire_test"))
        receiver.skew = 0
        wordpress.configure(endpoint="http://127.0.0.1:9")
        assert "the connection was refused" in admin.press("pagewire_test")
        wordpress.configure(endpoint="http://nobody.invalid")
        assert "cannot be looked up (DNS)" in admin.press("pagewire_test")
        wordpress.configure(endpoint=wordpress.url)
        assert "but no Pagewire (404)" in admin.press("pagewire_test")


def test_the_settings_page_keeps_what_is_right_and_never_shows_the_secret(
    wordpress: WordPress, receiver: Receiver
) -> None:
    with wordpress.admin() as admin:
        said = admin.save_settings(site="town", connector="wordpress", widget="1", endpoint=f"{receiver.url}/")
        assert "Settings saved." in said
        assert SECRET not in said
        assert SECRET[10:-6] not in said
        assert f"Kept; ends in {SECRET[-4:]}" in said
        said = admin.save_settings(endpoint="http://user:pw@127.0.0.1/", site="Not A Site", secret="short", widget="1")
        assert "The address must look like" in said
        assert "lower-case letters" in said
        assert "This is not a secret" in said
        assert f'value="{receiver.url}"' in said
        assert "The connection works" in admin.press("pagewire_test")
    page = httpx.get(wordpress.url).text
    assert f'<script type="module" src="{receiver.url}/widget.js" data-site="town" data-lang="en"></script>' in page


def test_who_may_not_use_unfiltered_html_puts_no_script_on_the_pages(wordpress: WordPress, receiver: Receiver) -> None:
    """As the administrator of one site of a network."""
    odd.install(wordpress, "<?php define('DISALLOW_UNFILTERED_HTML', true);", "network")
    try:
        with wordpress.admin() as admin:
            for changes in ({"widget": "1"}, {"widget": "1", "visitors": "https://evil.example"}):
                assert "only somebody who may use unfiltered HTML" in admin.save_settings(**changes)
                assert "widget.js" not in httpx.get(wordpress.url).text
            assert "unfiltered HTML" not in admin.save_settings(endpoint=f"{receiver.url}/")
            wordpress.configure(widget=True)  # by who may
            assert "unfiltered HTML" not in admin.save_settings(widget="1")
            assert f"{receiver.url}/widget.js" in httpx.get(wordpress.url).text
            assert "unfiltered HTML" in admin.save_settings(widget="1", endpoint="https://93.184.215.14")
            assert f"{receiver.url}/widget.js" in httpx.get(wordpress.url).text
            assert "unfiltered HTML" not in admin.save_settings()  # switched off
            assert "widget.js" not in httpx.get(wordpress.url).text
    finally:
        odd.remove(wordpress, "network")


def test_strangers_and_editors_without_the_right_get_nowhere(wordpress: WordPress, receiver: Receiver) -> None:
    wordpress.php("wp_insert_user(array('user_login' => 'ed', 'user_pass' => 'ed', 'role' => 'editor'));")
    drain = httpx.post(f"{wordpress.url}/wp-json/pagewire/v1/drain")
    assert drain.status_code == 401
    page = httpx.get(wordpress.url)
    visit = httpx.get(wordpress.url, params={"pagewire-visit": f"0-{int(time.time())}-{'0' * 64}"})
    assert visit.text == page.text
    forged = {"X-Pagewire-Pass": f"{int(time.time())}-{'0' * 64}"}
    assert httpx.post(f"{wordpress.url}/wp-json/pagewire/v1/drain", headers=forged).status_code == 401
    for action in ("pagewire_test", "pagewire_send_everything", "pagewire_progress"):
        with httpx.Client(base_url=wordpress.url) as nobody:
            path = "/wp-admin/admin-ajax.php" if action == "pagewire_progress" else "/wp-admin/admin-post.php"
            assert nobody.post(path, data={"action": action}).status_code == 400
    with Admin(wordpress, "ed", "ed") as editor:
        assert editor.post("/wp-admin/options-general.php?page=pagewire", {}).status_code == 403
        for action in ("pagewire_test", "pagewire_send_everything"):
            assert editor.post("/wp-admin/admin-post.php", {"action": action}).status_code == 403
        assert editor.post("/wp-admin/options.php", {"option_page": "pagewire", "action": "update"}).status_code == 403
    with wordpress.admin() as admin:  # the right, but no nonce: a link that somebody sent
        assert admin.post("/wp-admin/admin-post.php", {"action": "pagewire_send_everything"}).status_code == 403
    assert receiver.deliveries == []


def test_the_plugin_can_be_uninstalled_without_a_trace(wordpress: WordPress) -> None:
    wordpress.php(
        "define('WP_UNINSTALL_PLUGIN', 'pagewire/pagewire.php');require WP_PLUGIN_DIR . '/pagewire/uninstall.php';"
    )
    assert wordpress.sql("SHOW TABLES LIKE 'wp_pagewire%'") == ""
    assert wordpress.sql("SELECT option_name FROM wp_options WHERE option_name LIKE 'pagewire%'") == ""
    wordpress.php("")  # the next request makes them again
    assert "pagewire_pages" in wordpress.sql("SHOW TABLES LIKE 'wp_pagewire%'")
