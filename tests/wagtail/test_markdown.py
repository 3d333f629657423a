"""Pages as Markdown and llms.txt under Wagtail's own address, from a scripted Pagewire."""

from __future__ import annotations

import time
from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest

from tests.wagtail.peer import Wagtail
from tests.wordpress.receiver import Receiver

pytestmark = pytest.mark.wagtail


@pytest.fixture
def visitor(wagtail: Wagtail, receiver: Receiver) -> Iterator[httpx.Client]:
    wagtail.python("from django.core.cache import cache; cache.clear()")
    receiver.pages_as_markdown.clear()
    receiver.asked.clear()
    with httpx.Client(base_url=wagtail.url, timeout=60) as visitor:
        yield visitor


def published(wagtail: Wagtail, receiver: Receiver, title: str, says: str) -> str:
    """A page that Pagewire has; where Pagewire is asked for it."""
    id, lang = wagtail.python(f"result = key(article({title!r}, {says!r}))")
    path = f"/v1/sites/town/pages/{id}.md?lang={lang}"
    receiver.pages_as_markdown[path] = (
        200, f"# {title}\n\n{says}\n", {"Content-Type": "text/markdown; charset=utf-8", "ETag": f'"{says}"'}
    )  # fmt: skip
    return path


def address(wagtail: Wagtail) -> str:
    """The site's, as Wagtail knows it."""
    return str(wagtail.python("result = Site.objects.get().root_url + '/'"))


@pytest.mark.parametrize(
    ("title", "path", "accept"),
    [
        ("Pool", "/en/pool.md", "*/*"),
        ("Quay", "/en/quay/?format=md", "text/html"),
        ("Road", "/en/road/", "text/markdown, text/html;q=0.9, */*;q=0.8"),
        ("Spa", "/en/spa/", "text/html, text/markdown"),
    ],
)
def test_who_asks_for_markdown_gets_what_pagewire_has(
    wagtail: Wagtail, receiver: Receiver, visitor: httpx.Client, title: str, path: str, accept: str
) -> None:
    published(wagtail, receiver, title, "Opens at six.")
    answer = visitor.get(path, headers={"Accept": accept})
    assert (answer.status_code, answer.text) == (200, f"# {title}\n\nOpens at six.\n")
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert answer.headers["link"] == f'<{address(wagtail)}en/{title.lower()}/>; rel="canonical"'
    known = visitor.get(path, headers={"Accept": accept, "If-None-Match": answer.headers["etag"]})
    assert (known.status_code, known.content) == (304, b"")


@pytest.mark.parametrize(
    ("title", "accept"),
    [
        ("Ash", "text/html,application/xhtml+xml,*/*;q=0.8"),
        ("Birch", "text/html, text/markdown;q=0.5"),
        ("Cedar", "text/markdown;q=0"),
        ("Date", "text/markdown;q=x"),
    ],
)
def test_browsers_get_the_page(
    wagtail: Wagtail, receiver: Receiver, visitor: httpx.Client, title: str, accept: str
) -> None:
    published(wagtail, receiver, title, "Opens at six.")
    answer = visitor.get(f"/en/{title.lower()}/", headers={"Accept": accept})
    assert f"<h1>{title}</h1>" in answer.text
    assert "Accept" in answer.headers["vary"]
    assert not receiver.asked


@pytest.mark.parametrize("kind", ["login", "password"])
def test_what_wagtail_keeps_from_a_visitor_stays_kept(
    wagtail: Wagtail, receiver: Receiver, visitor: httpx.Client, kind: str
) -> None:
    published(wagtail, receiver, f"Wages {kind}", "For employees.")
    wagtail.python(
        f"PageViewRestriction.objects.create(page=Page.objects.get(title='Wages {kind}'), "
        f"restriction_type='{kind}', password='x')"
    )
    for path in (f"/en/wages-{kind}.md", f"/en/wages-{kind}/?format=md"):
        assert "For employees." not in visitor.get(path).text
    published(wagtail, receiver, f"Plans {kind}", "For employees.")
    wagtail.python(f"named('Plans {kind}').unpublish()")
    assert visitor.get(f"/en/plans-{kind}.md").status_code == 404
    assert visitor.get("/en/nothing.md").status_code == 404
    assert not receiver.asked


def test_where_pagewire_has_nothing_or_is_away_the_site_answers(
    wagtail: Wagtail, receiver: Receiver, visitor: httpx.Client
) -> None:
    path = published(wagtail, receiver, "Library", "Opens at six.")
    receiver.pages_as_markdown[path] = (200, "<script>alert(1)</script>", {"Content-Type": "text/html"})
    assert "<h1>Library</h1>" in visitor.get("/en/library.md").text
    receiver.pages_as_markdown[path] = (503, {"code": "unavailable"}, {})
    began = time.monotonic()
    for _ in range(6):
        assert "<h1>Library</h1>" in visitor.get("/en/library.md").text
    assert time.monotonic() - began < 20
    assert len(receiver.asked) <= 3  # the first, and one of each process that asked at the same moment
    assert visitor.get("/llms.txt").status_code == 404


def test_an_answer_is_asked_for_again_by_its_etag(wagtail: Wagtail, receiver: Receiver) -> None:
    path = published(wagtail, receiver, "Museum", "Opens at ten.")
    receiver.asked.clear()
    twice = """
        from pagewire_wagtail import markdown
        from pagewire_wagtail.conf import pagewire
        markdown.cache.clear()
        path = %r
        said = [markdown._fetched(pagewire(), path), markdown._fetched(pagewire(), path)]
        markdown.FRESH = -1
        result = [*said, markdown._fetched(pagewire(), path)]
        markdown.FRESH = 10
    """
    said = wagtail.python(twice % path.removeprefix("/v1/sites/town/"))
    assert said == ["# Museum\n\nOpens at ten.\n"] * 3
    assert receiver.asked == [(path, ""), (path, '"Opens at ten."')]


def test_llms_txt_lists_this_site_alone(wagtail: Wagtail, receiver: Receiver, visitor: httpx.Client) -> None:
    below = f"/v1/sites/town/llms.txt?below={quote(address(wagtail), safe='')}"
    given = {"Content-Type": "text/markdown; charset=utf-8"}
    receiver.pages_as_markdown[below] = (200, "# Town\n", given)
    receiver.pages_as_markdown[f"{below}&lang=de"] = (200, "# Stadt\n", given)
    answer = visitor.get("/llms.txt")
    assert (answer.text, answer.headers["content-type"]) == ("# Town\n", "text/markdown; charset=utf-8")
    assert visitor.get("/llms.txt?lang=de").text == "# Stadt\n"
    assert visitor.get("/llms.txt?lang=../x").text == "# Town\n"
