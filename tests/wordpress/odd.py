"""Pages whose own code does what it should not, and pages for members only, as plugins of a real site make them."""

from __future__ import annotations

from tests.wordpress.peer import WordPress

SECRET = "the secret code of members is"
# Shortcodes that end the page. The first is 10up/ElasticPress issue 3328.
ENDING = ("exits_elsewhere", "exits", "dies", "breaks", "fails", "eats", "throws", "spins")
# What visitors see all the same.
UNTIDY = ("unbuffers", "buffers", "flushes", "forgets", "asks", "speaks", "squeezes", "counts")
# How plugins keep a page for members -> what is said of it: a redirect, a query that finds nothing, a login form at the
# same address, and other content at that: by a filter where a theme shows it, and in the post itself.
BARRED = {
    "bar_redirect": "Visitors who are not logged in are led elsewhere.",
    "bar_query": "Visitors who are not logged in do not get it (404).",
    "bar_form": "Visitors who are not logged in do not get it (403).",
    "bar_content": "",
    "bar_posts": "",
}

CODE = (
    r"""<?php
add_shortcode('exits_elsewhere', function () {
    if (!is_user_logged_in()) { wp_safe_redirect(home_url('/')); exit; }
    return 'For members.';
});
add_shortcode('exits', function () { if (!is_admin() && !wp_is_json_request()) { exit; } });
add_shortcode('dies', function () { wp_die('no'); });
add_shortcode('fails', function () { no_such_function(); });
add_shortcode('throws', function () { throw new TypeError('out of tea'); });
add_shortcode('eats', function () { ini_set('memory_limit', '48M'); str_repeat('x', 100 << 20); });
add_shortcode('spins', function () { while (true) { } });
add_shortcode('unbuffers', function () { while (ob_get_level()) { ob_end_clean(); } return ''; });
add_shortcode('buffers', function () { ob_start(); ob_start(); return ''; });
add_shortcode('flushes', function () { echo 'now'; flush(); @header('X-Odd: 1'); return ''; });
add_shortcode('forgets', function () {
    global $post, $wp_query, $more;
    $wp_query = new WP_Query(array('post_type' => 'page')); $wp_query->the_post(); $post = get_post(1); $more = 0;
    return '';
});
add_shortcode('asks', function () { return wp_strip_all_tags(apply_filters('the_content', 'Within.')); });
add_shortcode('squeezes', function () {  // as themes that escape everything, and as caches that make pages smaller
    ob_start(function ($rest) { return preg_replace('~(?<==)"([-\w]+)"~', '$1', wp_kses_post($rest)); });
    return '';
});
add_shortcode('counts', function () {
    wp_update_post(array('ID' => get_the_ID(), 'post_mime_type' => 'seen/' . microtime(true))); return '';
});
add_shortcode('publishes', function () {  // as plugins that publish what the clock has missed
    foreach (get_posts(array('post_status' => 'draft')) as $due) { wp_publish_post($due->ID); }
    return '';
});
add_shortcode('speaks', function () { switch_to_locale('de_DE'); return ''; });
"""
    f"define('SECRET_WORDS', '{SECRET}');"
    """
function for_members($post, $how) {
    return !is_user_logged_in() && $post && get_post_meta($post->ID, 'for_members', true) === $how;
}
register_post_meta('post', 'for_members', array('show_in_rest' => true, 'single' => true, 'type' => 'string'));
add_action('template_redirect', function () {
    if (is_singular() && for_members(get_queried_object(), 'bar_redirect')) {
        wp_safe_redirect(wp_login_url()); exit;
    }
    if (is_singular() && for_members(get_queried_object(), 'bar_form')) {
        status_header(403); echo '<form>Log in</form>'; exit;
    }
});
add_filter('the_content', function ($content) {
    return is_main_query() && in_the_loop() && for_members(get_post(), 'bar_content') ? 'Members only.' : $content;
}, 20);
add_action('pre_get_posts', function ($query) {
    if ($query->is_main_query() && $query->is_singular() && !is_user_logged_in()) {
        $query->set('meta_query', array('relation' => 'OR',
            array('key' => 'for_members', 'compare' => 'NOT EXISTS'),
            array('key' => 'for_members', 'value' => 'bar_query', 'compare' => '!=')));
    }
});
add_filter('the_posts', function ($posts, $query) {
    foreach ($query->is_main_query() ? $posts : array() as $post) {
        if (for_members($post, 'bar_posts')) { $post->post_content = 'Members only.'; }
    }
    return $posts;
}, 10, 2);
"""
)

# As docs/howto/wordpress.md has it.
KNOWS_IT = """
add_filter( 'http_request_args', function ( $arguments, $url ) {
    if ( 0 === strpos( $url, home_url( '/' ) ) ) {
        $arguments['headers']['Authorization'] = 'Basic ' . base64_encode( 'town:hall' );
    }
    return $arguments;
}, 10, 2 );
"""


def install(wordpress: WordPress, code: str = CODE, name: str = "odd") -> None:
    """As a plugin of the site, from the next request on."""
    (wordpress.folder / f"www/wp-content/mu-plugins/{name}.php").write_text(code)


def remove(wordpress: WordPress, name: str = "odd") -> None:
    (wordpress.folder / f"www/wp-content/mu-plugins/{name}.php").unlink(missing_ok=True)


def behind_the_editor(wordpress: WordPress, title: str, content: str, how: str = "") -> str:
    """A published post, not through REST, which would show the page itself; its id."""
    meta = f", 'meta_input' => array('for_members' => '{how}')" if how else ""
    return wordpress.php(
        f"echo wp_insert_post(array('post_title' => '{title}', 'post_content' => '{content}', "
        f"'post_status' => 'publish'{meta}));"
    ).strip()
