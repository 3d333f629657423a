"""The request by which the plugin asks for a page: who gets what for it, and what the page's own code sees of it."""

from __future__ import annotations

import httpx
import pytest

from tests.wordpress import odd
from tests.wordpress.peer import WordPress
from tests.wordpress.receiver import Receiver, sent
from text.html import stripped

pytestmark = [pytest.mark.wordpress, pytest.mark.usefixtures("odd_plugins", "without_posts")]

AS_THE_OWNER = "<?php add_filter('pagewire_reader', function () { return 1; });"


def mark(wordpress: WordPress, post: object, before: str = "", signed: str = "Pagewire\\Pass::issue($purpose)") -> str:
    """What the plugin asks for a post with."""
    return f"{post}-" + wordpress.php(f"$purpose = 'pagewire-visit-{post}'; {before} echo {signed};").strip()


def told(wordpress: WordPress) -> dict[str, str]:
    """What is not sent as it is, and why."""
    rows = wordpress.sql("SELECT page_id, CONCAT(refusal, barred) AS why FROM wp_pagewire_pages HAVING why <> ''")
    return dict(row.split("\t") for row in rows.splitlines())


def old(seconds: int) -> str:
    """A pass of that time ago, with the right signature."""
    return (
        "(function ($purpose, $time) { $sign = new ReflectionMethod('Pagewire\\Pass', 'signature'); "
        f"return $time . '-' . $sign->invoke(null, $purpose, $time); }})($purpose, (string) (time() - {seconds}))"
    )


def test_where_pages_are_read_as_somebody_the_mark_is_no_login(wordpress: WordPress, receiver: Receiver) -> None:
    odd.install(wordpress, AS_THE_OWNER, "away")
    post, other = (
        odd.behind_the_editor(wordpress, title, f"<p>{title} for employees.</p>", "bar_redirect")
        for title in ("Canteen", "Wages")
    )
    with httpx.Client(base_url=wordpress.url, timeout=60) as somebody:

        def asked(path: str, marked: str, method: str = "GET", **more: str) -> httpx.Response:
            return somebody.request(method, path, params={"pagewire-visit": marked, **more})

        page = "/canteen/"
        right = mark(wordpress, post)
        assert "Canteen for employees." in asked(page, right).text
        assert "for employees" not in asked("/wages/", right).text
        assert "for employees" not in asked("/", right).text
        assert asked(page, right, "POST").status_code == 302
        for wrong in (
            mark(wordpress, post, signed=old(100)),
            mark(wordpress, post, "$GLOBALS['blog_id'] = 2;"),
            mark(wordpress, other).replace(f"{other}-", f"{post}-", 1),
            mark(wordpress, post, "$purpose = 'pagewire_drain';"),
        ):
            assert asked(page, wrong).status_code == 302, wrong
        assert asked(page, mark(wordpress, post, signed=old(30))).status_code == 200

        assert asked("/wp-json/wp/v2/users/me", right).status_code == 401
        assert asked("/wp%2Djson/wp/v2/users/me", right).status_code == 401
        assert asked("/", right, rest_route="/wp/v2/users/me").status_code == 401
        assert asked(page, right, rest_route="/wp/v2/users/me").status_code == 401
        assert asked("/wp-admin/admin-ajax.php", right, action="rest-nonce").status_code == 400
        assert asked("/wp-admin/index.php", right).status_code == 302
    sent(wordpress)
    assert {page.title for page in receiver.pages.values()} == {"Canteen", "Wages"}


# A front server: it corrects an address and forgets the query, sends one round in circles and one to another server.
LEADS = (
    "<?php"
    + odd.KNOWS_IT
    + """
list($at) = explode('?', $_SERVER['REQUEST_URI'] ?? '');
$leads = array('/crooked/' => '/straight/', '/round/' => '/round/', '/members/' => 'http://localhost:PORT/members/');
if (($_SERVER['HTTP_HOST'] ?? '') === 'localhost:PORT') { touch(WP_CONTENT_DIR . '/left'); exit; }
if (isset($_GET['pagewire-visit']) && isset($leads[$at])) { header("Location: $leads[$at]", true, 302); exit; }
add_filter('post_link', function ($url) { return str_replace('/straight/', '/crooked/', $url); });
"""
)


