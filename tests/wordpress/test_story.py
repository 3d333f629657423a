"""The product with a real WordPress: what an editor does there is what visitors find here, and the audit agrees.

    editor ─▶ WordPress with the plugin ─▶ signed webhook ─▶ `pagewire up` ─▶ search, chat
                 ▲ REST API ◀── `pagewire import`, `reconcile`

After each thing an editor does, `agree` compares the two from the outside.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from tests.acceptance.system import eventually
from tests.engine_fixture import Servers
from tests.wordpress import odd
from tests.wordpress.peer import WordPress
from tests.wordpress.town import MARK, Town, content, joined

pytestmark = [pytest.mark.wordpress, pytest.mark.engine]


@pytest.fixture(scope="module")
def town(wordpress: WordPress, engine: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    town = joined(wordpress, engine, tmp_path_factory.mktemp("wordpress"))
    with town.up():
        with wordpress.admin() as admin:  # as the manual says: test, then send what is there already
            assert "The connection works" in admin.press("pagewire_test")
            admin.press("pagewire_send_everything")
        town.agree()
        yield town


def test_what_an_editor_does_to_a_post(town: Town) -> None:
    post = town.create(says="A ferry ticket costs 4 euros for adults.", title="Lake ferry", status="draft")
    town.agree()
    steps: list[tuple[str, Callable[[], object]]] = [
        ("publish", lambda: town.wordpress.change(post, status="publish")),
        ("edit", lambda: town.wordpress.change(post, content=content("A ferry ticket costs 5 euros for adults."))),
        ("slug", lambda: town.wordpress.change(post, slug="boat-across-the-lake")),
        ("password", lambda: town.wordpress.change(post, password="secret")),
        ("no password", lambda: town.wordpress.change(post, password="")),
        ("private", lambda: town.wordpress.change(post, status="private")),
        ("public", lambda: town.wordpress.change(post, status="publish")),
        ("unpublish", lambda: town.wordpress.change(post, status="draft")),
        ("publish again", lambda: town.wordpress.change(post, status="publish")),
        ("trash", lambda: town.wordpress.remove(post)),
        ("restore", lambda: town.wordpress.change(post, status="publish")),
    ]
    shown = {"publish", "edit", "slug", "no password", "public", "publish again", "restore"}
    for step, act in steps:
        act()
        town.agree()
        assert (f"post-{post['id']}" in town.found()) == (step in shown), step
        if step in ("publish", "edit"):
            price = "4 euros" if step == "publish" else "5 euros"
            eventually(lambda price=price: price in town.ask("How much is a ferry ticket for adults?"))
    town.wordpress.remove(post, force=True)
    town.agree()
    town.nothing_to_reconcile()
    assert "euros" not in town.ask("How much is a ferry ticket for adults?")


def test_an_editor_in_wp_admin(town: Town) -> None:
    with town.wordpress.admin() as admin:
        post_id = admin.publish("Market", content("The market is on Saturday."))
        town.agree()
        assert f"post-{post_id}" in town.found()
        admin.trash(post_id)
        town.agree()
        assert f"post-{post_id}" not in town.found()


def test_pages_below_move_with_their_parent(town: Town) -> None:
    parent = town.create("pages", says="The town hall.", title="Hall", slug="hall")
    child = town.create("pages", says="Open on Monday.", title="Hours", slug="hours", parent=parent["id"])
    town.agree()
    town.wordpress.change(parent, slug="city-hall")
    town.agree()
    assert town.found()[f"page-{child['id']}"][0] == f"{town.wordpress.url}/city-hall/hours/"
    town.wordpress.remove(parent)
    town.agree()
    town.wordpress.remove(parent, force=True)
    town.agree()
    assert town.found()[f"page-{child['id']}"][0] == f"{town.wordpress.url}/hours/"


def test_a_scheduled_post_comes_when_it_is_published(town: Town) -> None:
    post = town.create(says="The fair begins.", title="Fair", status="future", date_gmt="2099-01-01T00:00:00")
    town.agree()
    assert f"post-{post['id']}" not in town.found()
    past = "UTC_TIMESTAMP() - INTERVAL 5 SECOND"
    town.wordpress.sql(f"UPDATE wp_posts SET post_date = {past}, post_date_gmt = {past} WHERE ID = {post['id']}")
    town.wordpress.php(
        f"wp_clear_scheduled_hook('publish_future_post', array({post['id']}));"
        f"wp_schedule_single_event(time() - 1, 'publish_future_post', array({post['id']}));"
    )
    town.wordpress.cron()
    town.agree()
    assert f"post-{post['id']}" in town.found()


def test_a_kind_of_pages_of_the_sites_own(town: Town) -> None:
    event = town.create("event", says="Music by the lake.", title="Concert")
    town.agree()
    assert f"event-{event['id']}" in town.found()


def test_reconcile_finds_what_was_done_behind_the_plugins_back(town: Town) -> None:
    changed = town.create(says="Before.", title="Changed by a script")
    gone = town.create(says="Deleted by a script.", title="Gone")
    town.agree()
    past = "UTC_TIMESTAMP() - INTERVAL 15 SECOND"  # younger ones are left to the webhook
    says = content("After.").replace("'", "''")
    later = "post_modified_gmt + INTERVAL 1 SECOND"  # WordPress has no finer clock: within the same one nothing changed
    town.wordpress.sql(
        f"UPDATE wp_posts SET post_content = '{says}', post_modified_gmt = {later} WHERE ID = {changed['id']};"
        f"DELETE FROM wp_posts WHERE ID = {gone['id']};"
        "INSERT INTO wp_posts (post_title, post_content, post_excerpt, post_status, post_name, post_type, to_ping, "
        "pinged, post_content_filtered, post_date, post_date_gmt, post_modified, post_modified_gmt) VALUES ('New', "
        f"'{content('Put in by a script.')}', '', 'publish', 'put-in', 'post', '', '', '', {past}, {past}, {past}, "
        f"{past})"
    )
    eventually(lambda: town.reconcile()["newer"] == 0 and town.found() == town.public(), timeout=60)
    town.agree()
    town.nothing_to_reconcile()


def test_200_posts_at_once(town: Town) -> None:
    done = town.wordpress.php(
        "for ($i = 0; $i < 200; $i++) { wp_insert_post(array("
        "'post_title' => \"Minutes $i\", 'post_status' => 'publish', "
        "'post_content' => \"<p>The council met for the ${i}th time and spoke about the budget.</p>\")); } echo 'done';"
    )
    assert done.endswith("done")
    eventually(lambda: not town.wordpress.queue(), timeout=120)
    eventually(lambda: pages(town) >= 200, timeout=240)
    town.agree()
    town.nothing_to_reconcile()


@pytest.fixture
def behind(town: Town) -> Iterator[list[str]]:
    """Pages that visitors do not get; not one that never ends: a puller waits long for each."""
    odd.install(town.wordpress)
    ending = [
        odd.behind_the_editor(town.wordpress, code, f"<p>{MARK}</p>[{code}]") for code in odd.ENDING if code != "spins"
    ]
    barred = [
        odd.behind_the_editor(town.wordpress, how, f"<p>{MARK} {odd.SECRET} {how}, said twice.</p>", how)
        for how in odd.BARRED
    ]
    yield [*ending, *barred]
    for id in (*ending, *barred):
        town.wordpress.php(f"wp_delete_post({id}, true);")
    odd.remove(town.wordpress)
    town.agree()


def test_odd_pages_harm_no_other_and_no_visitor_finds_what_members_read(town: Town, behind: list[str]) -> None:
    """By the plugin, by an import, and by a reconcile that finds every page changed."""
    fine = town.create(says="The pool opens at nine.", title="Pool")

    def nothing_found() -> None:
        eventually(lambda: not town.wordpress.queue(), timeout=60)
        eventually(lambda: f"post-{fine['id']}" in town.found(), timeout=60)
        assert not set(town.found()) & {f"post-{id}" for id in behind}
        with town.client as client:
            for mode in ("keyword", "hybrid"):
                answer = client.get("/search", params={"q": odd.SECRET, "mode": mode, "size": 100}).json()
                assert not [hit for hit in answer["hits"] if odd.SECRET in hit["text"]]
        assert odd.SECRET not in town.ask("What is the secret code of members?")

    nothing_found()
    imported = town.instance.run("import", town.instance.site, "wordpress", "--json")
    assert json.loads(imported.stdout)["omitted"], imported.stderr
    nothing_found()
    later = "UTC_TIMESTAMP() + INTERVAL 5 SECOND"  # than the plugin knows of
    town.wordpress.sql(f"UPDATE wp_posts SET post_modified_gmt = {later} WHERE post_status = 'publish'")
    assert town.reconcile()["newer"]
    nothing_found()


def pages(town: Town) -> int:
    """Pages in the index."""
    report = town.instance.run("audit", town.instance.site, "--json")
    return int(json.loads(report.stdout)["pages"])


def test_import_without_the_plugin_and_a_second_time_changes_nothing(town: Town) -> None:
    done = town.instance.run("import", town.instance.site, "wordpress", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    town.agree()
