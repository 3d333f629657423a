"""Pages whose own code harms nobody but themselves, and pages that visitors do not get: neither leaves the site."""

from __future__ import annotations

import pytest

from connectors.cms.frame import Barred
from schemas.page import PageDocument
from tests.acceptance.system import eventually
from tests.wordpress import odd
from tests.wordpress.peer import WordPress
from tests.wordpress.receiver import Receiver, sent
from tests.wordpress.test_puller import all_pages, asked, everything
from text.html import stripped

pytestmark = [pytest.mark.wordpress, pytest.mark.usefixtures("odd_plugins", "without_posts")]

PROBLEM = "echo get_option('pagewire_state', array())['problem'] ?? '';"


def barred(wordpress: WordPress) -> dict[str, str]:
    """What visitors do not get, and why."""
    rows = wordpress.sql("SELECT page_id, barred FROM wp_pagewire_pages WHERE barred <> ''")
    return dict(row.split("\t") for row in rows.splitlines())


def test_whatever_a_page_does_it_is_named_and_the_others_are_sent(wordpress: WordPress, receiver: Receiver) -> None:
    """The first is 10up/ElasticPress issue 3328. The clock's other jobs run, too."""
    wordpress.php("wp_schedule_single_event(time() - 1, 'of_somebody_else');")
    posts, fine = [], []
    for number, code in enumerate(odd.ENDING):
        posts.append(odd.behind_the_editor(wordpress, code, f"<p>Before</p>[{code}]<p>after</p>"))
        fine.append(f"post-{wordpress.create(title=f'Fine {number}', content='<p>y</p>')['id']}")
    wordpress.due()
    sent(wordpress)
    assert set(receiver.pages) == set(fine)
    assert "of_somebody_else" not in wordpress.php("echo serialize(get_option('cron'));")
    with wordpress.admin() as admin:
        page = admin.settings()
    for post in posts:
        [row] = [row for row in page.split("<tr>") if f"post={post}&" in row]
        assert "This page cannot be shown: " in row
    assert wordpress.php(PROBLEM) == ""


@pytest.mark.parametrize("code", odd.UNTIDY)
def test_a_page_that_leaves_a_mess_is_sent_as_visitors_see_it(
    wordpress: WordPress, receiver: Receiver, code: str
) -> None:
    says = f"<p>Opens at <b>nine</b>.</p><p>[{code}]</p><!--nextpage--><p>Closes at ten.</p>"
    post = odd.behind_the_editor(wordpress, "Untidy", says)
    sent(wordpress)
    content = receiver.pages[f"post-{post}"].content
    assert "<p>Opens at <b>nine</b>.</p>" in content
    assert "<p>Closes at ten.</p>" in content
    assert "pagewire" not in content
    assert receiver.pages[f"post-{post}"].title == "Untidy"
    assert len(receiver.deliveries) == 1


def test_what_a_page_publishes_while_it_is_asked_for_is_sent(wordpress: WordPress, receiver: Receiver) -> None:
    due = wordpress.create(title="Due", content="<p>x</p>", slug="due", status="draft")
    odd.behind_the_editor(wordpress, "Publishes", "<p>y</p>[publishes]")
    eventually(lambda: f"post-{due['id']}" in receiver.pages)


@pytest.mark.parametrize("how", odd.BARRED)
def test_what_only_members_may_read_never_leaves(wordpress: WordPress, receiver: Receiver, how: str) -> None:
    """WordPress/plugin-check issue 1427, Automattic/jetpack issue 17116. By the plugin and by the puller."""
    fine = f"post-{wordpress.create(title='Fine', content='<p>For all.</p>')['id']}"
    post = f"post-{odd.behind_the_editor(wordpress, 'Inside', f'<p>{odd.SECRET} mango, said twice a day.</p>', how)}"
    published = {fine: "For all."}
    if how in ("bar_content", "bar_posts"):  # visitors get the page, with something else on it
        published[post] = "Members only."
    sent(wordpress)
    assert {id: stripped(page.content) for id, page in receiver.pages.items()} == published
    assert barred(wordpress) == ({} if post in published else {post: odd.BARRED[how]})
    assert {one.page_id for one in asked(wordpress, everything)} == set(published)

    wordpress.sql("DELETE FROM wp_pagewire_pages")  # a puller that comes first, or where the plugin never was
    for page in asked(wordpress, all_pages):
        assert odd.SECRET not in repr(page)
    assert {one.page_id for one in asked(wordpress, everything)} == {fine, post}


