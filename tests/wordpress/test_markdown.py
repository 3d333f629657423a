"""Pages as Markdown and llms.txt under WordPress's own address, from a scripted Pagewire."""

from __future__ import annotations

import time
from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest

from tests.wordpress import odd
from tests.wordpress.peer import WordPress
from tests.wordpress.receiver import Answer, Receiver

pytestmark = [pytest.mark.wordpress, pytest.mark.usefixtures("odd_plugins", "without_posts")]


def given(text: str) -> Answer:
    return 200, text, {"Content-Type": "text/markdown; charset=utf-8", "ETag": f'"{len(text)}-{text[:9].strip()}"'}


@pytest.fixture
def visitor(wordpress: WordPress, receiver: Receiver) -> Iterator[httpx.Client]:
    wordpress.sql("DELETE FROM wp_options WHERE option_name LIKE '%transient%pagewire%'")
    wordpress.configure(markdown=True)
    with httpx.Client(base_url=wordpress.url, timeout=60) as visitor:
        yield visitor


def published(wordpress: WordPress, receiver: Receiver, title: str, says: str, how: str = "") -> str:
    """A page that Pagewire has; its id."""
    post = odd.behind_the_editor(wordpress, title, f"<p>{says}</p>", how)
    receiver.pages_as_markdown[of(post)] = given(f"# {title}\n\n{says}\n")
    return post


def of(post: str) -> str:
    return f"/v1/sites/town/pages/post-{post}.md?lang=en"


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        ("/library.md", "*/*"),
        ("/library/?format=md", "text/html"),
        ("/library/", "text/markdown, text/html;q=0.9, */*;q=0.8"),
        ("/library/", "text/html, text/markdown"),
    ],
)
def test_who_asks_for_markdown_gets_what_pagewire_has(
    wordpress: WordPress, receiver: Receiver, visitor: httpx.Client, path: str, accept: str
) -> None:
    published(wordpress, receiver, "Library", "Open till six.")
    answer = visitor.get(path, headers={"Accept": accept})
    assert (answer.status_code, answer.text) == (200, "# Library\n\nOpen till six.\n")
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert answer.headers["link"] == f'<{wordpress.url}/library/>; rel="canonical"'
    assert "Accept" in answer.headers["vary"]
    for etag in (answer.headers["etag"], f'"x", W/{answer.headers["etag"]}'):  # weak behind a proxy that compresses
        known = visitor.get(path, headers={"Accept": accept, "If-None-Match": etag})
        assert (known.status_code, known.content) == (304, b"")


@pytest.mark.parametrize(
    "accept", ["text/html,application/xhtml+xml,*/*;q=0.8", "text/html, text/markdown;q=0.5", "text/markdown;q=0", ""]
)
def test_browsers_get_the_page_and_hear_where_its_markdown_is(
    wordpress: WordPress, receiver: Receiver, visitor: httpx.Client, accept: str
) -> None:
    published(wordpress, receiver, "Library", "Open till six.")
    answer = visitor.get("/library/", headers={"Accept": accept})
    assert "<p>Open till six.</p>" in answer.text
    assert "Accept" in answer.headers["vary"]
    assert f'rel="alternate" type="text/markdown" href="{wordpress.url}/library/?format=md"' in answer.text
    assert not receiver.asked


def test_what_wordpress_keeps_from_a_visitor_stays_kept(
    wordpress: WordPress, receiver: Receiver, visitor: httpx.Client
) -> None:
    published(wordpress, receiver, "Wages", "For employees.", "bar_redirect")
    published(wordpress, receiver, "Forms", "For employees.", "bar_form")
    draft = published(wordpress, receiver, "Plans", "For employees.")
    wordpress.php(f"wp_update_post(array('ID' => {draft}, 'post_status' => 'draft'));")
    statuses = []
    for path in ("/wages.md", "/wages/?format=md", "/forms.md", "/plans.md", f"/?p={draft}&format=md", "/nothing.md"):
        answer = visitor.get(path)
        assert "For employees." not in answer.text, path
        statuses.append(answer.status_code)
    assert statuses == [302, 302, 403, 404, 404, 404]
    assert not receiver.asked


