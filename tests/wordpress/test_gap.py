"""An editor finds in the console what a page answers no more, mends it in WordPress, and sees the gap close."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from bs4 import BeautifulSoup

from tests.acceptance.system import eventually
from tests.engine_fixture import Servers
from tests.wordpress.peer import WordPress
from tests.wordpress.town import Town, content, joined

pytestmark = [pytest.mark.wordpress, pytest.mark.engine]

ASKED = "How much is a ferry ticket for adults?"


@pytest.fixture
def town(wordpress: WordPress, engine: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    town = joined(wordpress, engine, tmp_path_factory.mktemp("gap"))
    with town.up():
        yield town


class Console:
    """The console, as an editor reads it."""

    def __init__(self, client: httpx.Client, site: str) -> None:
        self._client = client
        self._site = site
        signed_in = client.post(
            "/console/sign-in",
            data={"key": "key-of-the-acceptance-ring"},
            headers={"Origin": str(client.base_url).rstrip("/")},
        )
        assert signed_in.status_code == 303, signed_in.text

    def page(self, path: str, **query: str) -> BeautifulSoup:
        answer = self._client.get(f"/console/{path}", params={"site": self._site, **query})
        assert answer.status_code == 200, answer.text
        return BeautifulSoup(answer.text, "lxml")


def group(town: Town, days: float) -> dict[str, Any]:
    """The gap of the ferry. Another period each time: a report is kept for minutes."""
    assert town.pagewire
    address = f"{town.pagewire.url}/v1/admin/sites/{town.instance.site}/gaps"
    answer = httpx.get(
        address, params={"days": days}, headers={"Authorization": "Bearer key-of-the-acceptance-ring"}, timeout=60
    )
    assert answer.status_code == 200, answer.text
    [found] = [one for one in answer.json()["groups"] if "ferry" in one["label"]]
    return dict(found)


def test_a_gap_is_found_in_the_console_and_closed_in_wordpress(town: Town) -> None:
    others = [
        town.create(says=f"The {name} opens at {8 + n} in the morning.", title=name.capitalize())
        for n, name in enumerate(("market", "theatre", "museum"))
    ]  # of a site with one page no word tells anything
    post = town.create(says="A ferry ticket costs 4 euros for adults.", title="Lake ferry")
    town.agree()
    eventually(lambda: "4 euros" in town.ask(ASKED))

    town.wordpress.change(post, content=content("The ferry crosses the lake in summer."))
    town.agree()
    assert "euros" not in town.ask(ASKED)
    with town.client as client:
        answer = client.post("/chat", json={"question": ASKED, "lang": "en"}).json()
        rated = client.post(f"/answers/{answer['request_id']}/feedback", json={"rating": "down"})
        assert rated.status_code == 204, rated.text

    assert town.pagewire
    with httpx.Client(base_url=town.pagewire.url, timeout=60) as browser:
        console = Console(browser, town.instance.site)
        eventually(lambda: ASKED in console.page("questions", feedback="down").get_text())
        one = console.page(f"questions/{answer['request_id']}")
        assert ASKED in one.get_text()
        assert post["link"] in {link["href"] for link in one.select("a[href]")}
    before = group(town, 1)
    assert before["missed"] >= 1
    assert not before["closing"]

    town.wordpress.change(post, content=content("A ferry ticket costs 5 euros for adults."))
    town.agree()
    eventually(lambda: "5 euros" in town.ask(ASKED))
    days = iter(range(2, 300))
    eventually(lambda: group(town, next(days))["closing"], every=0.5)  # the log stage comes after the answer

    for each in (post, *others):
        town.wordpress.remove(each, force=True)
    town.agree()
