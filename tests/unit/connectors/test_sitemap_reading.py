"""Sitemaps, robots.txt and web pages: what is read of them, and what is refused."""

from __future__ import annotations

import gzip
import tracemalloc
from datetime import UTC, datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from connectors.cms.addresses import same_site
from connectors.cms.fetching import Fetched, ServerUnavailable
from connectors.cms.page_fields import language_of
from connectors.cms.sitemap import discover
from connectors.cms.sitemap.discover import Location, NotASitemap, Robots, is_sitemap, parse
from connectors.cms.sitemap.page import TAGS, normal, page_id, read_page
from text.html import to_markdown
from text.html_tree import MAX_TAGS, behind_limit
from text.loss import OTHERS, counted

HERE = "https://www.town.example/sitemap.xml"
NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
BILLION = (
    '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;">]>'
)


def read(body: str | bytes) -> tuple[list[str], list[Location]]:
    return parse(Fetched(HERE, 200, body.encode() if isinstance(body, str) else body, {}), HERE)


def test_a_sitemap_lists_pages_and_times() -> None:
    body = f"""<?xml version="1.0"?><urlset {NS} xmlns:x="http://www.w3.org/1999/xhtml"><!-- made by hand -->
    <url><loc> https://www.town.example/a </loc><lastmod>2026-05-04</lastmod><x:link hreflang="de" href="/de"/></url>
    <url><loc>https://www.town.example/b?x=1&amp;y=2</loc></url><url><lastmod>2026</lastmod></url></urlset>"""
    assert read(body) == (
        [],
        [
            Location("https://www.town.example/a", "2026-05-04"),
            Location("/de"),  # a translation, which need not be listed itself
            Location("https://www.town.example/b?x=1&y=2"),
        ],
    )
    assert read(gzip.compress(body.encode())) == read(gzip.compress(gzip.compress(body.encode()))) == read(body)
    assert read("\ufeff  " + body) == read(body)
    for declared in ("", ' encoding="UTF-16"'):
        assert read(body.replace(' version="1.0"', f' version="1.0"{declared}').encode("utf-16")) == read(body)


def test_all_members_of_a_packed_list_are_read() -> None:
    # crawler-commons/crawler-commons issue 143
    members = [gzip.compress(f"https://www.town.example/{n}\n".encode()) for n in range(1_000)]
    assert len(read(b"".join(members))[1]) == 1_000
    assert len(read(b"".join(members) + bytes(1_000))[1]) == 1_000  # padded
    with pytest.raises(ServerUnavailable):
        read(b"".join(members)[:-9])


def test_an_index_lists_sitemaps() -> None:
    body = f"<sitemapindex {NS}><sitemap><loc>https://www.town.example/a.xml.gz</loc></sitemap></sitemapindex>"
    assert read(body) == (["https://www.town.example/a.xml.gz"], [])


def test_a_list_of_addresses_is_a_sitemap_too() -> None:
    assert read("https://a.example/1\nhttps://a.example/2\n")[1] == [
        Location("https://a.example/1"), Location("https://a.example/2"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("", "neither XML nor a list"),
        ("not found", "neither XML nor a list"),
        ("<urlset", "not XML"),
        ("<html><body>Not found</body></html>", "its root is <html>"),
        ("<rss></rss>", "its root is <rss>"),
        (b"\x1f\x8b garbage", "not what gzip packs"),
    ],
)
def test_what_is_no_sitemap_is_refused_not_empty(body: str | bytes, said: str) -> None:
    with pytest.raises(NotASitemap, match=said):
        read(body)


def test_entities_stay_closed_and_bombs_packed() -> None:
    secret = '<!DOCTYPE x [<!ENTITY s SYSTEM "file:///etc/passwd">]>'
    for doctype, entity in ((secret, "&s;"), (BILLION, "&c;&c;&c;")):
        _, found = read(f"{doctype}<urlset><url><loc>https://a.example/{entity}</loc></url></urlset>")
        assert all(len(one.url) < 100 and "root:" not in one.url for one in found)