def test_a_page_that_becomes_one_for_members_is_deleted_and_comes_back(
    wordpress: WordPress, receiver: Receiver
) -> None:
    post = wordpress.create(title="Minutes", content="<p>x</p>")
    id = f"post-{post['id']}"
    sent(wordpress)
    assert id in receiver.pages
    wordpress.change(post, meta={"for_members": "bar_redirect"})
    sent(wordpress)
    assert id not in receiver.pages
    wordpress.php(f"delete_post_meta({post['id']}, 'for_members');")  # behind everybody's back
    wordpress.php("$s = get_option('pagewire_state'); $s['retried'] = 1; update_option('pagewire_state', $s);")
    wordpress.due()
    eventually(lambda: id in receiver.pages)
    sent(wordpress)
    assert barred(wordpress) == {}


def test_where_the_whole_site_needs_a_login_the_owner_says_as_whom_pages_are_read(
    wordpress: WordPress, receiver: Receiver
) -> None:
    odd.install(wordpress, "<?php add_filter('pagewire_reader', function () { return 1; });", "away")
    post = f"post-{odd.behind_the_editor(wordpress, 'Inside', '<p>For employees.</p>', 'bar_redirect')}"
    sent(wordpress)
    assert stripped(receiver.pages[post].content) == "For employees."
    assert [type(page) for page in asked(wordpress, all_pages)] == [Barred]
    [page] = asked(wordpress, all_pages, as_visitor=False)
    assert isinstance(page, PageDocument)


NO_WAY = """<?php
add_filter('pre_http_request', function ($answer, $arguments, $url) {
    return strpos($url, 'pagewire-visit') ? new WP_Error('http_request_failed', 'cURL error 7: refused') : $answer;
}, 10, 3);
"""
A_PASSWORD = """<?php
$given = $_SERVER['HTTP_AUTHORIZATION'] ?? '';
if (isset($_GET['pagewire-visit']) && $given !== 'Basic ' . base64_encode('town:hall')) {
    header('WWW-Authenticate: Basic realm="staging"', true, 401); exit;
}
"""


@pytest.mark.parametrize(
    ("stands_before", "reason", "mended"),
    [(NO_WAY, "cURL error 7: refused", "<?php"), (A_PASSWORD, "a password stands before", A_PASSWORD + odd.KNOWS_IT)],
)
def test_a_site_that_cannot_ask_itself_says_so_sends_no_page_and_deletes_all_the_same(
    wordpress: WordPress, receiver: Receiver, stands_before: str, reason: str, mended: str
) -> None:
    gone = wordpress.create(title="Goes", content="<p>x</p>")
    wordpress.create("pages", title="Of a kind that is not sent any more", content="<p>x</p>")
    sent(wordpress)
    assert len(receiver.pages) == 2
    odd.install(wordpress, stands_before, "away")
    post = wordpress.create(title="Waits", content="<p>x</p>")
    wordpress.change(gone, status="draft")
    wordpress.configure(types=["post"])
    wordpress.due()
    eventually(lambda: not receiver.pages)
    with wordpress.admin() as admin:
        assert reason in admin.settings()
        assert "This site cannot ask for its own pages as a visitor would" in admin.press("pagewire_test")
    assert [row["page_id"] for row in wordpress.queue()] == [f"post-{post['id']}"]
    assert receiver.pages == {}
    odd.install(wordpress, mended, "away")
    wordpress.due()
    sent(wordpress)
    assert f"post-{post['id']}" in receiver.pages
    assert wordpress.php(PROBLEM) == ""


