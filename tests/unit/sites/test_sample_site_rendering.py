"""The rendered town: valid, linked, accessible HTML with the chat at its end and nothing inline."""

import re
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from urllib.parse import urldefrag, urljoin

import pytest
from bs4 import BeautifulSoup

from sites.content import DEMO, Contact, Labels, load_site
from sites.render import render_index, render_page, render_path

SITE = load_site(DEMO)
ADDRESSES = ["", *(f"{lang}/" for lang in SITE.languages), *(page.path.removeprefix("/") for page in SITE.pages)]
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}


@cache
def document(path: str) -> str:
    html = render_path(SITE, path, "/chat.js")
    assert html is not None, path
    return html


@cache
def soup_of(path: str) -> BeautifulSoup:
    return BeautifulSoup(document(path), "html.parser")


class Balance(HTMLParser):
    """Fails on a tag that is not closed, or closed where it was not open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> repeats an attribute"
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID, f"<{tag}/> does not close itself"

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag


@pytest.mark.parametrize("path", ADDRESSES)
def test_html_is_whole_and_has_what_every_page_needs(path):
    balance = Balance()
    balance.feed(document(path))
    balance.close()
    assert balance.open == []

    soup = soup_of(path)
    assert document(path).startswith("<!DOCTYPE html>")
    assert soup.html["lang"] == (path[:2] or "de")
    assert len(soup.find_all("h1")) == len(soup.find_all("main")) == len(soup.find_all("title")) == 1
    assert soup.title.get_text()
    assert soup.find("meta", attrs={"name": "description"})["content"]
    ids = [element["id"] for element in soup.find_all(id=True)]
    assert len(ids) == len(set(ids))
    assert all(image.has_attr("alt") for image in soup.find_all("img"))
    for named in soup.find_all(attrs={"aria-labelledby": True}):
        assert named["aria-labelledby"] in ids
    levels = [int(heading.name[1]) for heading in soup.find_all(re.compile(r"^h[1-6]$"))]
    assert levels[0] == 1
    assert all(deeper - level <= 1 for level, deeper in pairwise(levels)), levels


@pytest.mark.parametrize("path", ADDRESSES)
def test_nothing_inline_and_the_chat_comes_last(path):
    soup = soup_of(path)
    (script,) = soup.find_all("script")
    assert script.attrs == {
        "type": "module",
        "src": "/chat.js",
        "data-site": "demo",
        "data-lang": path[:2] or "de",
    }
    assert not script.get_text()
    assert soup.body.find_all(recursive=False)[-1] is script
    assert not soup.find_all("style")
    for element in soup.find_all(True):
        assert not [name for name in element.attrs if name == "style" or name.startswith("on")]


@pytest.mark.parametrize("path", ADDRESSES)
def test_no_link_is_dead(path):
    for element in soup_of(path).find_all(["a", "link", "img"]):
        target = element.get("href") or element["src"]
        if target.startswith("mailto:"):
            continue
        url, fragment = urldefrag(urljoin(f"/site/{path}", target))
        assert url.startswith("/site/"), target
        below = url.removeprefix("/site/")
        if below.startswith("assets/"):
            assert (DEMO / below).is_file(), target
        else:
            assert below in ADDRESSES, target
            assert not fragment or soup_of(below).find(id=fragment), target


def test_stylesheet_finds_its_pictures_and_every_group_has_an_icon():
    css = (DEMO / "assets" / "site.css").read_text("utf-8")
    named = re.findall(r'url\("([^"]+)"\)', css)
    assert len(named) >= 5
    assert all((DEMO / "assets" / name).is_file() for name in named)
    assert all(f".icon-{group.id} " in css for group in SITE.groups)
    assert not re.search(r"https?:|@import", css)


def test_index_leads_to_every_page_of_its_language_and_the_bare_address_to_the_first():
    for lang in SITE.languages:
        links = {a["href"] for a in soup_of(f"{lang}/").select("main a")}
        assert links == {f"/site{page.path}" for page in SITE.pages if page.lang == lang}
    assert document("") == document("de/")


def test_language_switch_leads_to_the_same_page_or_says_that_there_is_none():
    def switch(path: str) -> dict[str, tuple[str, str]]:
        links = soup_of(path).select(".languages a")
        return {a["hreflang"]: (a["href"], a.get_text()) for a in links}

    assert switch("de/library") == {
        "de": ("/site/de/library", "Deutsch"),
        "en": ("/site/en/library", "English"),
    }
    href, text = switch("de/council")["en"]
    assert href == "/site/en/"
    assert "nicht auf English verfügbar" in text
    href, text = switch("en/newcomers")["de"]
    assert href == "/site/"
    assert "not available in Deutsch" in text


def test_visitor_sees_where_they_are():
    soup = soup_of("en/museum")
    assert [item.get_text() for item in soup.select(".breadcrumb li")] == [
        "Home",
        "Culture and leisure",
        "Town museum",
    ]
    assert [a.get_text() for a in soup.select(".menu [aria-current]")] == ["Culture and leisure"]
    assert [a.get_text() for a in soup.select("aside [aria-current]")] == ["Town museum"]
    assert soup.find("time")["datetime"] == "2026-10-21"
    assert soup.find("time").get_text() == "Last changed on 21 October 2026"
    assert soup_of("de/museum").find("time").get_text() == "Zuletzt geändert am 21. Oktober 2026"


def test_noise_of_the_cms_is_not_shown():
    main = soup_of("de/waste-collection").main
    assert "Cookies" not in main.get_text()
    assert "999" not in main.get_text()
    assert not main.select(".content nav, .content script")
    assert "Cookies" in SITE.page("de", "waste-collection").content  # it is there to be dropped


@pytest.mark.parametrize("path", ["nowhere", "de/nowhere", "fr/", "fr/library", "en", "../site.yaml", "de/library/"])
def test_unknown_path_is_none(path):
    assert (render_path(SITE, path, "/chat.js") is None) == (path != "en")


def test_everything_from_front_matter_and_settings_is_escaped():
    evil = '"><script>alert(1)</script>&'
    page = SITE.page("en", "library").model_copy(update={"name": evil, "title": evil, "description": evil})
    texts = {"en": evil, "de": evil}
    labels = Labels.model_construct(**dict.fromkeys(Labels.model_fields, evil) | {"months": "x " * 12})
    others = (other for other in SITE.pages if (other.lang, other.id) != ("en", "library"))
    site = SITE.model_copy(
        update={
            "town": evil,
            "name": texts,
            "tagline": texts,
            "intro": texts,
            "contact": Contact(address=evil, phone=evil, email=evil),
            "groups": tuple(group.model_copy(update={"title": texts}) for group in SITE.groups),
            "labels": dict.fromkeys(SITE.labels, labels),
            "pages": (page, *others),
        }
    )
    for html in (render_page(page, site, evil), render_index(site, "en", evil)):
        assert "<script>" not in html
        assert len(BeautifulSoup(html, "html.parser").find_all("script")) == 1
        assert html.count("&lt;script&gt;") > 10
