"""Labels over HTTP: who says what, who sees it when, and the file."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from gateway.fakes import FakePorts
from tests.console import console_ports
from tests.edge import EDIT_TOWN, EVERYTHING_TOWN, VIEW_TOWN, assert_problem, bearer
from tests.unit.gateway.test_gateway_questions import logged, outcome

TOWN = "/v1/admin/sites/town"
ONE = f"{TOWN}/questions/request-0001"


@pytest.fixture
def fakes() -> FakePorts:
    return console_ports()


@pytest.fixture(autouse=True)
async def asked(fakes: FakePorts) -> None:
    await logged(fakes, 1, outcome(answer="At nine."))
    await logged(fakes, 2, outcome(1, answer="Nobody knows.", became="refused", hits=()))


async def say(
    client: httpx.AsyncClient, key: str, mark: str, path: str = f"{ONE}/label", **more: Any
) -> httpx.Response:
    return await client.put(path, json={"mark": mark} | more, headers=bearer(key))


async def seen(client: httpx.AsyncClient, key: str, path: str = f"{ONE}/labels") -> dict[str, Any]:
    found: dict[str, Any] = (await client.get(path, headers=bearer(key))).raise_for_status().json()
    return found


async def test_two_raters_label_and_one_settles(stranger: httpx.AsyncClient) -> None:
    given = (await say(stranger, EDIT_TOWN, "wrong", why="Since May.", better="At ten.", pages=["pool"])).json()
    [own] = given["labels"]
    assert (own["rater"], own["mark"], own["better"], own["pages"]) == ("editor", "wrong", "At ten.", ["pool"])
    for path in (f"{ONE}/labels", f"{TOWN}/labels"):
        other = await seen(stranger, EVERYTHING_TOWN, path)
        assert "Since May." not in json.dumps(other)
    assert (await seen(stranger, EVERYTHING_TOWN))["hidden"] == 1
    assert_problem(await say(stranger, EDIT_TOWN, "right", f"{ONE}/settlement"), 409, "nothing-to-settle")
    assert (await say(stranger, EVERYTHING_TOWN, "right")).status_code == 200
    assert_problem(await say(stranger, EDIT_TOWN, "right"), 409, "labels-stand")
    both = await seen(stranger, EVERYTHING_TOWN)
    assert (both["state"], both["hidden"], [label["mark"] for label in both["labels"]]) == (
        "disagreed",
        0,
        ["wrong", "right"],
    )
    assert (await say(stranger, EDIT_TOWN, "wrong", f"{ONE}/settlement", better="At ten.")).json()["state"] == "settled"
    [listed] = (await seen(stranger, VIEW_TOWN, f"{TOWN}/labels?state=settled"))["questions"]
    assert listed["settled"]["better"] == "At ten."
    assert (await seen(stranger, VIEW_TOWN, f"{TOWN}/labels?state=agreed"))["questions"] == []


async def test_names_are_for_those_who_may_read_the_audit_log(
    stranger: httpx.AsyncClient, client: httpx.AsyncClient
) -> None:
    for key in (EDIT_TOWN, EVERYTHING_TOWN):
        await say(stranger, key, "right")
    for path in (f"{ONE}/labels", f"{TOWN}/labels", f"{TOWN}/labels/agreement"):
        to_operator = (await client.get(path)).text
        assert '"editor"' in to_operator
        assert '"webmaster"' in to_operator
        to_reader = json.dumps(await seen(stranger, VIEW_TOWN, path))
        assert "editor" not in to_reader
        assert "webmaster" not in to_reader
        assert "rater-" in to_reader
        to_editor = json.dumps(await seen(stranger, EDIT_TOWN, path))
        assert '"editor"' in to_editor
        assert "webmaster" not in to_editor


async def test_the_queue_is_ones_own(stranger: httpx.AsyncClient) -> None:
    first = await seen(stranger, EDIT_TOWN, f"{TOWN}/labels/queue")
    assert set(first["next"]) == {"request-0001", "request-0002"}
    await say(stranger, EDIT_TOWN, "right", f"{TOWN}/questions/{first['next'][0]}/label")
    mine = await seen(stranger, EDIT_TOWN, f"{TOWN}/labels/queue")
    assert (mine["sample"], mine["yours"], mine["both"], mine["next"]) == (2, 1, 0, first["next"][1:])
    theirs = await seen(stranger, EVERYTHING_TOWN, f"{TOWN}/labels/queue")
    assert (theirs["yours"], theirs["next"][0]) == (0, first["next"][0])


async def test_the_file_has_what_counts_and_no_names(stranger: httpx.AsyncClient) -> None:
    await say(stranger, EDIT_TOWN, "unanswerable", f"{TOWN}/questions/request-0002/label")
    for more in ({"params": {"format": "ndjson"}}, {"headers": {"Accept": "application/x-ndjson"}}):
        headers = bearer(VIEW_TOWN) | more.get("headers", {})
        answer = await stranger.get(f"{TOWN}/labels", params=more.get("params"), headers=headers)
        assert answer.headers["content-type"] == "application/x-ndjson"
        assert answer.headers["content-disposition"] == 'attachment; filename="labels-town.ndjson"'
        [line] = map(json.loads, answer.text.splitlines())
        assert (line["case"], line["mark"], line["right"], line["history"]) == (
            "request-0002",
            "unanswerable",
            True,
            ["When?"],
        )
        assert "editor" not in answer.text


@pytest.mark.parametrize(
    "body",
    [{}, {"mark": "good"}, {"mark": "right", "rater": "bo"}, {"mark": "unanswerable", "pages": ["pool"]}],
    ids=["nothing", "mark", "name", "pages"],
)
async def test_what_is_no_label_is_refused(client: httpx.AsyncClient, body: dict[str, Any]) -> None:
    assert_problem(await client.put(f"{ONE}/label", json=body), 422, "invalid")


async def test_a_question_that_is_not_there(client: httpx.AsyncClient) -> None:
    path = f"{TOWN}/questions/request-0009"
    assert_problem(await client.get(f"{path}/labels"), 404, "unknown-question")
    assert_problem(await client.put(f"{path}/label", json={"mark": "right"}), 404, "unknown-question")