def test_an_answer_is_kept_and_asked_for_again_by_its_etag(
    wordpress: WordPress, receiver: Receiver, visitor: httpx.Client
) -> None:
    post = published(wordpress, receiver, "Library", "Open till six.")
    etag = receiver.pages_as_markdown[of(post)][2]["ETag"]
    for _ in range(3):
        assert "six" in visitor.get("/library.md").text
    assert receiver.asked == [(of(post), "")]
    outdated(wordpress)
    assert "six" in visitor.get("/library.md").text
    assert receiver.asked[1:] == [(of(post), etag)]
    receiver.pages_as_markdown[of(post)] = given("# Library\n\nOpen till eight.\n")
    outdated(wordpress)
    assert "eight" in visitor.get("/library.md").text
    del receiver.pages_as_markdown[of(post)]
    outdated(wordpress)
    assert "<p>Open till six.</p>" in visitor.get("/library.md").text  # the theme's


def outdated(wordpress: WordPress) -> None:
    """Answers that are kept are a minute old."""
    wordpress.php(
        'global $wpdb; foreach ($wpdb->get_col("SELECT option_name FROM $wpdb->options WHERE option_name LIKE '
        "'_transient_pagewire_md_%'\") as $name) "
        "{ $kept = get_option($name); $kept['at'] -= 60; update_option($name, $kept); }"
    )


def test_where_pagewire_is_away_the_theme_answers_and_only_the_first_one_waits(
    wordpress: WordPress, receiver: Receiver, visitor: httpx.Client
) -> None:
    post = published(wordpress, receiver, "Library", "Open till six.")
    receiver.pages_as_markdown[of(post)] = (503, {"code": "unavailable"}, {})
    for _ in range(2):
        assert "<p>Open till six.</p>" in visitor.get("/library.md").text
    assert len(receiver.asked) == 1
    wordpress.configure(endpoint="http://127.0.0.1:1")
    wordpress.sql("DELETE FROM wp_options WHERE option_name LIKE '%transient%pagewire%'")
    began = time.monotonic()
    assert "<p>Open till six.</p>" in visitor.get("/library/?format=md").text
    assert visitor.get("/llms.txt").status_code == 404
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("kind", ["text/html", "application/json"])
def test_something_else_than_markdown_is_not_passed_on(
    wordpress: WordPress, receiver: Receiver, visitor: httpx.Client, kind: str
) -> None:
    post = published(wordpress, receiver, "Library", "Open till six.")
    receiver.pages_as_markdown[of(post)] = (200, "<script>alert(1)</script>", {"Content-Type": kind})
    assert "alert(1)" not in visitor.get("/library.md").text


def test_llms_txt_lists_this_site_alone(wordpress: WordPress, receiver: Receiver, visitor: httpx.Client) -> None:
    below = f"/v1/sites/town/llms.txt?below={quote(f'{wordpress.url}/', safe='')}"
    receiver.pages_as_markdown[below] = given("# Town\n")
    receiver.pages_as_markdown[f"{below}&lang=pt-BR"] = given("# Cidade\n")
    answer = visitor.get("/llms.txt")
    assert (answer.text, answer.headers["content-type"]) == ("# Town\n", "text/markdown; charset=utf-8")
    for lang in ("pt-BR", "PT-br", "pt-br"):
        assert visitor.get(f"/llms.txt?lang={lang}").text == "# Cidade\n"
    assert {path for path, _ in receiver.asked} == {below, f"{below}&lang=pt-BR"}
    assert visitor.get("/llms.txt?lang=../../x").text == "# Town\n"
    assert visitor.get("/llms.txt?lang[]=x").text == "# Town\n"


def test_a_feed_an_embed_and_what_is_sent_get_no_markdown(
    wordpress: WordPress, receiver: Receiver, visitor: httpx.Client
) -> None:
    published(wordpress, receiver, "Library", "Open till six.")
    markdown = {"Accept": "text/markdown"}
    assert visitor.get("/library/", headers=markdown).text.startswith("# Library")
    for path in ("/library/feed/", "/library/embed/"):
        assert not visitor.get(path, headers=markdown).text.startswith("# Library"), path
    for path in ("/library/", "/library/?format=md", "/library.md", "/llms.txt"):
        assert visitor.post(path, headers=markdown).headers["content-type"].startswith("text/html"), path


def test_it_is_off_until_it_is_ticked(wordpress: WordPress, receiver: Receiver, visitor: httpx.Client) -> None:
    published(wordpress, receiver, "Library", "Open till six.")
    wordpress.configure(markdown=False)
    for path in ("/library/?format=md", "/library/"):
        answer = visitor.get(path, headers={"Accept": "text/markdown"})
        assert "<p>Open till six.</p>" in answer.text
        assert "text/markdown" not in answer.text
    assert visitor.get("/llms.txt").status_code == 404
    assert not receiver.asked