def test_a_page_whose_asking_ends_the_run_twice_is_set_aside(wordpress: WordPress, receiver: Receiver) -> None:
    """Such as a server that stops whoever waits for long."""
    killer = odd.behind_the_editor(wordpress, "Killer", "<p>x</p>")
    sent(wordpress)
    odd.install(
        wordpress,
        f"<?php add_filter('pre_http_request', function ($answer, $arguments, $url) {{"
        f"if (strpos($url, 'pagewire-visit={killer}-')) {{ exit; }} return $answer; }}, 10, 3);",
        "away",
    )
    wordpress.php(f"wp_update_post(array('ID' => {killer}, 'post_content' => '<p>y</p>'));")
    fine = wordpress.create(title="Fine", content="<p>y</p>")
    for _ in range(3):
        wordpress.due()
    sent(wordpress)
    assert f"post-{fine['id']}" in receiver.pages
    with wordpress.admin() as admin:
        assert "whoever asks for it is stopped by the server" in admin.settings()


# What Polylang's users import does: polylang/polylang issue 200, PR 1520.
LANGUAGES = """<?php
add_action('init', function () { register_taxonomy('language', 'post', array('public' => false)); }, 5);
function pll_set_post_language($id, $lang) { wp_set_object_terms($id, $lang, 'language'); }
function pll_get_post_language($id, $field) {
    $terms = get_the_terms($id, 'language'); return $terms ? $terms[0]->slug : 'en';
}
add_filter('wpml_post_language_details', function ($details, $id) {
    $lang = get_post_meta($id, 'wpml', true); return $lang ? array('language_code' => $lang) : $details;
}, 10, 2);
"""


def test_a_language_that_is_set_behind_the_save_is_that_of_the_page(wordpress: WordPress, receiver: Receiver) -> None:
    odd.install(wordpress, LANGUAGES, "languages")
    post = wordpress.php(
        "$id = wp_insert_post(array('post_title' => 'Fähre', 'post_content' => '<p>x</p>', "
        "'post_status' => 'publish')); pll_set_post_language($id, 'de'); echo $id;"
    )
    id = f"post-{post}"
    sent(wordpress)
    assert {lang for (page, lang), line in receiver.latest.items() if page == id and line.op == "upsert"} == {"de"}
    wordpress.php(f"pll_set_post_language({post}, 'fr');")  # without a save
    sent(wordpress)
    assert {lang for (page, lang), line in receiver.latest.items() if page == id and line.op == "upsert"} == {"fr"}
    # By what fires no event: the next look at the old row finds it.
    wordpress.sql("UPDATE wp_terms SET slug = 'pt-br' WHERE slug = 'fr'")
    wordpress.php(f"(new Pagewire\\Queue())->touch({post});")
    wordpress.due()
    sent(wordpress)
    assert {lang for (page, lang), line in receiver.latest.items() if page == id and line.op == "upsert"} == {"pt-BR"}


def test_wpml_tells_of_a_language_by_an_event_of_its_own(wordpress: WordPress, receiver: Receiver) -> None:
    odd.install(wordpress, LANGUAGES.replace("$terms[0]->slug : 'en'", "$terms[0]->slug : ''"), "languages")
    post = wordpress.create(title="Ferry", content="<p>x</p>")["id"]
    sent(wordpress)
    wordpress.php(
        f"update_post_meta({post}, 'wpml', 'de'); do_action('wpml_translation_update', array('type' => 'update', "
        f"'element_id' => {post}, 'element_type' => 'post_post', 'context' => 'post'));"
    )
    sent(wordpress)
    assert {lang for (_, lang), line in receiver.latest.items() if line.op == "upsert"} == {"de"}


def test_a_post_without_a_modified_date_is_sent_and_read(wordpress: WordPress, receiver: Receiver) -> None:
    """Yoast/wordpress-seo issues 7350 and 11031."""
    post = wordpress.create(title="Imported", content="<p>x</p>")
    sent(wordpress)
    never = "'0000-00-00 00:00:00'"
    wordpress.sql(f"UPDATE wp_posts SET post_modified = {never}, post_modified_gmt = {never} WHERE ID = {post['id']}")
    receiver.latest.clear()
    wordpress.php("wp_cache_flush();")
    with wordpress.admin() as admin:
        admin.press("pagewire_send_everything")
    eventually(lambda: f"post-{post['id']}" in receiver.pages)
    assert receiver.pages[f"post-{post['id']}"].changed_at is None
    [page] = asked(wordpress, all_pages)
    assert isinstance(page, PageDocument)
    assert page.changed_at is None