def test_a_gzip_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discover, "SITEMAP_LIMIT", 100_000)
    bomb = gzip.compress(bytes(30_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(NotASitemap, match="unpacked larger than 100,000 bytes"):
            read(bomb)
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()
    with pytest.raises(ServerUnavailable):
        read(gzip.compress(b"<urlset>" + b" " * 9_000)[:-9])


@given(st.binary(max_size=300) | st.text(max_size=200).map(lambda text: f"<urlset>{text}</urlset>".encode()))
@example(b"\xfe\xff\x00")
@settings(max_examples=2 * settings().max_examples)
def test_whatever_stands_there_it_is_read_or_refused(body: bytes) -> None:
    try:
        sitemaps, pages = read(body)
    except (NotASitemap, ServerUnavailable):
        return
    assert all(isinstance(one, str) for one in sitemaps)
    assert all(one.url for one in pages)


@pytest.mark.parametrize(
    ("lastmod", "settled"),
    [
        ("", None),
        ("yesterday", None),
        ("9999-12-31", None),
        ("9999-12-31T23:59:59Z", None),
        ("2026-05-04", datetime(2026, 5, 6, tzinfo=UTC)),
        ("2026-05-04T10:00:00Z", datetime(2026, 5, 4, 10, 1, tzinfo=UTC)),
        ("2026-05-04T10:00:00+02:00", datetime(2026, 5, 4, 8, 1, tzinfo=UTC)),
        ("2026-05-04T10:00:00", datetime(2026, 5, 4, 10, 1, tzinfo=UTC)),
    ],
)
def test_a_time_is_settled_when_nothing_more_can_happen_in_it(lastmod: str, settled: datetime | None) -> None:
    assert Location("x", lastmod).settled() == settled


def test_robots_txt_says_where_and_how_often() -> None:
    robots = Robots(
        "User-agent: *\nDisallow: /\n\nUser-agent: Pagewire\nAllow: /*/help$\nDisallow: /private\nCrawl-delay: 3\n"
        "Sitemap: https://www.town.example/a.xml\n"
    )
    assert robots.allow("https://www.town.example/page")
    assert not robots.allow("https://www.town.example/private/x")
    assert (robots.delay, robots.sitemaps) == (3.0, ("https://www.town.example/a.xml",))
    assert Robots("<html>nonsense").allow("https://www.town.example/")
    assert not Robots("User-agent: *\nDisallow: /").allow("https://www.town.example/x")


def test_same_site_and_what_is_a_sitemap() -> None:
    assert same_site("https://a.example/x", "http://A.example/y")
    assert not same_site("https://a.example:8443/x", "https://a.example/y")
    assert not same_site("https://a.example.evil.example/", "https://a.example/")
    assert [is_sitemap(f"https://a.example{path}") for path in ("/s.xml", "/s.xml.gz?x=1", "/", "/xml")] == [
        True, True, False, False,
    ]  # fmt: skip


FRAME = """<!doctype html><html lang="de-AT"><head><title>Hundesteuer | Stadt</title><base href="/de/">
<meta name="description" content="Alles zu Hunden"><meta name=keywords content="Hund, Steuer,">
<link rel="canonical" href="hunde?x=1#top"></head><body><nav><a href="/">Start</a></nav>
<main><h1>Hundesteuer</h1><p>Kostet <a href="preise#p">12 Euro</a>.</p><script>x()</script></main>
<footer><a rel=nofollow href="/login">Login</a> <a href="mailto:x@y.example">Mail</a></footer></body></html>"""


def test_a_page_says_what_it_is() -> None:
    page = read_page(FRAME.encode(), "https://www.town.example/de/hunde", None)
    assert page.canonical == "https://www.town.example/de/hunde?x=1"
    assert (page.lang, page.title, page.description) == ("de-AT", "Hundesteuer", "Alles zu Hunden")
    assert page.keywords == ("Hund", "Steuer")
    assert page.content.startswith("<main><h1>Hundesteuer</h1>")
    assert "12 Euro" in page.content
    assert "Login" not in page.content
    assert page.links == ("https://www.town.example/", "https://www.town.example/de/preise")
    assert page.indexed


def test_without_a_main_the_frame_is_told_from_the_text() -> None:
    text = "".join(f"<p>Sentence {n} tells what the town charges for dogs, and why it does so.</p>" for n in range(9))
    links = "".join(f"<li><a href=/{n}>Menu item {n}</a></li>" for n in range(30))
    body = f"<html><body><div class=menu><ul>{links}</ul></div><div class=text><h1>Dogs</h1>{text}</div></body></html>"
    content = read_page(body.encode(), "https://www.town.example/dogs").content
    assert "Sentence 8" in content
    assert "Menu item" not in content


LONG = "".join(f"Sentence {n} tells what the town charges for dogs, and why it does so. " for n in range(9))
ROWS = "".join(f"<tr><td>{day}<td><ul><li>{n}:00-20:00</ul>" for n, day in enumerate(("Mon", "Tue", "Wed"), 9))


def test_without_a_main_the_pages_own_elements_are_kept() -> None:
    """What trafilatura leaves out of what it writes: text said twice, lists in cells (its issue 531), captions."""
    menu = "".join(f"<li><a href=/{n}>Menu item {n}</a></li>" for n in range(30))
    related = "".join(f"<div class=related-posts><a href=/{n}>Another page {n}</a></div>" for n in range(5))
    article = (
        f"<div><h2>North</h2><p>{LONG}</p><h2>South</h2><p>{LONG}</p><h2>East</h2><p>Nothing but {LONG.lower()}</p>"
        f"<table>{ROWS}</table><figure><img src=x alt=Map><figcaption>The dog park</figcaption></figure>"
        f'{related}<div class="related"><a href="tel:+4930123">030 123</a></div></div>'
    )
    body = f"<div class=menu><ul>{menu}</ul></div><div class=page><h1>Dogs</h1>{article}</div>"
    text = to_markdown(read_page(f"<body>{body}</body>".encode(), "https://www.town.example/").content)
    assert [line for line in text.split("\n") if line.startswith("#")] == ["# Dogs", "## North", "## South", "## East"]
    assert text.count("Sentence 8 tells") == 2
    for kept in ("11:00-20:00", "The dog park", "Map", "030 123"):
        assert kept in text
    for other in ("Menu item", "Another page"):
        assert other not in text
    twice = f"<body><div><div><h2>North</h2><p>{LONG}</p></div><div><h2>South</h2><p>{LONG}</p></div></div></body>"
    text = to_markdown(read_page(twice.encode(), "https://www.town.example/").content)
    assert [line for line in text.split("\n") if line.startswith("#")] == ["## North", "## South"]


def test_what_a_page_marks_as_main_is_all_that_visitors_see_of_it() -> None:
    mains = (
        f"<main><header><h1>Dogs</h1><p>From 2027 a dog costs 90 euros.</p></header><p>{LONG}</p>"
        "<div class='share-buttons'><a href=/s>Share this</a></div><div id=comments><p>First!</p></div></main>"
        "<main hidden><p>The draft for 2028.</p></main><div aria-hidden=true><main>A copy.</main></div>"
    )
    text = to_markdown(read_page(f"<body>{mains}</body>".encode(), "https://www.town.example/").content)
    assert text.startswith("# Dogs\n\nFrom 2027 a dog costs 90 euros.")
    assert "Sentence 8" in text
    for other in ("draft", "copy", "Share", "First!"):
        assert other not in text
    text = to_markdown(read_page(b"<main role=main><main>a</main></main><main>b</main>", "https://a.example/").content)
    assert text.split() == ["a", "b"]


def test_what_a_main_says_of_other_pages_is_left_out_and_its_facts_stay() -> None:
    links = "".join(f"<p><a href=/{n}>Another page {n}</a></p>" for n in range(4))
    prices = "".join(f"<p><a href=/{n}>Dog tag {n}</a> 9.50 €</p>" for n in range(4))
    main = (
        f"<h1>Dogs</h1><p>{LONG}</p>"
        f"<div class=more><h2>Read on</h2><div class=grid>{links}</div></div>"
        f"<h2>Also</h2><section>{links}</section>"
        f"<h2>Shop</h2><section>{prices}</section>"
        "<aside><p>Whoever has no dog may borrow one.</p></aside>"
        "<aside><p>The office is open until 6 pm.</p></aside>"
        "<div class=author-box><p>Ann loves dogs.</p></div><p class=author>By Ann</p>"
        "<div class=d-print-none><span>Print now</span></div><news-letter class=newsletter>Write to me</news-letter>"
    )
    page = read_page(f"<body><main>{main}</main></body>".encode(), "https://www.town.example/")
    text = to_markdown(page.content)
    for kept in ("Sentence 8", "## Shop", "Dog tag 3", "until 6 pm", "By Ann"):
        assert kept in text
    for other in ("Read on", "Also", "Another page", "may borrow", "Ann loves", "Print now", "Write to me"):
        assert other not in text
    assert counted(page.left_out)[OTHERS] == 14 + 13 + 7 + 3 + 2 + 3


@pytest.mark.parametrize(
    ("block", "kept"),
    [
        ("<h2>Das könnte Sie auch interessieren</h2><div><a href=/w>OTHER waste</a></div><h2>KEPT dates</h2>", True),
        ("<h3>Related</h3><ul><li><a href=/w>OTHER waste</a></li><li><a href=/p>OTHER parking</a></li></ul>", False),
        ("<p><strong>Zobacz także:</strong> <a href=/w>OTHER waste</a></p><p>KEPT: a tag costs 9 zł.</p>", True),
        ("<p><a href=/news>Zurück zur OTHER Übersicht</a></p><p>Zurück gibt es KEPT Pfand.</p>", True),
        ("<p><a href=https://code.example/edit>Edit this OTHER</a></p><p>Edit this page for KEPT.</p>", True),
        ("<p class=newsletter-teaser>OTHER: write to me.</p><p class=text>KEPT</p>", True),
        ("<div class=post-navigation><a href=/a>OTHER</a></div><p class=next-prev><a href=/b>OTHER</a></p>", False),
        ("<ul class=tag-list><li><a href=/t/dogs>OTHER</a></li></ul><span class=post-ratings>OTHER</span>", False),
        ("<div class=contributor-bio>OTHER Ann loves dogs.</div><p class=author>KEPT By Ann</p>", True),
        ("<blockquote class=wp-embedded-content><a href=/w>OTHER</a></blockquote><blockquote>KEPT</blockquote>", True),
        ("<p class=skipLinks><a href=#a>OTHER main</a> / <a href=#b>OTHER menu</a></p>", False),
        ("<div class=sub-menu><a href=/a>OTHER</a><a href=/b.pdf>OTHER</a></div>", False),
        ("<div class=menu><a href=/wine>Wine</a> <p>KEPT Soup of the day and bread</p></div>", True),
        ("<aside><div class=alert>KEPT: the pool is closed until further notice.</div></aside>", True),
        ("<aside role=alert><p>KEPT: no buses to the market.</p></aside><aside>OTHER: a proverb.</aside>", True),
        ("<h2>Related</h2><p>KEPT laws say how long a dog may bark, by day and at night, in houses and gardens "
         "and on the street, and who is to be asked for leave in other cases than those.</p>", True),
        ("<h2>Read next</h2><div><a href=/form.pdf>KEPT form</a></div>", True),
        ("<p>Recommended for: <b>KEPT children from 6</b></p><div class=read-more-content>Also adults.</div>", True),
        ("<div class='elementor-widget card'>KEPT Ann is the <a href=/office>head</a>.</div>", True),
        ("<div class='widget widget_text'>OTHER I am Ann.</div><div class='widget'>KEPT Open 9-12</div>", True),
        (f"<div id=comments>{'OTHER I love dogs. ' * 99}</div>", False),
        ("<article class=teaser><a href=/w>OTHER 2 lakes</a> Sentence 3 is about</article>", False),
        ("<div class=teaser><a href=/w>KEPT pool</a> <p>A ticket is 5 €</p></div>", True),
        ("<div class=Teasers><a href=/w></a><h3>OTHER waste</h3></div>", False),
        ("<footer class=entry-meta>OTHER Posted by Ann.</footer><div class=entry-utility>OTHER in News</div>", False),
        ("<div class=tags-wrapper><h1>KEPT</h1></div><div class=author_section>OTHER Ann loves dogs</div>", True),
        ("<aside><p>KEPT Sentence 3 is about dogs, and it is a story.</p></aside>", True),
    ],
)  # fmt: skip
def test_what_leads_to_other_pages_is_left_out_whatever_it_is_called(block: str, kept: bool) -> None:
    body = f"<body><main><h1>Dogs</h1><p>{LONG}</p>{block}</main></body>"
    text = to_markdown(read_page(body.encode(), "https://www.town.example/").content)
    assert "Sentence 8" in text
    assert "OTHER" not in text
    assert ("KEPT" in text) is kept


def test_what_a_style_sheet_of_the_page_strikes_through_is_deleted() -> None:
    head = "<style>.x,.old{color:red;text-decoration:line-through}</style>"
    body = f"<html><head>{head}<body><main><h1>Dogs</h1><p>A tag costs <span class=old>9 €</span> 10 €.</p></main>"
    page = read_page(body.encode(), "https://www.town.example/")
    assert to_markdown(page.content) == "# Dogs\n\nA tag costs ~~9 €~~ 10 €."


def test_a_page_laid_out_by_tables_is_its_cell_of_text_below_its_own_heading() -> None:
    links = "".join(f"<p><a href=/{n}>Place {n}</a></p>" for n in range(3))
    header = "<h1><a href=/>Town</a></h1>"
    body = f"<body>{header}<table><tr><td>{links}</td><td><h1>Dogs</h1><p>{LONG}</p></td></tr></table></body>"
    text = to_markdown(read_page(body.encode(), "https://www.town.example/").content)
    assert text.startswith("# Dogs\n\nSentence 0")
    assert "Place" not in text
    smaller = f"<body>{header}<div class=title><h2>Dogs</h2></div><div class=text><p>{LONG}</p></div></body>"
    assert to_markdown(read_page(smaller.encode(), "https://www.town.example/").content).startswith("## Dogs")
    untitled = body.replace("<h1>Dogs</h1>", "")
    assert to_markdown(read_page(untitled.encode(), "https://www.town.example/").content).startswith("Sentence 0")


def test_a_header_of_the_text_that_is_found_is_content() -> None:
    lead = (
        "From the first of March dogs are kept on a lead in the park, in the market and in all the streets of the town."
    )
    body = f"<body><div class=page><div class=text><header><h1>Dogs</h1><p>{lead}</p></header><p>{LONG}</p></div></div>"
    assert lead in to_markdown(read_page(body.encode(), "https://www.town.example/").content)


def test_the_scripts_of_a_page_do_not_hide_its_content() -> None:
    links = "".join(f"<li><a href=/{n}>Menu item {n}</a></li>" for n in range(30))
    data = f"<script type=application/json>{'0,' * 600_000}</script>"
    body = f"<body>{data}<div><ul>{links}</ul></div><div><h1>Dogs</h1><p>{LONG}</p></div></body>"
    assert "Menu item" not in read_page(body.encode(), "https://www.town.example/").content


def test_a_page_that_scripts_build_is_read_as_it_is_for_others() -> None:
    body = (
        f"<body><div id=app></div><noscript><p>{LONG}</p></noscript><template><p>{LONG.upper()}</p></template></body>"
    )
    text = to_markdown(read_page(body.encode(), "https://www.town.example/").content)
    assert "Sentence 8" in text
    assert "SENTENCE" not in text


def test_a_page_of_links_keeps_them() -> None:
    body = "<html><body><ul><li><a href=/a>Dog tax</a></li><li><a href=/b>Passports</a></li></ul></body></html>"
    content = read_page(body.encode(), "https://www.town.example/").content
    assert '<a href="/a">Dog tax</a>' in content
    assert "Passports" in content


@pytest.mark.parametrize(
    ("head", "tag", "indexed", "links"),
    [
        ('<meta name="robots" content="noindex">', "", False, 1),
        ('<meta name="ROBOTS" content="NOFOLLOW, noarchive">', "", True, 0),
        ("", "noindex, nofollow", False, 0),
        ('<meta name="robots" content="none">', "", False, 0),
        ('<meta name="pagewire" content="noindex">', "", False, 1),
        ("", "", True, 1),
        # Yoast/wordpress-seo issue 13773, mdn/content PR 37079
        ('<meta name="robots" content="index, follow, max-image-preview:none">', "max-snippet: 0", True, 1),
        ("", "googlebot: noindex, nofollow", True, 1),
        ("", "otherbot: noindex\nnofollow", True, 0),
        ("", "googlebot: noindex, pagewire: noindex", False, 1),
        ("", "unavailable_after: 25 Jun 2030 15:00:00 PST, noindex", False, 1),
        ('<meta name="robots" content="noindex"><meta name="robots" content="index">', "", False, 1),
        ('<meta name="robots" content="index"><meta name="robots" content="noindex nofollow">', "all", False, 0),
    ],
)
def test_a_page_may_ask_to_be_left_out(head: str, tag: str, indexed: bool, links: int) -> None:
    body = f"<html><head>{head}</head><body><a href='/x'>x</a></body></html>".encode()
    page = read_page(body, "https://www.town.example/", robots_tag=tag)
    assert (page.indexed, len(page.links)) == (indexed, links)


@pytest.mark.parametrize(
    ("head", "canonical"),
    [
        ('<link rel="CANONICAL" href="/b">', "https://www.town.example/b"),
        ('<link rel="canonical" href="http://www.town.example/a">', "https://www.town.example/a"),  # codelibs/fess 1199
        ('<link rel="canonical" href="http://town.example/a">', "http://town.example/a"),
        ('<link rel="canonicals" href="/b"><link rel=canonical>', "https://www.town.example/a"),
        ('<meta http-equiv="Refresh" content="0; url=\'/new\'">', "https://www.town.example/new"),
        ('<meta http-equiv="refresh" content="600">', "https://www.town.example/a"),
        ('<meta http-equiv="refresh" content="30; url=/new">', "https://www.town.example/a"),
        ('<noscript><meta http-equiv="refresh" content="0; url=/no-scripts"></noscript>', "https://www.town.example/a"),
    ],
)
def test_a_page_says_where_it_is(head: str, canonical: str) -> None:
    body = f"<html><head>{head}<title>x</title></head><body><p>This page has moved.</p></body></html>"
    page = read_page(body.encode(), "https://www.town.example/a")
    assert (page.canonical, page.title) == (canonical, "x")


def test_the_language_may_stand_in_the_links() -> None:
    body = (
        '<html><head><link rel="alternate" hreflang="x-default" href="/hu/a">'
        '<link rel=alternate hreflang=hu href="/hu/a">'
        "<link rel=alternate hreflang=de href='/de/a'></head><body>x</body></html>"
    )
    assert read_page(body.encode(), "https://www.town.example/hu/a").lang == "hu"


@pytest.mark.parametrize(
    ("tag", "found"),
    [
        ("de-AT", "de"),
        ("pt-br", "pt-BR"),
        ("PT_BR", "pt-BR"),
        ("fr-CA", "fr-CA"),
        ("x", None),
        ("", None),
        (None, None),
    ],
)
def test_a_tag_is_one_of_the_sites_languages_where_it_can(tag: str | None, found: str | None) -> None:
    assert language_of(tag, ("en", "de", "pt-BR")) == found


@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-1", None, "utf8mb4"])
def test_umlauts_in_every_charset(charset: str | None) -> None:
    body = "<html><head><meta charset=utf-8></head><body><main>Gebühren</main></body></html>"
    encoded = body.encode("iso-8859-1" if charset == "iso-8859-1" else "utf-8")
    assert "Gebühren" in read_page(encoded, "https://www.town.example/", charset).content
    # A title before the tag decides nothing.
    late = f"<title>Gebühren</title>{body}".encode()
    assert read_page(late, "https://www.town.example/").title == "Gebühren"
    with pytest.raises(ValueError, match="encoding that can be told"):
        read_page(b"\xff" * 99, "https://www.town.example/")


@given(st.binary(max_size=400) | st.text(alphabet="<>/abhm\"'= \n&;!-[]", max_size=300).map(str.encode))
@settings(max_examples=2 * settings().max_examples)
def test_whatever_a_server_sends_is_a_page_or_refused(body: bytes) -> None:
    try:
        page = read_page(body, "https://www.town.example/a")
    except ValueError:
        return
    assert page.canonical.startswith(("http", "https"))


def test_one_address_one_spelling() -> None:
    assert normal("HTTPS://WWW.Town.example:443/ä b?q=ü#x") == "https://www.town.example/%C3%A4%20b?q=%C3%BC"
    assert normal("https://a.example") == "https://a.example/"
    assert page_id("https://a.example/x?y=1") == "/x?y=1"
    long = [page_id(f"https://a.example/{'x' * 300}{n}") for n in (1, 2)]
    assert all(len(one) <= 256 for one in long)
    assert long[0] != long[1]


def test_of_a_page_of_endless_tags_so_many_are_read_that_the_receipt_names_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a twentieth of the limits."""
    monkeypatch.setattr("connectors.cms.sitemap.page.TAGS", TAGS // 20)
    monkeypatch.setattr("text.html_tree.MAX_TAGS", MAX_TAGS // 20)
    page = read_page(b"<p>a" * 25_000, "https://example.org/")
    assert page.content.count("<p>") < 25_000
    assert behind_limit(page.content)
