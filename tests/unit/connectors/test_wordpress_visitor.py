"""What a visitor gets of a post, from its own address. On a real site: tests/wordpress/test_odd_pages.py."""

from __future__ import annotations

import pytest

from connectors.cms.fetching import Fetched, FetchRefused, ServerUnavailable
from connectors.cms.frame import Barred, Listed, UnreadablePage
from connectors.cms.wordpress.client import NotWordPress
from connectors.cms.wordpress.source import AnonymousReader, shows
from schemas.page import PageDocument

SITE = "https://town.example"
HERE = f"{SITE}/fares/"
CONTENT = "<p>A ferry ticket costs 4&nbsp;euros for <b>adults</b>.</p>\n<ul><li>Children pay 2 euros.</li></ul>"
AROUND = "<html><head><title>Fares</title></head><body><nav>Home</nav>{}<footer>Town hall</footer></body></html>"
LISTED = Listed("post-12", "en", 1)
PAGE = PageDocument(id="post-12", lang="en", url=HERE, content=CONTENT)


class Web:
    """Address -> what is there, or why not."""

    def __init__(self, **more: Fetched | Exception) -> None:
        self.answers: dict[str, Fetched | Exception] = {SITE: page(""), HERE: more.get("here", page(CONTENT))}
        self.answers |= {SITE: more["site"]} if "site" in more else {}
        self.uncached = more.get("uncached")
        self.asked: list[str] = []

    async def get(self, url: str) -> Fetched:
        self.asked.append(url)
        address, _, query = url.partition("?")
        answer = self.uncached if query and self.uncached else self.answers[address]
        if isinstance(answer, Exception):
            raise answer
        return answer


def page(content: str, url: str = HERE) -> Fetched:
    return Fetched(url, 200, AROUND.format(content).encode(), {})


async def sees(**web: Fetched | Exception) -> PageDocument | UnreadablePage | Barred:
    return await AnonymousReader(SITE, Web(**web)).sees(LISTED, PAGE)  # type: ignore[arg-type]


@pytest.mark.parametrize("where", [HERE, "https://town.example/fares", "https://www.town.example/fares/"])
async def test_a_page_that_shows_its_content_is_read(where: str) -> None:
    assert await sees(here=page(CONTENT, where)) is PAGE


@pytest.mark.parametrize(
    ("here", "reason"),
    [
        (page("<p>Members only.</p>"), "visitors do not see its content"),
        (page("<p>A ferry ticket costs</p><p>Log in to read on.</p>"), "visitors do not see its content"),
        (page("<script>{\"articleBody\": \"" + CONTENT + "\"}</script>"), "visitors do not see its content"),
        (page(CONTENT, f"{SITE}/wp-login.php?redirect_to=fares"), "visitors are led elsewhere"),
        (FetchRefused("no", 403), "visitors do not get it (403)"),
        (FetchRefused("no", 404), "visitors do not get it (404)"),
    ],
)  # fmt: skip
async def test_what_visitors_do_not_get_is_barred(here: Fetched | Exception, reason: str) -> None:
    assert await sees(here=here) == Barred(LISTED, HERE, reason)


@pytest.mark.parametrize(
    "trouble",
    [ServerUnavailable("the server answered 500"), FetchRefused("not public"), FetchRefused("too large", 200)],
)
async def test_a_page_that_fails_is_unreadable(trouble: Exception) -> None:
    assert await sees(here=trouble) == UnreadablePage(LISTED, str(trouble))


@pytest.mark.parametrize("status", [401, 403])
async def test_a_site_that_is_closed_as_a_whole_is_called_so(status: int) -> None:
    with pytest.raises(NotWordPress, match=f"closed to visitors \\({status}\\).*as_visitor: false"):
        await sees(here=FetchRefused("no", status), site=FetchRefused("no", status))


async def test_a_site_that_is_away_is_not_a_page_that_fails() -> None:
    with pytest.raises(ServerUnavailable):
        await sees(here=ServerUnavailable("no"), site=ServerUnavailable("no"))


async def test_a_site_that_closes_in_the_middle_of_a_run_is_called_so() -> None:
    web = Web(here=FetchRefused("no", 403))
    visitor = AnonymousReader(SITE, web)  # type: ignore[arg-type]
    assert isinstance(await visitor.sees(LISTED, PAGE), Barred)
    web.answers[SITE] = FetchRefused("no", 403)
    with pytest.raises(NotWordPress):
        await visitor.sees(LISTED, PAGE)


async def test_what_a_cache_still_has_is_not_believed() -> None:
    old = page("<p>A ticket was free.</p>")
    assert await sees(here=old, uncached=page(CONTENT)) is PAGE
    assert await sees(here=old, uncached=page(CONTENT, f"{HERE}?pagewire-visit=1")) == Barred(
        LISTED, HERE, "visitors are led elsewhere"
    )
    web = Web(here=old)
    for _ in range(2):
        await AnonymousReader(SITE, web).sees(LISTED, PAGE)  # type: ignore[arg-type]
    assert len(set(web.asked)) == 3


def test_what_counts_as_shown() -> None:
    long = "".join(
        f"<p>The council met for the {n}th time and spoke about the budget of the town.</p>" for n in range(9)
    )
    assert shows(AROUND.format(long.replace("</p>", "</p><aside>Advertisement</aside>")), long)
    assert shows(AROUND.format(long.replace("\n", "").upper()), long)
    assert not shows(AROUND.format(long[: len(long) // 2]), long)
    assert shows(AROUND.format("<p>One.</p>"), "<p>One.</p>\n<p><!--nextpage--></p>\n<p>Two, at another address.</p>")
    assert shows(AROUND.format(""), "<p></p>")
    assert not shows(AROUND.format("<p>x</p>"), "<p>no</p>")
    assert shows(AROUND.format("<p>渡し船の切符は4ユーロです。</p>"), "<p>渡し船の切符は4ユーロです。</p>")