def test_redirects_are_followed_within_the_site(wordpress: WordPress, receiver: Receiver) -> None:
    odd.install(wordpress, LEADS.replace("PORT", str(wordpress.port)), "away")
    straight, around, members = (
        f"post-{odd.behind_the_editor(wordpress, title, f'<p>{title}</p>')}"
        for title in ("Straight", "Round", "Members")
    )
    sent(wordpress)
    assert set(receiver.pages) == {straight}
    assert told(wordpress) == {
        around: "This page cannot be shown: it redirects to itself without an end.",
        members: "Visitors who are not logged in are led elsewhere.",
    }
    assert not (wordpress.folder / "www/wp-content/left").exists()


DATA = '{"@context":"https://schema.org","@type":"FAQPage","name":"a < b"}'
SAYS = f"""<?php
add_action('wp_head', function () {{ echo '<script type="application/ld+json" class="seo">{DATA}</script>'; }});
"""


def test_what_a_page_says_for_machines_in_its_head_is_sent_with_it(wordpress: WordPress, receiver: Receiver) -> None:
    odd.install(wordpress, SAYS, "away")
    post = f"post-{odd.behind_the_editor(wordpress, 'Fees', '<p>A dog costs 60 euros.</p>')}"
    sent(wordpress)
    script = f'<script type="application/ld+json">{DATA}</script>'
    assert receiver.pages[post].content.split("\n") == ["<p>A dog costs 60 euros.</p>", script]


LINKS = """<?php
add_shortcode('links', function () {
    return wp_json_encode(array(add_query_arg('a', 1), wp_login_url(home_url($_SERVER['REQUEST_URI'])),
        $_SERVER['QUERY_STRING'] ?? '', array_keys($_GET), array_keys($_REQUEST)), JSON_UNESCAPED_SLASHES);
});
"""


@pytest.mark.parametrize("names", ["/%postname%/", ""])
def test_a_page_that_links_to_itself_does_not_show_the_mark(
    wordpress: WordPress, receiver: Receiver, names: str
) -> None:
    odd.install(wordpress, LINKS, "away")
    wordpress.php(f"update_option('permalink_structure', '{names}'); flush_rewrite_rules(false);")
    try:
        post = odd.behind_the_editor(wordpress, "Links", "[links]")
        sent(wordpress)
        page = receiver.pages[f"post-{post}"]
        shown = stripped(httpx.get(page.url, timeout=60).text)
    finally:
        wordpress.php("update_option('permalink_structure', '/%postname%/'); flush_rewrite_rules(false);")
    assert ("?a=1" if names else f"?p={post}&a=1") in stripped(page.content)
    assert stripped(page.content) in shown


# After two requests, what a firewall or a limit of requests answers to all further ones.
KEEPS_OUT = """<?php
if (isset($_GET['pagewire-visit'])) {
    file_put_contents(WP_CONTENT_DIR . '/asked', '.', FILE_APPEND);
    clearstatcache();
    if (filesize(WP_CONTENT_DIR . '/asked') > 2) { http_response_code(STATUS); exit('Too many.'); }
}
"""


@pytest.mark.parametrize("status", [200, 302, 403, 404, 503])
def test_what_keeps_the_site_from_its_own_pages_halfway_deletes_none(
    wordpress: WordPress, receiver: Receiver, status: int
) -> None:
    posts = [odd.behind_the_editor(wordpress, f"Fine {n}", "<p>For all.</p>") for n in range(3)]
    sent(wordpress)
    fine = set(receiver.pages)
    assert len(fine) == len(posts)
    (wordpress.folder / "www/wp-content/asked").unlink(missing_ok=True)
    receiver.answers = lambda lines: (503, {}, {})
    members = odd.behind_the_editor(wordpress, "Inside", "<p>For members.</p>", "bar_form")
    wordpress.php("".join(f"wp_update_post(array('ID' => {post}));" for post in posts))
    receiver.answers = lambda lines: None
    odd.install(wordpress, KEEPS_OUT.replace("STATUS", str(status)), "away")
    wordpress.due()
    assert set(receiver.pages) == fine
    assert told(wordpress) == {f"post-{members}": odd.BARRED["bar_form"]}
    assert "cannot ask for its own pages" in wordpress.php("echo get_option('pagewire_state')['problem'];")
    odd.remove(wordpress, "away")
    wordpress.due()
    sent(wordpress)
    assert set(receiver.pages) == fine


A_CACHE = """<?php
if (strpos($_SERVER['REQUEST_URI'] ?? '', '/cached/?') !== false) { exit('<html><p>As it was.</p></html>'); }
"""


