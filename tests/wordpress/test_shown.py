"""Pages that are read as the theme shows them: fields of its templates, prices, attributes, no words of other people.

The fields are printed by a theme of the test's own, as themes print those of Advanced Custom Fields; the shop is a
stand-in that prints what WooCommerce's templates do, through the filters that WooCommerce has.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connectors.cms.frame import UnreadablePage
from connectors.cms.wordpress.source import SHOWN
from tests.wordpress import odd
from tests.wordpress.peer import WordPress
from tests.wordpress.receiver import Receiver, sent
from tests.wordpress.test_puller import all_pages, asked
from tests.wordpress.test_visit import told
from text.html import to_markdown

pytestmark = [pytest.mark.wordpress, pytest.mark.usefixtures("odd_plugins", "without_posts")]

# What of single-event.php comes before the content: a field, and one that the theme does not show.
THEME = """<!doctype html><html><head><?php wp_head(); ?></head><body>
<header class="site-header"><nav>Home News</nav></header><main class="wp-site"><?php while (have_posts()) { the_post();
the_title('<h1>', '</h1>'); if (get_post_meta(get_the_ID(), 'door', true)) {
echo '<dl><dt>Entrance</dt><dd>', esc_html(get_post_meta(get_the_ID(), 'door', true)), '</dd></dl>'; }
if (!get_post_meta(get_the_ID(), 'fields_alone', true)) { the_content(); }
do_action('after_content'); comments_template(); } ?></main>
<footer class="site-footer">Imprint</footer><?php wp_footer(); ?></body></html>
"""
COMMENTS = """<?php if (have_comments()) { echo '<h2>', get_comments_number(), ' opinions</h2>';
wp_list_comments(); } comment_form();
"""
SHOP = """<?php add_action('after_content', function () {
    if (!get_post_meta(get_the_ID(), 'price', true)) { return; }
    echo '<p class="price"><del aria-hidden="true"><bdi>29,00 €</bdi></del> '
        . '<span class="screen-reader-text">Original price was: 29,00 €.</span>'
        . '<ins aria-hidden="true"><bdi>19,00 €</bdi></ins>'
        . '<span class="screen-reader-text">Current price is: 19,00 €.</span></p>'
        . '<p class="stock in-stock">7 in stock</p><table class="woocommerce-product-attributes shop_attributes">'
        . '<tr><th scope="row">Colour</th><td><p>Blue</p></td></tr></table>';
    foreach (apply_filters('woocommerce_related_products', array('Teapot 99,00 €')) as $other) {
        echo "<section class='related products'><h2>Related products</h2><ul><li>$other</li></ul></section>";
    }
});
"""


@pytest.fixture
def shown(wordpress: WordPress, receiver: Receiver) -> Iterator[Receiver]:
    theme = wordpress.folder / "www/wp-content/themes/tiny"
    before = (theme / "index.php").read_text()
    (theme / "index.php").write_text(THEME)
    (theme / "comments.php").write_text(COMMENTS)
    odd.install(wordpress, SHOP, "shop")
    wordpress.configure(shown=["event"])
    yield receiver
    odd.remove(wordpress, "shop")
    (theme / "index.php").write_text(before)
    (theme / "comments.php").unlink()
    wordpress.configure(shown=[])


def event(wordpress: WordPress, title: str, content: str, **meta: str) -> str:
    fields = ", ".join(f"'{key}' => '{value}'" for key, value in meta.items())
    return wordpress.php(
        f"echo wp_insert_post(array('post_type' => 'event', 'post_title' => '{title}', 'post_status' => 'publish', "
        f"'comment_status' => 'open', 'post_content' => '{content}', 'meta_input' => array({fields})));"
    ).strip()


def test_fields_that_the_theme_prints_are_sent_and_others_are_not(wordpress: WordPress, shown: Receiver) -> None:
    post = event(wordpress, "Concert", "<p>Two hours of Bach.</p>", door="19:30, north gate", note="do not tell")
    wordpress.php(f"wp_insert_comment(array('comment_post_ID' => {post}, 'comment_content' => 'Boring!'));")
    bare = event(wordpress, "Reading", "", door="The cellar", fields_alone="1")
    sent(wordpress)
    page = shown.pages[f"event-{post}"]
    text = to_markdown(page.content)
    assert (page.title, page.url) == ("Concert", f"{wordpress.url}/event/concert/")
    assert "north gate" in text
    assert "Two hours of Bach." in text
    for elsewhere in ("do not tell", "Boring", "opinions", "Leave a Reply", "Home News", "Imprint", "pagewire-"):
        assert elsewhere not in page.content, elsewhere
    assert "The cellar" in shown.pages[f"event-{bare}"].content


def test_a_product_has_its_price_stock_and_attributes_and_no_other_products(
    wordpress: WordPress, shown: Receiver
) -> None:
    post = event(wordpress, "Mug", "<p>Holds tea.</p>", price="19")
    sent(wordpress)
    text = to_markdown(shown.pages[f"event-{post}"].content)
    for words in ("Holds tea.", "19,00 €", "7 in stock", "| Colour | Blue |"):
        assert words in text, text
    assert "Current price is: 19,00 €" in text or "~~29,00 €~~" in text
    assert "99,00" not in text


def test_a_page_that_hides_its_content_is_still_no_page(wordpress: WordPress, shown: Receiver) -> None:
    ids = [
        event(wordpress, "Ball", "<p>For members.</p>", door="Back", fields_alone="1"),
        event(wordpress, "Gala", "<p>For members.</p>", for_members="bar_redirect"),
        event(wordpress, "Fete", "[fails]", door="Front"),
    ]
    sent(wordpress)
    assert not shown.pages.keys() & {f"event-{id}" for id in ids}
    assert [told(wordpress)[f"event-{id}"].partition(":")[0] for id in ids] == [
        "Visitors who are not logged in do not see its content",
        "Visitors who are not logged in are led elsewhere.",
        "This page cannot be shown",
    ]


def test_other_kinds_are_sent_by_their_content_alone(wordpress: WordPress, shown: Receiver) -> None:
    post = wordpress.create(title="News", content="<p>Rain.</p>")
    sent(wordpress)
    assert shown.pages[f"post-{post['id']}"].content.strip() == "<p>Rain.</p>"


def test_the_puller_leaves_them_to_the_plugin_and_says_so(wordpress: WordPress, shown: Receiver) -> None:
    post = event(wordpress, "Concert", "<p>Bach.</p>", door="North")
    news = wordpress.create(title="News", content="<p>Rain.</p>")
    found = {getattr(one, "listed", one).page_id if isinstance(one, UnreadablePage) else one.id: one
             for one in asked(wordpress, all_pages)}  # fmt: skip
    left = found[f"event-{post}"]
    assert isinstance(left, UnreadablePage)
    assert left.reason == SHOWN
    assert not isinstance(found[f"post-{news['id']}"], UnreadablePage)
