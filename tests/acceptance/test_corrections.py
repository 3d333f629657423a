"""Corrections by the real command: in force within seconds, for whom their page is, as long as it says what it said."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from hashlib import sha256
from time import monotonic
from typing import Any

import httpx
import pytest
import yaml

from tests.acceptance.system import PAGEWIRE, Instance
from tests.acceptance.test_story import ask, put
from tests.engine_fixture import Servers

pytestmark = pytest.mark.engine

STAFF = "key-of-the-staff"
IN_FORCE = 15.0  # seconds; ten are promised, and this machine may be busy
LEAVE = "How many days of leave do lifeguards get?"
SATCHEL = "Where is my satchel?"


@pytest.fixture(scope="module")
def instance(engine: Servers, tmp_path_factory: pytest.TempPathFactory) -> Instance:
    made = Instance(tmp_path_factory.mktemp("corrections"), engine)
    key = {"name": "staff", "sha256": sha256(STAFF.encode()).hexdigest(), "scopes": ["chat", "edit"]}
    keys = [key | {"groups": ["staff"]}]
    config = {"sites": {made.site: {"languages": ["en"]}}, "keys": keys}
    (made.home / "pagewire.yaml").write_text(yaml.safe_dump(config))
    return made


@pytest.fixture(scope="module")
def town(instance: Instance) -> Iterator[httpx.Client]:
    with instance.started("up") as up, instance.client(up.url) as site:
        put(site, "leave", "<p>Lifeguards get 31 days of leave a year.</p>", title="Leave", groups=["staff"])
        put(site, "pool", "<p>Lifeguards watch the pool every day from ten. A ticket is 4 euros.</p>", title="Pool")
        put(site, "office", "<p>Lost property is kept at the office in Canal Street 3.</p>", title="Office")
        yield site


def pagewire(instance: Instance, *arguments: str, code: int = 0) -> Any:
    done = subprocess.run(
        [PAGEWIRE, *arguments], env=instance.environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout) if "--json" in arguments else done.stdout


def until(happens: Callable[[], bool]) -> None:
    end = monotonic() + IN_FORCE
    while not happens():
        assert monotonic() < end


def test_a_fixed_answer_is_given_until_its_page_changes_and_again_when_it_is_kept_anew(
    instance: Instance, town: httpx.Client
) -> None:
    asked, fixed = "What does the pool cost?", "Four euros, and on Mondays nothing."
    tried = pagewire(instance, "corrections", "answer", instance.site, "pool", fixed, "-q", asked, "--try", "--json")
    assert (tried["refused"], tried["correction"]["page"]["title"]) == (None, "Pool")
    made = pagewire(instance, "corrections", "answer", instance.site, "pool", fixed, "-q", asked, "--json")
    until(lambda: ask(town, "How much is the pool?")["answer"] == fixed)
    told: Any = ask(town, asked)
    assert (told["generated_by"], [one["page_id"] for one in told["sources"] if one["cited"]]) == ("site", ["pool"])
    assert fixed not in ask(town, "When does the pool open?")["answer"]
    checked = pagewire(instance, "eval", "check", instance.site, "--json")
    assert [(one["question"], one["problem"]) for one in checked["questions"]] == [(asked, "")]
    put(town, "pool", "<p>Lifeguards watch the pool every day from ten. A ticket is 5 euros.</p>", title="Pool")
    assert ask(town, asked)["answer"] != fixed
    found = pagewire(instance, "corrections", "list", instance.site, "--json")["corrections"]
    [listed] = [one for one in found if one["id"] == made["id"]]
    assert (listed["state"], listed["used"] > 0) == ("page-changed", True)
    pagewire(instance, "corrections", "answer", instance.site, "pool", "Five euros.", "-q", asked)
    until(lambda: ask(town, asked)["answer"] == "Five euros.")
    pagewire(instance, "corrections", "remove", instance.site, made["id"])
    until(lambda: ask(town, asked)["answer"] != "Five euros.")
    pagewire(instance, "corrections", "undo", instance.site, made["id"])
    until(lambda: ask(town, asked)["answer"] == "Five euros.")


def test_a_word_of_visitors_finds_the_page_that_has_another(instance: Instance, town: httpx.Client) -> None:
    before: Any = ask(town, SATCHEL)
    assert "Canal Street" not in before["answer"]
    pagewire(instance, "corrections", "word", instance.site, "satchel", "lost property")
    until(lambda: "Canal Street" in ask(town, SATCHEL)["answer"])
    circle = ("corrections", "word", instance.site, "lost property", "satchel")
    pagewire(instance, *circle, code=1)


def test_what_is_said_from_a_page_of_a_group_is_said_to_the_group_alone(instance: Instance, town: httpx.Client) -> None:
    headers = {"Authorization": f"Bearer {STAFF}"}
    path = str(town.base_url.join(f"/v1/admin/sites/{instance.site}/corrections"))
    secret = "Thirty-one, as it is written in the contract."
    given = {"kind": "answer", "page": "leave", "questions": [LEAVE], "text": secret}
    with httpx.Client(base_url=town.base_url, headers=headers, timeout=60) as staff:
        assert staff.post(path, json=given).status_code == 201
        until(lambda: ask(staff, LEAVE)["answer"] == secret)
        assert secret not in ask(town, LEAVE)["answer"]
        assert secret not in httpx.get(path, headers=dict(town.headers)).text
        assert secret in staff.get(path).text
        town.delete("/pages/leave?wait=searchable&timeout=60").raise_for_status()
        assert secret not in ask(staff, LEAVE)["answer"]
        states = {one["id"]: one["state"] for one in staff.get(path).json()["corrections"]}
        assert "page-gone" in states.values()