def test_a_cache_that_answers_for_a_page_does_not_delete_it(wordpress: WordPress, receiver: Receiver) -> None:
    """One that does not heed the query."""
    post = odd.behind_the_editor(wordpress, "Cached", "<p>As it was.</p>")
    sent(wordpress)
    odd.install(wordpress, A_CACHE, "away")
    wordpress.php(f"wp_update_post(array('ID' => {post}, 'post_content' => '<p>As it is.</p>'));")
    sent(wordpress)
    assert stripped(receiver.pages[f"post-{post}"].content) == "As it was."
    assert "such as a firewall or a page cache" in told(wordpress)[f"post-{post}"]


# A page of which visitors already have a part, and one that is longer than we read.
CUT_OFF = """<?php
add_action('template_redirect', function () {
    list($at) = explode('?', $_SERVER['REQUEST_URI']);
    echo str_repeat(' ', $at === '/too-long/' ? 8000000 : 1000);
    flush();
    if ($at === '/fails/') { no_such_function(); }
    if ($at === '/pays/') { die('For subscribers.'); }
});
"""


def test_a_page_that_is_cut_off_stays_and_one_that_its_code_keeps_from_visitors_goes(
    wordpress: WordPress, receiver: Receiver
) -> None:
    fails, long, pays = (
        f"post-{odd.behind_the_editor(wordpress, title, '<p>x</p>')}" for title in ("Fails", "Too long", "Pays")
    )
    sent(wordpress)
    assert set(receiver.pages) == {fails, long, pays}
    odd.install(wordpress, CUT_OFF, "away")
    wordpress.php("foreach (get_posts() as $post) { wp_update_post(array('ID' => $post->ID)); }")
    sent(wordpress)
    assert set(receiver.pages) == {fails, long}
    why = told(wordpress)
    assert why[fails] == "This page cannot be shown: an error ends it."
    assert why[long] == "This page cannot be shown: it is too long."
    assert why[pays].startswith("Visitors who are not logged in do not see its content")


BUSY = """<?php
if (strpos($_SERVER['REQUEST_URI'] ?? '', '/busy/') !== false) {
    file_put_contents(WP_CONTENT_DIR . '/busy', '.', FILE_APPEND); http_response_code(503); exit;
}
"""


def test_a_page_that_fails_is_asked_for_again_in_minutes_and_then_daily(
    wordpress: WordPress, receiver: Receiver
) -> None:
    asked = wordpress.folder / "www/wp-content/busy"
    post = odd.behind_the_editor(wordpress, "Busy", "<p>x</p>")
    sent(wordpress)
    odd.install(wordpress, BUSY, "away")
    wordpress.php(f"wp_update_post(array('ID' => {post}, 'post_content' => '<p>y</p>'));")
    sent(wordpress)
    for minutes, times in ((1, 1), (6, 2), (6, 2)):
        wordpress.sql(f"UPDATE wp_pagewire_pages SET revision = revision - {60_000 * minutes}")
        wordpress.due()
        sent(wordpress)
        assert len(asked.read_text()) == times
    assert stripped(receiver.pages[f"post-{post}"].content) == "x"
    assert told(wordpress) == {f"post-{post}": "This page cannot be shown: the server answers 503."}
    odd.remove(wordpress, "away")
    wordpress.php("$s = get_option('pagewire_state'); $s['retried'] = 1; update_option('pagewire_state', $s);")
    wordpress.due()
    sent(wordpress)
    assert stripped(receiver.pages[f"post-{post}"].content) == "y"


def test_an_upgrade_takes_back_what_visitors_do_not_get(wordpress: WordPress, receiver: Receiver) -> None:
    fine, members = (odd.behind_the_editor(wordpress, title, f"<p>{title}</p>") for title in ("Fine", "Members"))
    sent(wordpress)
    wordpress.sql(
        f"INSERT INTO wp_postmeta (post_id, meta_key, meta_value) VALUES ({members}, 'for_members', 'bar_redirect');"
        "ALTER TABLE wp_pagewire_pages DROP COLUMN barred;"
        "UPDATE wp_options SET option_value = 1 WHERE option_name = 'pagewire_table'"
    )
    httpx.get(wordpress.url, timeout=60)
    wordpress.due()
    sent(wordpress)
    assert set(receiver.pages) == {f"post-{fine}"}
