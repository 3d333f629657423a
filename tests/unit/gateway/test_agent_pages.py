"""Pages as Markdown, and the lists of them that assistants look for."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from connectors.cms.front_matter import split
from gateway.agents.pages import LISTED_AT_ONCE, PIECE
from gateway.app import create_app
from gateway.edge.rates import ADDRESS_FACTOR, TIMES
from schemas.http import IndexedChunk, IndexedPage
from schemas.keys import page_key
from tests.edge import INGEST_TOWN, PAGE_ORIGIN, STAFF_TOWN, VIEW_TOWN, assert_problem, bearer, edge_settings
from tests.fakes.ports import FakePorts
from wiring.settings import SiteSettings

SITE = "/v1/sites/town"
TABLE = "| a | b |\n| --- | --- |\n| 1 | 2 |\n\n"


def keep(
    fakes: FakePorts, id: str, *content: str, lang: str = "en", title: str = "", groups: str = "", url: str = ""
) -> None:
    url = url or f"https://www.town.example/{id}"
    parts = [("title", title), *(("content", text) for text in content)]
    chunks = tuple(
        IndexedChunk(field=field, ord=0, text=text, title=title, url=url)  # type: ignore[arg-type]
        for field, text in parts
        if text
    )
    key = page_key("town", lang, id)
    fakes.indexed.kept[key] = IndexedPage(chunks=chunks, total=len(chunks))
    if groups:
        fakes.indexed.groups[key] = frozenset({groups})


async def test_a_page_is_markdown_with_front_matter_that_a_folder_of_pages_reads(
    stranger: httpx.AsyncClient, fakes: FakePorts
) -> None:
    keep(fakes, "fees", TABLE, "Café: 3 € [here](x).", title="Fees: what they are")
    fakes.indexed.labelled[page_key("town", "en", "fees")] = {"kind": ("form", "notice")}
    ways = ["/pages/fees.md", "/pages/fees", "/pages?url=https://www.town.example/fees/", "/pages?url=/fees&lang=en"]
    bodies = set()
    for way in ways:
        answer = await stranger.get(SITE + way, headers={"Accept": "text/markdown"})
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
        assert "Accept" in answer.headers["vary"]
        bodies.add(answer.text)
    [body] = bodies
    fields, text = split(body)
    said = {"id": "fees", "lang": "en", "title": "Fees: what they are", "revision": 1}
    assert fields["labels"] == {"kind": ["form", "notice"]}
    assert said.items() <= fields.items()
    assert "published_at" not in fields
    fakes.indexed.published_at = datetime(2026, 3, 2, 8, 15, tzinfo=UTC)
    published, _ = split((await stranger.get(f"{SITE}/pages/fees.md")).text)
    assert published["published_at"] == "2026-03-02T08:15:00+00:00"
    assert fields["changed_at"] == "2026-07-28T12:00:00.500+00:00"
    assert text == f"\n{TABLE}Café: 3 € [here](x).\n"


async def test_what_is_known_is_not_sent_again_until_it_changes(stranger: httpx.AsyncClient, fakes: FakePorts) -> None:
    keep(fakes, "fees", "Ten euros.", title="Fees")
    first = await stranger.get(f"{SITE}/pages/fees")
    tag, when = first.headers["etag"], first.headers["last-modified"]
    for known in ({"If-None-Match": f'"x", W/{tag}'}, {"If-None-Match": "*"}, {"If-Modified-Since": when}):
        answer = await stranger.get(f"{SITE}/pages/fees", headers=known)
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
    for other in ({"If-None-Match": '"x"', "If-Modified-Since": when}, {"If-Modified-Since": "yesterday"}):
        assert (await stranger.get(f"{SITE}/pages/fees", headers=other)).status_code == 200
    keep(fakes, "fees", "Twelve euros.", title="Fees")
    assert (await stranger.get(f"{SITE}/pages/fees", headers={"If-None-Match": tag})).text.endswith("Twelve euros.\n")
    del fakes.indexed.kept["town:en:fees"]
    assert_problem(await stranger.get(f"{SITE}/pages/fees", headers={"If-None-Match": tag}), 404, "unknown-page")


async def test_lists_are_of_one_language_go_over_many_searches_and_name_pages_without_a_title(
    stranger: httpx.AsyncClient, fakes: FakePorts
) -> None:
    many = LISTED_AT_ONCE + 3
    for number in range(many):
        keep(fakes, f"p/{number:03}", f"Text {number}.", title="" if number == 0 else f"Page [{number}]")
    keep(fakes, "p/de", "Text.", lang="de", title="Seite")
    listed = (await stranger.get(f"{SITE}/llms.txt")).text
    assert listed.startswith(
        "# Town & Sons\n\n## Pages\n\n- [https://www.town.example/p/000](pages/p%2F000.md?lang=en)\n"
    )
    assert listed.count("](pages/") == many
    assert "[Page \\[7\\]](pages/p%2F007.md?lang=en)" in listed
    assert listed.endswith("(llms-full.txt?lang=en)\n- [de](llms.txt?lang=de)\n")
    assert (await stranger.get(f"{SITE}/llms.txt?lang=de")).text.count("](pages/") == 1
    for list_of in ("llms.txt", "llms-full.txt"):
        assert_problem(await stranger.get(f"{SITE}/{list_of}?lang=tlh"), 404, "unknown-page")
    url, pieces = f"{SITE}/llms-full.txt", []
    while url:
        piece = await stranger.get(url)
        pieces.append(piece.text)
        url = str(piece.url.join(piece.links["next"]["url"])) if "next" in piece.links else ""
    assert [piece.count("\nrevision: ") for piece in pieces] == [PIECE] * (many // PIECE) + [many % PIECE]
    assert "Text 0." in pieces[0]


async def test_a_website_that_gives_markdown_itself_gets_a_list_of_its_own_pages_alone(
    stranger: httpx.AsyncClient, fakes: FakePorts
) -> None:
    keep(fakes, "fees", "Ten euros.", title="Fees")
    keep(fakes, "pool", "Warm.", title="Pool", url="https://www.town.example/?p=7#open")
    keep(fakes, "shop", "Mugs.", title="Shop", url="https://shop.example/mugs")
    answer = await stranger.get(f"{SITE}/llms.txt", params={"below": "https://www.town.example/"})
    assert answer.text == (
        "# Town & Sons\n\n## Pages\n\n- [Fees](https://www.town.example/fees?format=md)\n"
        "- [Pool](https://www.town.example/?p=7&format=md)\n\n## Optional\n\n- [de](llms.txt?lang=de)\n"
    )


async def test_pages_for_groups_are_for_their_keys_alone(stranger: httpx.AsyncClient, fakes: FakePorts) -> None:
    keep(fakes, "wages", "Secret.", title="Wages", groups="staff")
    for path in ("pages/wages", "pages?url=/wages"):
        assert_problem(await stranger.get(f"{SITE}/{path}"), 404, "unknown-page")
        assert "Secret." in (await stranger.get(f"{SITE}/{path}", headers=bearer(STAFF_TOWN))).text
    for path in ("llms.txt", "llms-full.txt"):
        assert "Wages" not in (await stranger.get(f"{SITE}/{path}")).text
        assert "Wages" in (await stranger.get(f"{SITE}/{path}", headers=bearer(STAFF_TOWN))).text


@pytest.mark.parametrize("path", ["pages/fees", "pages?url=/fees", "llms.txt", "llms-full.txt"])
async def test_the_door(path: str, stranger: httpx.AsyncClient, fakes: FakePorts, tmp_path: Path) -> None:
    keep(fakes, "fees", "Ten euros.", title="Fees")
    url = f"{SITE}/{path}"
    assert_problem(await stranger.get(url, headers={"Origin": "https://evil.example"}), 403, "origin-not-allowed")
    assert (await stranger.get(url, headers={"Origin": PAGE_ORIGIN})).headers["access-control-allow-origin"]
    assert_problem(await stranger.get(url, headers=bearer("unknown")), 401, "unauthorized")
    for key in (INGEST_TOWN, VIEW_TOWN):
        assert_problem(await stranger.get(url, headers=bearer(key)), 403, "forbidden")
    assert_problem(await stranger.get(url.replace("town", "nowhere")), 404, "unknown-site")
    assert_problem(await stranger.get(url.replace("town", "other")), 403, "agents-off")
    settings = edge_settings(tmp_path, visitor_rate="1/day", sites={"town": SiteSettings(agents=frozenset({"pages"}))})
    app = create_app(settings, fakes.ports)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway.test") as narrow:
        for _ in range(TIMES["page"] * ADDRESS_FACTOR):
            assert (await narrow.get(url)).status_code == 200
        assert_problem(await narrow.get(url), 429, "too-many-requests")
        assert (await narrow.get(url, headers=bearer(STAFF_TOWN))).status_code == 200
