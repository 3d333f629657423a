"""Everything is lost, and comes back: what `pagewire backup` keeps is enough, together with the token secret."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from adapters.elastic.bundle import Elastic
from adapters.elastic.expiry import expire
from adapters.elastic.indexes import CONVERSATIONS, EXAMPLES, OUTCOMES, REBUILDS, RECEIPTS, STATES, TEXTS
from tests.acceptance.system import Instance, eventually
from tests.acceptance.test_story import found, put
from tests.engine_fixture import Servers
from wiring.settings import Settings

pytestmark = pytest.mark.engine

STAFF = "key-of-the-staff"
PAGES = [("ferry", "en"), ("ferry", "de"), ("leave", "en"), ("kiosk", "en")]


async def lose_indexes(servers: Servers, site: str) -> None:
    """All that Elasticsearch has of the site; the topics are another installation's in any case."""
    async with Elastic(servers.elasticsearch, Settings()) as elastic:
        for info in await elastic.indexes.generations(site):
            await elastic.es.indices.delete(index=info.name)
        for index in (RECEIPTS, REBUILDS, CONVERSATIONS, OUTCOMES, EXAMPLES, TEXTS):
            await expire(elastic.es, index, {"term": {"site": site}})
        await expire(elastic.es, STATES, {"term": {"name": site}})


def receipts(site: httpx.Client) -> dict[str, dict[str, Any]]:
    """What a receipt says of a page, but for when it was searchable."""
    found = {}
    for page, lang in PAGES:
        receipt = site.get(f"/pages/{page}/receipt", params={"lang": lang})
        names = ("accepted_revision", "searchable_revision", "state", "accepted_at")
        found[f"{page}/{lang}"] = {name: receipt.json()[name] for name in names} if receipt.is_success else {}
    return found


def with_bearer(site: httpx.Client, bearer: str) -> httpx.Client:
    return httpx.Client(base_url=site.base_url, headers={"Authorization": f"Bearer {bearer}"}, timeout=60)


@contextmanager
def running(instance: Instance, stages: str) -> Iterator[tuple[str, httpx.Client]]:
    """A gateway and one worker: half the processes that `up` would start."""
    with (
        instance.started("worker", stages),
        instance.started("gateway") as gateway,
        instance.client(gateway.url) as site,
    ):
        yield gateway.url, site


def test_pages_conversations_questions_and_examples_come_back(engine: Servers, tmp_path: Path) -> None:
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
    before, after = (Instance(tmp_path / name, engine, PAGEWIRE_GATE="false") for name in ("before", "after"))
    name = after.site = before.site
    key = {"name": "staff", "sha256": sha256(STAFF.encode()).hexdigest(), "scopes": ["chat"], "groups": ["staff"]}
    config = yaml.safe_dump({"sites": {name: {"languages": ["en", "de"]}}, "keys": [key]})
    for instance in (before, after):
        (instance.home / "pagewire.yaml").write_text(config)
    folder = tmp_path / "monday"

    with running(before, "all") as (url, site), ExitStack() as stack:
        put(site, "ferry", "<p>A ferry ticket costs 4 euros for adults.</p>", 10, title="Lake ferry")
        put(site, "ferry", "<p>Eine Fahrt mit der Fähre kostet 4 Euro.</p>", 11, title="Fähre", lang="de")
        put(site, "leave", "<p>Lifeguards get 31 days of leave a year.</p>", 12, title="Leave", groups=["staff"])
        put(site, "kiosk", "<p>The kiosk sells rowing maps.</p>", 13, title="Kiosk")
        site.delete("/pages/kiosk", params={"lang": "en", "revision": 14, "wait": "searchable", "timeout": 60})
        token = site.post("/visitor-tokens", headers={"Origin": url}).json()["token"]
        visitor = stack.enter_context(with_bearer(site, token))
        asked = visitor.post("/chat", json={"question": "What does a ferry ticket cost?", "lang": "en"}).json()
        rating = {"rating": "down", "comment": "And for children?"}
        assert visitor.post(f"/answers/{asked['request_id']}/feedback", json=rating).status_code == 204
        example = {"question": "And with a dog?", "output": "May I bring a dog?"}
        assert site.post(f"{url}/v1/admin/sites/{name}/examples", json=example).is_success
        text = f"{url}/v1/admin/sites/{name}/texts/contact/en"
        assert site.put(text, json={"text": "Call us."}).is_success
        assert site.put(f"{url}/v1/admin/sites/{name}/chat", json={"on": False}).is_success
        conversation = visitor.get(f"/conversations/{asked['conversation_id']}").json()
        known = receipts(site)
        made = before.run("backup", str(folder), "--site", name, "--json")
        assert made.returncode == 0, made.stderr
        # The backup has waited for the question log; what it has is what `questions` shows.
        logged = site.get(f"{url}/v1/admin/sites/{name}/questions/{asked['request_id']}").json()
        assert (logged["feedback"]["rating"], logged["outcome"]["became"]) == ("down", "answered")
    parts = json.loads(made.stdout)["parts"]
    assert {part["name"]: part["records"] for part in parts} == {
        "changes": 4,
        "conversations": 1,
        "questions": 1,
        "examples": 1,
        "texts": 1,
        "switches": 1,
    }

    asyncio.run(lose_indexes(engine, name))
    (after.home / "state").mkdir()
    shutil.copy(before.home / "state" / "token.secret", after.home / "state")
    with running(after, "ingest") as (url, site), ExitStack() as stack:
        assert receipts(site) == {page: {} for page in known}
        done = after.run("restore", str(folder), "--json")
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert ({part: counts["restored"] for part, counts in told["parts"].items()}, told["notes"]) == (
            {"switches": 1, "texts": 1, "examples": 1, "questions": 1, "conversations": 1, "changes": 4},
            [],
        )
        eventually(lambda: receipts(site) == known)
        assert "ferry" in found(site, "ferry ticket adults", "keyword")
        staff = stack.enter_context(with_bearer(site, STAFF))
        assert ("leave" in found(staff, "lifeguards leave"), "leave" in found(site, "lifeguards leave")) == (
            True,
            False,
        )
        assert "kiosk" not in found(site, "kiosk rowing maps")
        late = put(site, "kiosk", "<p>The kiosk sells rowing maps.</p>", 13)
        assert late.headers["Pagewire-Superseded"] == "true"
        visitor = stack.enter_context(with_bearer(site, token))
        assert visitor.get(f"/conversations/{asked['conversation_id']}").json() == conversation
        assert site.get(f"{url}/v1/admin/sites/{name}/questions/{asked['request_id']}").json() == logged
        [kept] = site.get(f"{url}/v1/admin/sites/{name}/examples").json()["examples"]
        assert kept["question"] == "And with a dog?"
        assert site.get(f"{url}/v1/admin/sites/{name}/texts/contact/en").json()["text"] == "Call us."
        eventually(lambda: site.get(f"{url}/v1/admin/sites/{name}/chat").json()["on"] is False)
        asking = {"question": "What does a ferry ticket cost?", "lang": "en"}
        refused = visitor.post("/chat", json=asking)
        assert (refused.status_code, refused.json()["code"]) == (403, "chat-off")
    asyncio.run(lose_indexes(engine, name))
