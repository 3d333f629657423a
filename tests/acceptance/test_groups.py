"""Pages for some people only, through the real topics: found by whoever has a group of theirs, and by nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import httpx
import pytest
import yaml

from tests.acceptance.system import Instance
from tests.acceptance.test_story import ask, found, put
from tests.engine_fixture import Servers

pytestmark = pytest.mark.engine

STAFF, BOARD, NOBODYS = "key-of-the-staff", "key-of-the-board", "key-without-groups"
KEYS: dict[str, list[str]] = {STAFF: ["staff"], BOARD: ["board"], NOBODYS: []}
QUESTION = "How many days of leave do lifeguards get?"


@pytest.fixture(scope="module")
def town(engine: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A site with a page of the staff and one of everybody; the client may save pages and has no groups."""
    # A site of two pages; what the gate makes of that is no business of this test.
    instance = Instance(tmp_path_factory.mktemp("groups"), engine, PAGEWIRE_GATE="false")
    keys = [
        {"name": key, "sha256": sha256(key.encode()).hexdigest(), "scopes": ["chat"], "groups": groups}
        for key, groups in KEYS.items()
    ]
    config = {"sites": {instance.site: {"languages": ["en"]}}, "keys": keys}
    (instance.home / "pagewire.yaml").write_text(yaml.safe_dump(config))
    with instance.started("up") as up, instance.client(up.url) as site:
        put(site, "leave", "<p>Lifeguards get 31 days of leave a year.</p>", title="Leave", groups=["staff", "mayor"])
        put(site, "pool", "<p>Lifeguards watch the pool every day from ten.</p>", title="Pool")
        yield site


def reads(town: httpx.Client, bearer: str) -> dict[str, set[Any]]:
    """The pages that a search, a question and a completion find."""
    headers = {"Authorization": f"Bearer {bearer}"}
    site = str(town.base_url).rstrip("/").rpartition("/")[2]
    with httpx.Client(base_url=town.base_url, headers=headers, timeout=60) as client:
        order = {"model": site, "messages": [{"role": "user", "content": QUESTION}]}
        completed = client.post(str(town.base_url.join("/v1/chat/completions")), json=order)
        assert completed.status_code == 200, completed.text
        message = completed.json()["choices"][0]["message"]
        asked: Any = ask(client, QUESTION)
        assert (
            ("31 days" in asked["answer"]) == ("31 days" in message["content"]) == ("leave" in found(client, QUESTION))
        )
        return {
            "search": {page for mode in ("hybrid", "keyword", "vector") for page in found(client, QUESTION, mode)},
            "chat": {source["page_id"] for source in asked["sources"]},
            "completion": {source["page_id"] for source in message["sources"]},
        }


def token(town: httpx.Client, bearer: str, **more: Any) -> str:
    """As the website's own server gets it for a visitor."""
    issued = httpx.post(f"{town.base_url}visitor-tokens", headers={"Authorization": f"Bearer {bearer}"}, **more)
    assert issued.status_code == 200, issued.text
    return str(issued.json()["token"])


def test_a_page_of_a_group_is_found_by_keys_and_visitors_with_the_group_alone(town: httpx.Client) -> None:
    everything, open_to_all = {"leave", "pool"}, {"pool"}
    visitor = token(town, STAFF, json={"groups": ["staff"]})
    origin = {"Origin": f"http://{town.base_url.host}:{town.base_url.port}", "Authorization": f"Bearer {visitor}"}
    renewed = httpx.post(f"{town.base_url}visitor-tokens", headers=origin).json()["token"]
    for name, bearer, pages in (
        ("a key of the group", STAFF, everything),
        ("a visitor with the group", visitor, everything),
        ("a key of another group", BOARD, open_to_all),
        ("a visitor with another group", token(town, BOARD, json={"groups": ["board"]}), open_to_all),
        ("a key without groups", NOBODYS, open_to_all),
        ("the admin key", "key-of-the-acceptance-ring", open_to_all),
        ("a visitor whom the staff's key gave nothing", token(town, STAFF), open_to_all),
        ("the visitor with a token that the page has renewed", renewed, open_to_all),
    ):
        assert reads(town, bearer) == dict.fromkeys(("search", "chat", "completion"), pages), name
