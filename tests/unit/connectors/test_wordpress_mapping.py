"""What the REST API says of a post -> the page document. That the plugin says the same: tests/wordpress."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.cms.frame import Listed
from connectors.cms.wordpress.client import document, listed, revision, type_and_number


def post(**fields: Any) -> dict[str, Any]:
    return {
        "id": 12,
        "type": "post",
        "status": "publish",
        "slug": "lake-ferry",
        "link": "https://town.example/lake-ferry/",
        "modified_gmt": "2026-11-21T20:30:05",
        "title": {"rendered": "Lake &#8220;ferry&#8221;"},
        "content": {"rendered": "<p>A ticket costs 4 euros.</p>\n<p>Children pay 2.</p>\n", "protected": False},
        "excerpt": {"rendered": "<p>What it costs.</p>\n", "protected": False},
        **fields,
    }


def test_a_post_is_a_page() -> None:
    terms = [
        [
            {"name": "Ships &amp; boats", "slug": "ships", "taxonomy": "category"},
            {"name": "Other", "slug": "uncategorized", "taxonomy": "category"},
        ],
        [{"name": "x" * 201, "slug": "x", "taxonomy": "post_tag"}, {}],
    ]
    page = document(post(_embedded={"wp:term": terms}), "de")
    assert (page.id, page.lang, page.url) == ("post-12", "de", "https://town.example/lake-ferry/")
    assert (page.name, page.title, page.description) == ("lake ferry", "Lake “ferry”", "What it costs.")
    assert page.keywords == ("Ships & boats", "x" * 201)
    assert page.labels == {"category": ("Ships & boats",)}
    assert page.revision == 1795293005999
    assert page.changed_at is not None
    assert page.changed_at.isoformat() == "2026-11-21T20:30:05+00:00"


def test_a_language_is_written_as_we_do_in_list_and_page() -> None:
    assert listed(post(lang="pt_BR"), "de") == Listed("post-12", "pt-BR", 1795293005999)
    assert document(post(lang="pt_BR"), "de").lang == "pt-BR"


@pytest.mark.parametrize(
    "made",
    ["<p>A ticket costs 4 euros. Children pay 2.</p>", "<p>A ticket costs [&hellip;]</p>", "<p>A ticket</p>", ""],
)
def test_an_excerpt_that_wordpress_made_is_no_description(made: str) -> None:
    assert document(post(excerpt={"rendered": made}), "en").description == ""


def test_what_the_plugin_says_goes_first() -> None:
    told = {"lang": "pt-BR", "description": ""}
    page = document(post(pagewire=told, lang="pt"), "en")
    assert (page.lang, page.description) == ("pt-BR", "")


def test_what_not_everybody_may_read_is_not_listed() -> None:
    assert listed(post(), "en") is not None
    assert listed(post(content={"protected": True}), "en") is None
    assert listed(post(status="private"), "en") is None
    assert listed(post(pagewire=None), "en") is None  # the plugin says so


def test_ids_lead_back_to_their_posts() -> None:
    assert type_and_number("my-event-12") == ("my-event", 12)
    assert revision(post(modified_gmt="1970-01-01T00:00:01")) == 1999


def test_a_post_without_a_modified_date_has_none() -> None:
    never = post(modified_gmt="-0001-11-30T00:00:00")  # what the REST API makes of 0000-00-00
    assert document(never, "en").changed_at is None
    assert listed(never, "en") == Listed("post-12", "en", 999)


def test_what_yoast_says_for_machines_comes_behind_the_content() -> None:
    head = '<meta name="x"><script>1</script><script type="application/ld+json" class="yoast">{"@graph":[]}</script>'
    assert document(post(yoast_head=head), "en").content == (
        document(post(), "en").content + '<script type="application/ld+json">{"@graph":[]}</script>'
    )
